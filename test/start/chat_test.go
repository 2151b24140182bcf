package start

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func (p place) chat(t *testing.T, input string, env []string, args ...string) (out string, exit int) {
	t.Helper()
	cmd := exec.Command(program, append([]string{"chat", "--cwd", p.work}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stdin = append(p.env, env...), p.work, strings.NewReader(input)
	data, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return string(data), cmd.ProcessState.ExitCode()
}

// TestChat: line by line, in a pipe: what is typed while the agent works waits, a question takes the next line, and the
// end of the input is not a consent.
func TestChat(t *testing.T) {
	t.Parallel()
	script := `[{"say":"I look.\u001b[31m"},{"shell":"touch made"},{"say":"You said ${input}"}]`
	for name, tt := range map[string]struct {
		input string
		made  bool
		want  []string
	}{
		"yes": {"first\ny\n", true, []string{"I look.", "⏺ Bash touch made", "? ", "You said ", "\nfirst\n"}},
		"no": {"first\n\nsecond\nnot now\n", false, []string{
			"refused", "\nfirst\n", "\nsecond\n",
			"not now",
		}},
		"nobody":  {"first\n", false, []string{"failed: It did not run", "You said ", "\nfirst\n"}},
		"exit":    {"/exit\nfirst\n", false, []string{"/help lists"}},
		"nothing": {"\n  \n", false, []string{"/help lists the commands.\n", "\n> "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			args, env, _ := wires()[0].scripted(t, script)
			out, exit := p.chat(t, tt.input, env, append(args, "--plain", "--permission-mode", "prompt")...)
			_, err := os.Stat(filepath.Join(p.work, "made"))
			if exit != 0 || (err == nil) != tt.made || strings.Contains(out, "\x1b") {
				t.Errorf("exit %d, made: %v\n%s", exit, err == nil, out)
			}
			if strings.Contains(out, "> > ") {
				t.Errorf("it asks again and again: %s", out)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing:\n%s", want, out)
				}
			}
		})
	}
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"error":400}]`)
	out, exit := p.chat(t, "hello\n", env, append(args, "--plain")...)
	if exit != 1 || !strings.Contains(out, "failed: ") {
		t.Errorf("a turn that fails: exit %d\n%s", exit, out)
	}
	if out, exit := p.chat(t, "hello\n", []string{"OPENAI_API_KEY=k"}); exit != 4 ||
		!strings.Contains(out, "omniagent --agent native -p") {
		t.Errorf("exit %d, %s", exit, out)
	}
}

// TestChatOnAFullDisk: what cannot be told is a failure, and is told where it can be.
func TestChatOnAFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no device that is always full: ", err)
	}
	defer full.Close()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"say":"hello"}]`)
	var stderr strings.Builder
	cmd := exec.Command(program, append(append([]string{"chat", "--cwd", p.work}, args...), "--plain")...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(p.env, env...), p.work, strings.NewReader("hello\n"),
		full, &stderr
	_ = cmd.Run()
	if exit := cmd.ProcessState.ExitCode(); exit != 1 ||
		!strings.Contains(stderr.String(), "standard output cannot be written") {
		t.Errorf("exit %d, %s", exit, stderr.String())
	}
}

// TestAttemptsAreToldOnce: a failed attempt is told when it fails, and not once more when the turn ends.
func TestAttemptsAreToldOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "script.json", `[{"error":529,"times":2},{"say":"fine"}]`)
	out, exit := p.chat(t, "hello\n", nil, "--plain", "--rehearse", "--script", "script.json")
	if exit != 0 || strings.Count(out, "overloaded") != 2 || !strings.Contains(out, "fine\n> ") {
		t.Errorf("exit %d: %s", exit, out)
	}
}
