//go:build unix

package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHooks: the person's hook forbids with 2 and nothing else, in each attempt, and the others learn what came of it.
func TestHooks(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `touch began; echo done`)
	hooks := func(before string) {
		p.put(filepath.Join(p.bin, "note"), "#!/bin/sh\necho $OMNIAGENT_RUN_STATUS >> $HOME/notes\n")
		p.put(filepath.Join(p.bin, "check"), "#!/bin/sh\n"+before+"\n")
		p.put(filepath.Join(p.bin, "keep"), "#!/bin/sh\ncat > $HOME/$1\n")
		p.configured("[run]\nnotify = ['note']\n[run.hooks]\npre = ['check']\npost = ['keep', 'after']\n")
	}
	hooks(`cat > $HOME/before; echo "not today" >&2; exit 2`)
	a := p.run("scribe", "--yolo")
	a.is(t, 7, "blocked", "denied")
	if p.read("began") != "" || !strings.Contains(a.Error.Message, "not today") {
		t.Errorf("%s", a)
	}
	if got, _ := os.ReadFile(filepath.Join(p.home, "before")); !strings.Contains(string(got),
		`"tool_name":"external_cli:scribe"`) {
		t.Errorf("%s", got)
	}
	if b := p.call("runs", "retry", a.Data.ID); b.Code != 7 {
		t.Errorf("%s", b)
	}
	hooks(`exit 1`)
	p.run("scribe", "--yolo").is(t, 0, "succeeded", "done")
	hooks(`exit 0`)
	p.run("scribe", "--yolo").is(t, 0, "succeeded", "done_unchanged")
	if got, _ := os.ReadFile(filepath.Join(p.home, "after")); !strings.Contains(string(got), `"status":"succeeded"`) {
		t.Errorf("%s", got)
	}
	if got, _ := os.ReadFile(filepath.Join(p.home,
		"notes")); string(got) != "blocked\nblocked\nsucceeded\nsucceeded\n" {
		t.Errorf("%s", got)
	}
	hooks(`exit 2`)
	if a := p.run("scribe", "--yolo"); !strings.HasSuffix(a.Error.Message, "run.hooks.pre forbids it") {
		t.Errorf("a hook without words: %s", a)
	}
}

// TestKeep: the record of a run that is over goes when it is old.
func TestKeep(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `echo done`).configured("[run]\nkeep = '1ms'\n")
	first := p.run("scribe", "--yolo")
	second := p.run("scribe", "--yolo")
	if a := p.call("runs", "show", first.Data.ID); a.Code != 5 {
		t.Errorf("%s", a)
	}
	if a := p.call("runs", "show", second.Data.ID); a.Code != 0 {
		t.Errorf("%s", a)
	}
}

// TestWaitQuota: a limit of the service is waited for, as long as the service says, if the caller wants that.
func TestWaitQuota(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"error":429,"retry_after":1,"times":4},{"say":"at last"}]`)
	args := []string{"run", "--agent", "native", "-m", "m", "--provider", "openai", "-p", "go", "--wait-quota"}
	a := p.call(append(args, "--stream")...)
	a.is(t, 0, "succeeded", "done_unchanged")
	if a.Data.Attempts != 2 || !strings.Contains(a.Stdout, `"state":"queued"`) ||
		!strings.Contains(a.Stdout, `"until":"2`) || !strings.Contains(a.Stderr, "when the service lifts its limit") ||
		!strings.Contains(a.Stderr, "the model is asked again") {
		t.Errorf("%s", a)
	}
}

// TestChainGoesOn: the agent that asked gets the answer, and not the first of the list.
func TestChainGoesOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("fake", `cat >asked; if grep -q blue asked; then echo done
else printf 'Which colour? '; fi`)
	a := p.run("codex,fake", "--yolo")
	a.is(t, 4, "needs_input", "question")
	b := p.call("answer", a.Data.ID, "blue")
	b.is(t, 0, "succeeded", "done")
	if b.Data.Agent != "fake" || b.Data.Attempts != 3 {
		t.Errorf("%s", b)
	}
}

// TestWarnsOnce: what is to be said of the person's files is said once, however many attempts a run takes.
func TestWarnsOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"error":429,"retry_after":1,"times":4},{"say":"at last"}]`)
	p.put(".eidolon.json", `{"models":[]}`)
	a := p.call("run", "--agent", "native", "-m", "m", "-p", "go", "--wait-quota")
	if a.is(t, 0, "succeeded", "done_unchanged"); a.Data.Attempts != 2 ||
		strings.Count(a.Stdout, `{"code":"RUN","message":"`) != 1 {
		t.Errorf("%s", a)
	}
}

// TestHintAfterWhatNothingAllows: --approval is advised only where it allows what was denied.
func TestHintAfterWhatNothingAllows(t *testing.T) {
	t.Parallel()
	for command, lifts := range map[string]bool{"rm -rf /": false, "touch made": true} {
		p := newPlace(t).model(`[{"shell":"` + command + `"},{"say":"done"}]`).configured("")
		a := p.run("native", "-m", "m", "--provider", "openai", "--approval", "deny")
		if a.is(t, 7, "blocked", "denied"); strings.Contains(a.Error.Suggestion, "set --approval") != lifts {
			t.Errorf("%s: %s", command, a.Error.Suggestion)
		}
	}
}
