package start

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneVocabulary: every word and every short flag means the same, and two that differ are refused by name.
func TestOneVocabulary(t *testing.T) {
	t.Parallel()
	const script = `[{"write":{"path":"w.txt","content":"x"}},{"say":"ok"}]`
	for flags, wrote := range map[string]bool{
		"--yolo": true, "--approval yolo": true, "--permission-mode auto": true, "--auto-edit": true,
		"--approval auto-edit": true,
		"--read-only":          false, "--approval plan": false, "--permission-mode plan": false,
		"--approval ask":    false,
		"--approval deny":   false,
		"--approval prompt": false, "--approval prompt --permission-mode prompt": false, "--yolo --approval yolo": true,
		"--yolo=false --approval plan": false,
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			args, env, _ := wires()[0].scripted(t, script)
			p.launch(t, env, append(append(args, "-p", "go"), strings.Fields(flags)...)...).end()
			if _, err := os.Stat(filepath.Join(p.work, "w.txt")); (err == nil) != wrote {
				t.Errorf("written: %v", err == nil)
			}
		})
	}
	for flags, want := range map[string][]string{
		"--yolo --read-only":                     {"--yolo", "--read-only"},
		"--approval plan --permission-mode auto": {"--approval plan", "--permission-mode auto"},
		"--auto-edit --approval prompt":          {"--approval prompt", "--auto-edit"},
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			r := newPlace(t).launch(t, []string{"OPENAI_API_KEY=k"}, append(strings.Fields(flags), "-p", "x")...)
			if _, exit := r.end(); exit != 2 {
				t.Errorf("exit %d", exit)
			}
			for _, w := range want {
				if !strings.Contains(r.stderr.String(), w) {
					t.Errorf("%q is not named: %q", w, r.stderr.String())
				}
			}
		})
	}
}

// TestClocks: a turn ends when its time is over, and so does the wait for an answer that does not begin.
func TestClocks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ script, flag, want string }{
		"turn":  {`[{"shell":"sleep 1000"},{"say":"no"}]`, "--timeout", "the turn did not end within 1s"},
		"call":  {`[{"shell":"sleep 1000"},{"say":"no"}]`, "OMNIAGENT_TIMEOUT", "the turn did not end within 1s"},
		"first": {`[{"stall":"headers"}]`, "--connect-timeout", "no answer came within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			args, env, _ := wires()[0].scripted(t, row.script)
			limit := []string{row.flag, "1s"}
			switch name {
			case "call":
				env, limit = append(env, row.flag+"=1s"), nil
			case "first": // it is asked again, up to the end of the turn
				limit = append(limit, "--timeout", "20s")
			}
			r := p.launch(t, env, append(append(args, "-p", "go", "--yolo"), limit...)...)
			messages, exit := r.end()
			last := messages[len(messages)-1]
			for _, m := range messages {
				if m["type"] == "result" {
					last = m
				}
			}
			if exit != 1 || last["is_error"] != true {
				t.Errorf("exit %d: %v", exit, last)
			}
			told := r.stderr.String()
			for _, m := range messages {
				for _, v := range m {
					if text, ok := v.(string); ok {
						told += text + "\n"
					}
				}
			}
			if !strings.Contains(told, row.want) {
				t.Errorf("%q is not told: %v", row.want, told)
			}
		})
	}
}

// TestWrongValuesSayWhatFits: what a value has to be stands in the message or in the hint, in a person's words and not
// in those of a regular expression or of this program's source.
func TestWrongValuesSayWhatFits(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--max-budget-usd", "five"}, "--max-budget-usd takes a value such as 0.50\n"},
		{[]string{"--json-schema", "city.json"}, "not a JSON object\nhint: give the object itself, not a file"},
		{[]string{"--settings", "{bad"}, "\nhint: give the settings as an object of JSON"},
		{[]string{"--settings", "nowhere"}, "\nhint: check the path; relative paths start at --cwd"},
		{[]string{"--system-prompt-file", "nowhere"}, "\nhint: check the path; relative paths start at --cwd"},
		{[]string{"--agents", `{"x":1}`}, "x must be an object: a number stands where an object belongs\n"},
	} {
		_, said, exit := p.call(t, nil, append([]string{"start", "--rehearse", "-p", "go"}, tt.args...)...)
		if exit != 2 || !strings.Contains(said, tt.want) {
			t.Errorf("%q: exit %d, %s", tt.args, exit, said)
		}
	}
	if _, said, exit := p.call(t, nil, "chat", "-p", "go"); exit != 2 ||
		!strings.Contains(said, "chat has no flag -p (it is one of run or start)") {
		t.Errorf("exit %d, %s", exit, said)
	}
	cmd := exec.Command(program, "start", "--rehearse", "-p", "go")
	cmd.Dir, cmd.Env, cmd.Stdin = p.work, p.env, strings.NewReader("and this\n")
	if said, err := cmd.CombinedOutput(); err != nil ||
		!strings.Contains(string(said), `; a message is {"type":"user","content":"TEXT"}`) {
		t.Errorf("%v, %s", err, said)
	}
}
