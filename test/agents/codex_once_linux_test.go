package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCodexOnce: a run drives Codex with exec where nothing is asked, also outside of a repository, and with its
// app-server where a call may become a question. Both tell what was denied.
func TestCodexOnce(t *testing.T) {
	needAgents(t)
	t.Parallel()
	const works, denied = `[{"write":{"path":"new.txt","content":"x\n"}},{"say":"I am done."}]`,
		`[{"shell":"touch new.txt"},{"say":"I may not."}]`
	for _, c := range []struct {
		script string
		flags  []string
		word   string // of its command line
		reason string
	}{
		{works, []string{"--yolo"}, "exec", "done"},
		{works, []string{"--auto-edit"}, "exec", "done"},
		{denied, []string{"--read-only"}, "exec", "denied"},
		{works, nil, "app-server", "question"},
		{works, []string{"--approval", "prompt"}, "app-server", "question"},
		{works, []string{"--yolo", "--transport", "stream"}, "app-server", "done"},
		{denied, []string{"--read-only", "--transport", "stream"}, "app-server", "denied"},
	} {
		t.Run(strings.Join(append([]string{c.word}, c.flags...), " "), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "codex")
			if err := os.RemoveAll(filepath.Join(b.work, ".git")); err != nil {
				t.Fatal(err)
			}
			r := b.hands(c.script, c.flags...)
			show := exec.Command(program, "runs", "show", r.Data.ID, "--output", "json")
			show.Env = b.wired("http://127.0.0.1:1")
			record, _ := show.Output()
			if r.Data.Reason != c.reason || !strings.Contains(string(record), `"command_display":["`+c.word+`"`) {
				t.Errorf("%s\n%s", r, record)
			}
		})
	}
}

// TestCodexOnceGoesOn: the answer to a question goes into the session that asked it.
func TestCodexOnceGoesOn(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "codex")
	asked := b.hands(`[{"say":"Which colour do you want?"}]`, "--yolo")
	if asked.code != 4 {
		t.Fatalf("%s", asked)
	}
	cmd := exec.Command(program, "answer", asked.Data.ID, "blue", "--output", "json")
	cmd.Dir, cmd.Env = b.work, b.wired(scripted(t, `[{"say":"You said: ${input}"}]`).URL())
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "Answer: blue") {
		t.Fatalf("%v: %s", err, out)
	}
	show := exec.Command(program, "runs", "show", asked.Data.ID, "--output", "json")
	show.Env = cmd.Env
	record, _ := show.Output()
	if !strings.Contains(string(record), `"resume","`) || !strings.Contains(string(record), `"attempt":2`) {
		t.Errorf("%s", record)
	}
}

// TestYoloInARun: our walls stand around the agent, and its own sandbox and questions, under which git cannot write and
// a loop is asked about, do not; with --sandbox workspace-write they do.
func TestYoloInARun(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, subject := range []string{"claude", "codex"} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, subject)
			r := b.hands(`[{"shell":"for i in 1 2; do echo $i >new; done; >.git/new"},{"say":"I am done."}]`, "--yolo")
			if r.Data.Reason != "done" || !b.took(".git/new") {
				t.Errorf("%s", r)
			}
		})
	}
}
