//go:build unix

package shim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSessionsOfAgents: --continue and --resume in the words of each agent, with a prompt, where the session is ours to
// choose and where it is not.
func TestSessionsOfAgents(t *testing.T) {
	const id = "0a1b2c3d-0000-4000-8000-000000000001"
	for agent, want := range map[string]map[string][]string{
		"claude":   {"--continue": {"--continue"}, "--resume": {"--resume=" + id}},
		"codex":    {"--continue": {"resume", "--last"}, "--resume": {"resume", id}},
		"copilot":  {"--continue": {"--continue"}, "--resume": {"--resume=" + id}},
		"gemini":   {"--continue": {"--resume=latest"}, "--resume": {"--resume=" + id}},
		"opencode": {"--continue": {"--continue"}, "--resume": {"--session=" + id}},
	} {
		for flag, words := range want {
			t.Run(agent+flag, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				args := []string{"--agent", agent, "-p", "go on", flag}
				if flag == "--resume" {
					args = append(args, id)
				}
				r := w.run(nil, args...)
				calls := w.calls()
				if len(calls) != 1 || strings.Contains(r.stderr, "is ignored") {
					t.Fatalf("%d calls: %+v", len(calls), r)
				}
				at := slices.Index(calls[0].Args, words[0])
				if at < 0 || !slices.Equal(calls[0].Args[at:at+len(words)], words) {
					t.Errorf("%q is not in %q", words, calls[0].Args)
				}
				if slices.ContainsFunc(calls[0].Args,
					func(a string) bool { return strings.HasPrefix(a, "--session-id") }) {
					t.Errorf("a new session is chosen as well: %q", calls[0].Args)
				}
			})
		}
	}
}

// TestFlagsThatSomeHave: an agent without such a flag is told with a warning, which --strict counts.
func TestFlagsThatSomeHave(t *testing.T) {
	w := newWorld(t)
	for _, args := range [][]string{{"--provider", "openai"}, {"--api-base=http://127.0.0.1:1/v1"}} {
		call := append([]string{"--agent", "codex", "-p", "q"}, args...)
		r := w.run(nil, call...)
		if r.code != 0 || !strings.Contains(r.stderr, "codex: "+strings.Join(args, " ")[:10]) ||
			!strings.Contains(r.stderr, "is ignored") {
			t.Errorf("%q: %+v", args, r)
		}
		before := len(w.calls())
		if r := w.run(nil, append(call, "--strict")...); r.code != 2 || len(w.calls()) != before {
			t.Errorf("%q with --strict: %+v", args, r)
		}
	}
	for _, wrong := range []string{
		"--continue --resume x -p q", "--resume= -p q", "--with-stdin", "--provider= -p q",
		"--output events -p q --report r.json", "--output events -p q -- --x", "--resume=--last -p q",
		"--model=--yolo -p q", "--output events -p q --rehearse --continue",
	} {
		r := w.run(strings.NewReader("q"), append([]string{"--agent", "codex"}, strings.Fields(wrong)...)...)
		if r.code != 2 || !strings.Contains(r.stderr, "\nhint: ") {
			t.Errorf("%s: %+v", wrong, r)
		}
	}
}

// TestTrustInARehearsal: what a person trusts is trusted in the home of a rehearsal, and no warning says otherwise.
func TestTrustInARehearsal(t *testing.T) {
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Join(w.root, ".omniagent"), 0o755); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(w.root, ".omniagent", "config.toml")
	if err := os.WriteFile(settings, []byte("grace = \"3s\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call := []string{"--agent", "native", "-p", "q", "--rehearse"}
	if r := w.run(nil, call...); r.code != 0 || !strings.Contains(r.stderr, "is not trusted") {
		t.Errorf("untrusted: %+v", r)
	}
	if r := w.run(nil, "trust", settings); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := w.run(nil, call...); r.code != 0 || r.stderr != "" {
		t.Errorf("trusted: %+v", r)
	}
}

// TestWhyDenied: where no flag allows more, the reason of a denial is said.
func TestWhyDenied(t *testing.T) {
	w := newWorld(t)
	script := w.file("../script.json", `[{"shell":"rm -rf .git"},{"say":"done"}]`)
	r := w.run(nil, "--agent", "native", "--rehearse="+script, "--yolo", "-p", "q")
	if r.code != 3 || !strings.Contains(r.stderr, "hint: the reason: ") || !strings.Contains(r.stderr, "rm -rf .git") {
		t.Errorf("%+v", r)
	}
}

// TestNativeProvider: the native agent takes the model API and its address.
func TestNativeProvider(t *testing.T) {
	w := newWorld(t)
	r := w.run(nil, "--agent", "native", "--provider", "openai", "--api-base", "http://127.0.0.1:1/v1", "-p", "q",
		"--trace-translate=only")
	if r.code != 0 || !strings.Contains(r.stderr, "--provider=openai") ||
		!strings.Contains(r.stderr, "--api-base=http://127.0.0.1:1/v1") {
		t.Errorf("%+v", r)
	}
}

// TestPipeBesideAPrompt: what waits in a pipe beside -p is told and not read, and --with-stdin appends it.
func TestPipeBesideAPrompt(t *testing.T) {
	const warning = "standard input is not read, since -p is given; --with-stdin appends it"
	w := newWorld(t)
	w.behave.Echo = true
	diff := w.file("diff", "DIFF\n")
	for name, stdin := range map[string]func() *os.File{
		"a file": func() *os.File { f, _ := os.Open(diff); return f },
		"a pipe": func() *os.File {
			r, p, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = p.WriteString("DIFF\n")
			_ = p.Close()
			return r
		},
	} {
		for _, strict := range []string{"--strict", "--strict=false"} {
			in := stdin()
			r := w.run(in, "--agent", "claude", "-p", "review", strict)
			_ = in.Close()
			if r.code != 0 || r.stdout != "review" || strings.Count(r.stderr, warning) != 1 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		in := stdin()
		r := w.run(in, "--agent", "claude", "-p", "review", "--with-stdin")
		_ = in.Close()
		if r.code != 0 || r.stdout != "review\n\nDIFF\n" || r.stderr != "" {
			t.Errorf("%s, appended: %+v", name, r)
		}
	}
	empty, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = empty.Close(), p.Close() }()
	for _, in := range []*os.File{nil, empty} {
		r := w.run(in, "--agent", "claude", "-p", "review")
		if r.code != 0 || r.stderr != "" {
			t.Errorf("with nothing in it: %+v", r)
		}
	}
}

// TestEvents: --output events is what start prints, for a prompt of -p, of both, and of a pipe.
func TestEvents(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]struct{ stdin, args string }{
		"typed": {"", "-p hello"}, "piped": {"hello", ""}, "both": {"more", "-p hello --with-stdin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			args := append(strings.Fields(call.args), "--agent", "native", "--output", "events", "--rehearse=")
			script := filepath.Join(w.root, "script.json")
			if err := os.WriteFile(script, []byte(`[{"say": "Hello yourself."}]`), 0o600); err != nil {
				t.Fatal(err)
			}
			args[len(args)-1] += script
			r := w.run(strings.NewReader(call.stdin), args...)
			kinds := []string{}
			for line := range strings.Lines(r.stdout) {
				var m struct{ Type, Result string }
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Errorf("%v: %s", err, line)
				}
				if kinds = append(kinds, m.Type); m.Type == "result" && m.Result != "Hello yourself." {
					t.Errorf("the result is %q", m.Result)
				}
			}
			if r.code != 0 || len(kinds) < 3 || kinds[0] != "system" || kinds[len(kinds)-1] != "message_stop" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestEventsAsElsewhere: --output events changes the form of the output, and not what flags and configuration mean.
func TestEventsAsElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stall := filepath.Join(w.root, "stall.json")
	if err := os.WriteFile(stall, []byte(`[{"stall": "start"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	slow := []string{"-p", "hello", "--agent", "native", "--output", "events", "--rehearse=" + stall}
	r := w.run(nil, append(slow, "--timeout", "1s")...)
	if r.code != 1 || !strings.Contains(r.stdout, "within 1s") {
		t.Errorf("a time limit: %+v", r)
	}
	ignored := []string{"--agent", "codex", "-p", "q", "--provider", "openai", "--output", "events"}
	if r := w.run(nil, ignored...); !strings.Contains(r.stderr, "--provider openai is ignored") {
		t.Errorf("a flag that the agent does not have: %+v", r)
	}
	before := len(w.calls())
	if r := w.run(nil, append(ignored, "--strict")...); r.code != 2 || len(w.calls()) != before {
		t.Errorf("the same with --strict: %+v", r)
	}
}

// TestEventsStartTheSame: with --output events an agent gets the same arguments, the same environment and the same
// directory as with its own lines, and nothing stands around it.
func TestEventsStartTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range agents() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "COMPANY_KEY=k-123456789")
			started := func(form string) (c call) {
				before := len(w.calls())
				r := w.run(nil, "--agent", name, "-p", "q", "--auto-edit", "--output", form)
				all := w.calls()
				if len(all) <= before {
					t.Fatalf("%s: nothing was started: %+v", form, r)
				}
				if form == "events" && !strings.Contains(r.stdout, `"type":"result"`) ||
					strings.Contains(r.stdout, "namespaces") {
					t.Errorf("%s", r.stdout)
				}
				return all[len(all)-1]
			}
			own, events := started("stream-json"), started("events")
			same := func(args []string) string {
				id := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24,32}|/00\d|2\S+Z$`)
				return id.ReplaceAllString(strings.Join(args, " "), "ID")
			}
			slices.Sort(own.Env)
			slices.Sort(events.Env)
			if a, b := same(own.Args), same(events.Args); a != b {
				t.Errorf("the arguments are\n%s\nand with events\n%s", a, b)
			}
			if a, b := same(own.Env), same(events.Env); a != b || !strings.Contains(b, "COMPANY_KEY") {
				t.Errorf("the environment is\n%s\nand with events\n%s", a, b)
			}
			if own.Dir != events.Dir || own.Stdin != events.Stdin {
				t.Errorf("%q in %s, with events %q in %s", own.Stdin, own.Dir, events.Stdin, events.Dir)
			}
		})
	}
}
