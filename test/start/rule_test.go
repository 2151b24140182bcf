package start

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outcome is what came of a command of the model.
type outcome struct {
	asked  string // the question; empty: none
	ran    bool
	result string
}

// commanded has a model run commands, one after the other. Where somebody is there, every question is refused.
func (p place) commanded(t *testing.T, somebody bool, lines []string, args ...string) map[string]outcome {
	t.Helper()
	return p.answered(t, somebody, false, lines, args...)
}

// answered is commanded with another answer.
func (p place) answered(t *testing.T, somebody, yes bool, lines []string, args ...string) map[string]outcome {
	t.Helper()
	var calls []map[string]string
	for _, line := range lines {
		calls = append(calls, map[string]string{"shell": line})
	}
	script, _ := json.Marshal([]any{map[string]any{"calls": calls}, map[string]string{"say": "done"}})
	wire, env, _ := wires()[0].scripted(t, string(script))
	args = append(wire, args...)
	if !somebody {
		args = append(args, "-p", "go")
	}
	r := p.launch(t, env, args...)
	if somebody {
		r.say(`{"type":"user","content":"go"}`)
		answered := map[any]bool{}
		r.await(func(line string) bool {
			var m map[string]any
			if json.Unmarshal([]byte(line), &m) == nil && m["subtype"] == "permission_request" &&
				!answered[m["question_id"]] {
				answered[m["question_id"]] = true
				r.say(fmt.Sprintf(`{"type":"tool_approval","id":%q,"approved":%v}`, m["question_id"], yes))
			}
			return strings.Contains(line, `"message_stop"`)
		})
	}
	messages, _ := r.end()
	if name := wallsOf(messages); name != "namespaces" && name != "seatbelt" {
		t.Skip("the walls are not whole here: ", name)
	}
	byCall, outcomes := map[any]string{}, map[string]outcome{}
	for _, m := range messages {
		line := byCall[m["tool_use_id"]]
		o := outcomes[line]
		switch {
		case m["type"] == "tool_use":
			input, _ := m["input"].(map[string]any)
			byCall[m["id"]], _ = input["command"].(string)
			continue
		case m["subtype"] == "permission_request":
			o.asked, _ = m["text"].(string)
		case m["type"] == "tool_result":
			o.result, _ = m["content"].(string)
			o.ran = !strings.HasPrefix(o.result, "It did not run")
		default:
			continue
		}
		outcomes[line] = o
	}
	return outcomes
}

// TestOnlyBeyondIsAsked: in the mode default, what walls contain and undo takes back runs, whether somebody is there or
// not. The rest is asked about, and says why. Where nobody is there, what the walls refuse by themselves is left to
// them, and the result names the setting that opens it.
func TestOnlyBeyondIsAsked(t *testing.T) {
	needGit(t)
	t.Parallel()
	held := []string{
		"rm -rf src", "git reset --hard", "git clean -fdx", "PATH=$PWD:$PATH sh -c 'echo built > built'",
		"sed -i s/a/b/ a.txt",
		"for i in 1 2; do echo $i > n$i; done", "git stash; git checkout -b other", "sh ./made.sh",
		"echo x > /tmp/scratch",
	}
	beyond := map[string]struct {
		why  string
		open string // where nobody is there it runs, and its result has this
	}{
		"curl -s http://127.0.0.1:9/ ": {"it needs the network", "--network HOST"},
		"git push":                     {"nothing takes that back", ""},
		"bash -c 'npm publish'":        {"nothing takes that back", ""},
		"mkdir -p sub/.vscode ":        {".vscode is protected", ""},
		"claude -p hi":                 {"it starts the agent claude", ""},
	}
	refused := map[string]string{ // by the walls, so that a yes would change nothing
		"echo x > /usr/outside-of-all":              "--add-dir DIR",
		"echo '[alias]' >> .git/config":             ".git/config is protected",
		"mkdir -p .vscode && touch .vscode/x.json ": ".vscode is protected",
	}
	lines := append([]string{"echo touch z > made.sh"}, held...)
	for line := range refused {
		lines = append(lines, line)
	}
	for line := range beyond {
		lines = append(lines, line)
	}
	for _, somebody := range []bool{true, false} {
		t.Run(map[bool]string{true: "somebody", false: "nobody"}[somebody], func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.dirty(t)
			p.write(t, "a.txt", "a")
			was := p.state(t)
			outcomes := p.commanded(t, somebody, lines)
			for _, line := range held {
				if o := outcomes[line]; o.asked != "" || !o.ran {
					t.Errorf("%s: %+v", line, o)
				}
			}
			for line, want := range refused {
				if o := outcomes[line]; o.asked != "" || !strings.Contains(o.result, want) {
					t.Errorf("%s: %+v", line, o)
				}
			}
			for line, want := range beyond {
				o := outcomes[line]
				switch {
				case somebody && (o.ran || !strings.Contains(o.asked, want.why)),
					!somebody && want.open != "" && (!o.ran || !strings.Contains(o.result, want.open)),
					!somebody && want.open == "" && (o.ran || !strings.Contains(o.result, want.why)):
					t.Errorf("%s: %+v", line, o)
				}
			}
			if _, err := os.Stat("/usr/outside-of-all"); err == nil {
				t.Error("a file was made outside the workspace")
			}
			if _, exit := p.undo(t, "undo"); exit != 0 || p.state(t) != was {
				t.Errorf("undo: exit %d, and the workspace is another one", exit)
			}
		})
	}
}

// TestAYesOpensTheNetwork, for the command that was asked about and for no other one. What succeeds has no note.
func TestAYesOpensTheNetwork(t *testing.T) {
	t.Parallel()
	heard, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()
	go func() {
		for {
			conn, err := heard.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("hello from here\n"))
			_ = conn.Close()
		}
	}()
	port := heard.Addr().(*net.TCPAddr).Port
	asked := fmt.Sprintf("cat < /dev/tcp/127.0.0.1/%d", port)
	hidden := fmt.Sprintf("printf 'cat < /dev/tcp/127.0.0.1/%d' > s; bash s", port)
	p := newPlace(t)
	outcomes := p.answered(t, true, true, []string{asked, hidden})
	if o := outcomes[asked]; !strings.Contains(o.asked, "a yes opens the network for this command alone") ||
		!strings.Contains(o.result, "hello from here") || strings.Contains(o.result, "--network") {
		t.Errorf("%+v", o)
	}
	if o := outcomes[hidden]; o.asked != "" || strings.Contains(o.result, "hello from here") {
		t.Errorf("a later command: %+v", o)
	}
}

// TestSyntaxErrorsAreBashs: what bash would not parse is given to it, and the model reads what it says.
func TestSyntaxErrorsAreBashs(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for line, o := range p.commanded(t, false, []string{"echo ((", "if true", "echo 'a"}) {
		if !o.ran || !strings.Contains(o.result, "line 1:") && !strings.Contains(o.result, "line 2:") {
			t.Errorf("%s: %+v", line, o)
		}
	}
	if o := p.commanded(t, false, []string{"echo (("}, "--disallowed-tools", "Bash(curl:*)")["echo (("]; o.ran {
		t.Errorf("where a command is denied: %+v", o)
	}
}

// TestWithoutASnapshot: where none is taken, or what is lost is not in it, nothing is thrown away unasked.
func TestWithoutASnapshot(t *testing.T) {
	needGit(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		args    []string
		config  string
		deny    map[string]string // with the reason
		allowed []string
	}{
		"off": {[]string{"--undo", "off"}, "", map[string]string{
			"rm -rf src": "removes more than can be brought back", "git reset --hard": "destroys changes",
		}, []string{"touch new"}},
		"no session": {[]string{"--no-session-persistence"}, "", map[string]string{"rm -rf src": "removes more"}, nil},
		"yolo": {[]string{"--undo", "off", "--permission-mode", "auto"}, "", map[string]string{
			"rm -rf src": "removes more", "git clean -fdx": "destroys files",
		}, []string{"touch new"}},
		"a large file": {nil, "file_limit = 1000\n", map[string]string{
			"rm -rf dist": "undo does not cover dist/out", "echo x > dist/out": "undo does not cover",
			"git clean -fdx": "undo does not cover",
		}, []string{"rm -rf src", "touch dist/other", "cat dist/out"}},
		"ignored": {nil, "ignored_limit = 1000\n", map[string]string{
			"rm -rf dist": "undo does not cover dist", "rm -rf *": "undo does not cover",
			"git clean -fdx": "undo does not cover",
		}, []string{"rm -rf src", "git reset --hard"}},
		"a directory elsewhere": {
			[]string{"--add-dir", "{more}"},
			"",
			map[string]string{"rm -rf src": "removes more"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.dirty(t)
			more := t.TempDir()
			for i, a := range tt.args {
				tt.args[i] = strings.ReplaceAll(a, "{more}", more)
			}
			if tt.config != "" {
				dir := filepath.Join(p.home, ".config", "omniagent")
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[undo]\n"+tt.config),
					0o600); err != nil {
					t.Fatal(err)
				}
			}
			var lines []string
			for line := range tt.deny {
				lines = append(lines, line)
			}
			outcomes := p.commanded(t, false, append(lines, tt.allowed...), tt.args...)
			for line, why := range tt.deny {
				if o := outcomes[line]; o.ran || !strings.Contains(o.result, why) {
					t.Errorf("%s: %+v", line, o)
				}
			}
			for _, line := range tt.allowed {
				if o := outcomes[line]; !o.ran {
					t.Errorf("%s: %+v", line, o)
				}
			}
		})
	}
}
