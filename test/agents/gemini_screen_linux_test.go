package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func geminiScreens() []scenario {
	return []scenario{
		{"screen: one process", []string{
			"approval=prompt interactive", "output=text interactive", "model interactive", "web=off interactive",
			"session-id interactive", "records interactive",
			"screen: flags visible", "screen: dialog under prompt", "screen: resize",
			"approval=yolo interactive", "output=json interactive", "web=on interactive", "resume interactive",
			"screen: no dialog under yolo",
		}, geminiScreenSession},
		{"screen: auto-edit", []string{
			"approval=auto-edit interactive", "sandbox=off interactive", "output=stream-json interactive",
			"ask interactive", "denials interactive",
		}, geminiScreenAutoEdit},
		{"screen: container", []string{"sandbox=workspace-write interactive"}, geminiScreenContainer},
		{"screen: suspend", []string{"screen: suspend"}, geminiScreenSuspend},
		{"screen: trust", nil, geminiScreenTrust},
		{"screen: other wires", []string{"acp interactive"}, geminiScreenWires},
	}
}

const geminiReady = "Type your message"

// geminiProcesses are those of the CLI below another process, or that itself. What is about to become another program
// looks like one for a moment, so they have to be the same three times.
func geminiProcesses(root int) []int {
	found := geminiProcessesNow(root)
	for same := 0; same < 2; same++ {
		time.Sleep(50 * time.Millisecond)
		if now := geminiProcessesNow(root); !slices.Equal(now, found) {
			found, same = now, -1
		}
	}
	return found
}

func geminiProcessesNow(root int) []int {
	parents := map[int]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if i := strings.LastIndexByte(string(stat), ')'); i > 0 {
			if f := strings.Fields(string(stat[i+1:])); len(f) > 1 {
				parents[pid], _ = strconv.Atoi(f[1])
			}
		}
	}
	var found []int
	for pid := range parents {
		beneath := pid
		for beneath != root && beneath > 1 {
			beneath = parents[beneath]
		}
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if beneath == root && filepath.Base(exe) == "node" && strings.Contains(commandLine(pid), "gemini") {
			found = append(found, pid)
		}
	}
	slices.Sort(found)
	return found
}

// geminiHeap is the limit of memory that a process was given, by its arguments or its environment.
func geminiHeap(pid int) string {
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return regexp.MustCompile(`--max-old-space-size=\d+`).FindString(commandLine(pid) + " " + string(environ))
}

// geminiQuits leaves the screen as a person does, who presses Ctrl-C until it is gone: twice, and quickly enough.
func geminiQuits(s *screen) {
	s.t.Helper()
	s.presses("\x03", soon, "it has ended", func() bool {
		select {
		case <-s.done:
			return true
		default:
			return false
		}
	})
	if code := s.left(); code != 0 {
		s.t.Errorf("left by Ctrl-C: exit code %d", code)
	}
}

// geminiEnters types a prompt and sends it. A return that follows a letter within 30 ms is taken for a pasted one, as
// it can be on a busy machine.
func geminiEnters(s *screen, line string) {
	s.t.Helper()
	s.types(line)
	s.sees(line)
	s.presses("\r", 5*time.Second, "the prompt is sent", func() bool {
		after := s.letters()[s.seen:]
		return slices.ContainsFunc([]string{geminiReady, "esc to cancel", "Allow once", "heard"},
			func(sign string) bool { return strings.Contains(after, letters(sign)) })
	})
}

// geminiUntil waits until something holds.
func geminiUntil(b *bench, what string, holds func() bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// geminiScreenSession begins a session and continues it. Where directory and login are settled we start one process,
// with the memory of the second that the CLI would start by itself. Processes are counted rather than timed: which
// start is quicker depends on who comes first.
func geminiScreenSession(b *bench) {
	const id = "6f1d3c52-0b7e-4c55-9a53-0d4c1f1f2a10"
	p := geminiSettle(b, `[{"shell":"touch made.txt"},{"say":"heard ${input}"}]`, "TRUST_FOLDER")
	tools := []string{"run_shell_command", "write_file", "google_web_search", "web_fetch"}

	alone := b.sit(filepath.Join(bin, "gemini"), "--approval-mode=default", "--model", "chosen")
	alone.sees(geminiReady)
	two := geminiProcesses(alone.cmd.Process.Pid)
	heap := ""
	if len(two) == 2 {
		heap = geminiHeap(two[0]) + geminiHeap(two[1]) // only the second has it
	} else {
		b.t.Errorf("alone it is %d processes: there is nothing to leave out any more", len(two))
	}
	geminiQuits(alone)

	s := b.sit(program, "--agent", "gemini", "--approval", "prompt", "--model", "chosen", "--web", "off", "--",
		"--session-id="+id)
	s.sees(geminiReady)
	one := geminiProcesses(s.cmd.Process.Pid)
	if len(one) != 1 || geminiHeap(one[0]) != heap {
		b.t.Fatalf("through us it is %d processes, memory %q; alone %d and %q", len(one), geminiHeap(one[0]), len(two),
			heap)
	}
	if line := commandLine(one[0]); !strings.Contains(line, "--approval-mode=default --model chosen --admin-policy=") ||
		strings.Contains(line, "output-format") {
		b.t.Errorf("started as %s", line)
	}
	if !strings.Contains(s.letters(), "chosen") {
		b.t.Error("the model is not on the screen")
	}
	s.forget()
	s.resize(24, 80)
	s.sees(geminiReady)
	geminiEnters(s, "please do")
	s.sees("Allow once")
	if b.took("made.txt") {
		b.t.Error("it ran before it was allowed")
	}
	s.types("\r")
	s.sees("heard please do")
	if !b.took("made.txt") {
		b.t.Error("it was allowed, and did not run")
	}
	if got := p.offered(tools...); got != "run_shell_command write_file" || p.asked(0)[0].Model != "chosen" {
		b.t.Errorf("web off: %q is offered to %s", got, p.asked(0)[0].Model)
	}
	geminiQuits(s)
	if !slices.ContainsFunc(p.transcripts(), func(path string) bool { return strings.Contains(path, id[:8]) }) {
		b.t.Errorf("%q", p.transcripts())
	}

	s = b.sit(program, "--agent", "gemini", "--yolo", "--output", "json", "--web", "on", "--", "--resume", id,
		"--model", "chosen")
	s.sees("--output json is ignored: the terminal interface has no other form")
	s.sees("heard please do")
	s.sees(geminiReady)
	if !strings.Contains(s.letters(), "YOLO") {
		b.t.Error("yolo is not on the screen")
	}
	geminiEnters(s, "once more")
	s.sees("heard once more")
	s.lacks("Allow once")
	if !b.took("made.txt") {
		b.t.Error("yolo: it did not run")
	}
	if got := p.offered(tools...); got != strings.Join(tools, " ") {
		b.t.Errorf("web on: %q is offered", got)
	}
	geminiQuits(s)
}

// geminiScreenAutoEdit: it writes without a question, a question of the model is put to the person, and what a policy
// refuses is recorded.
func geminiScreenAutoEdit(b *bench) {
	p := geminiSettle(b,
		`[{"shell":"touch refused.txt"},{"write":{"path":"written.txt","content":"x"}},{"ask":"Which colour?"},{"say":"heard ${input}"}]`, "TRUST_FOLDER")
	calls := geminiDocker(b, "0123456789ab")
	b.env = append(b.env, "GEMINI_SANDBOX=docker")
	rule := b.put(filepath.Join(b.home, "rule.toml"),
		"[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"touch\"\ndecision = \"deny\"\npriority = 999\n")
	s := b.sit(program, "--agent", "gemini", "--auto-edit", "--sandbox", "off", "--stream-json", "--model", "m", "--",
		"--policy="+rule)
	s.sees("--output stream-json is ignored: the terminal interface has no other form")
	s.sees(geminiReady)
	if !strings.Contains(s.letters(), letters("auto-accept edits")) {
		b.t.Error("auto-edit is not on the screen")
	}
	geminiEnters(s, "please do")
	s.sees("Which colour?")
	if !b.took("written.txt") || b.took("refused.txt") {
		b.t.Error("auto-edit did not write, or ran a command that a policy refuses")
	}
	s.lacks("Allow once")
	if calls() != "" {
		b.t.Errorf("--sandbox off: %s", calls())
	}
	geminiUntil(b, "the refusal is recorded", func() bool {
		return slices.ContainsFunc(p.transcripts(), func(path string) bool {
			data, _ := os.ReadFile(path)
			return strings.Contains(string(data), "Tool execution denied by policy.")
		})
	})
}

// geminiScreenContainer: the container gets a terminal, and the CLI in it our arguments.
func geminiScreenContainer(b *bench) {
	calls := geminiDocker(b, "0123456789ab")
	s := b.open("", "--sandbox", "workspace-write", "--yolo")
	s.sees("CONTAINED")
	s.left()
	if _, run, _ := strings.Cut(calls(), "\nrun "); !strings.Contains(run, b.work+":"+b.work) ||
		!strings.Contains(run, "-t") || !strings.Contains(run, `gemini --approval-mode\=yolo --sandbox`) {
		b.t.Errorf("%s", calls())
	}
}

// geminiScreenSuspend: a person works in a shell, puts the CLI aside and takes it up again. The CLI wants the key
// twice.
func geminiScreenSuspend(b *bench) {
	flag := b.script(`[{"say":"heard ${input}"}]`)
	s := b.shell()
	s.enters("stty -g >" + b.home + "/before.txt")
	s.sees("ready>")
	s.enters("omniagent --agent gemini " + flag)
	s.sees(geminiReady)
	s.presses("\x1a", soon, "it is stopped", func() bool { return strings.Contains(s.letters()[s.seen:], "Stopped") })
	s.forget()
	s.enters("echo usable-$((40+2))")
	s.sees("usable-42")
	s.enters("fg")
	s.sees(geminiReady)
	geminiEnters(s, "are you there")
	s.sees("heard are you there")
	s.forget()
	s.presses("\x03", soon, "the shell is back",
		func() bool { return strings.Contains(s.letters()[s.seen:], "ready>") })
	s.forget()
	s.enters("stty -g >" + b.home + "/after.txt; echo left-$((40+3))")
	s.sees("left-43")
	before, _ := os.ReadFile(filepath.Join(b.home, "before.txt"))
	after, _ := os.ReadFile(filepath.Join(b.home, "after.txt"))
	if len(before) == 0 || string(before) != string(after) {
		b.t.Errorf("the terminal was left as %s, not %s", after, before)
	}
}

// geminiScreenTrust: after the answer the CLI ends to be started again, which is done by us.
func geminiScreenTrust(b *bench) {
	geminiSettle(b, `[]`, "")
	s := b.sit(program, "--agent", "gemini")
	s.sees("Do you trust the files in this folder?")
	s.sees("Don't trust")
	before := geminiProcesses(s.cmd.Process.Pid)
	if len(before) != 1 {
		b.t.Fatalf("%d processes before the directory is trusted", len(before))
	}
	s.presses("\r", soon, "the process is another", func() bool {
		now := geminiProcesses(s.cmd.Process.Pid)
		return len(now) == 1 && now[0] != before[0]
	})
	s.forget()
	s.sees(geminiReady)
	geminiQuits(s)
	if data, _ := os.ReadFile(filepath.Join(b.home, ".gemini", "trustedFolders.json")); !strings.Contains(string(data),
		"TRUST_FOLDER") {
		b.t.Errorf("%s", data)
	}
}

// geminiScreenWires: --strict refuses a form that the interface lacks, and --acp speaks at a terminal as well.
func geminiScreenWires(b *bench) {
	s := b.open("", "--output", "json", "--strict")
	s.sees("--strict: gemini does not do all that was asked for")
	if code := s.left(); code != 2 {
		b.t.Errorf("--strict: exit code %d", code)
	}
	s = b.open("", "--", "--acp")
	s.presses(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`+
		"\n", soon, "it answers", func() bool {
		return strings.Contains(s.letters(), `"authMethods"`)
	})
}
