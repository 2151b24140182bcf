//go:build unix

package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPrompts: what a program prints and then waits for becomes a question, also when the end of its input answered it.
func TestPrompts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, question string
		options          []string
		code             int
		status, reason   string
	}{
		"waits": {
			`cat >/dev/null; printf 'What is your favourite colour? '; sleep 1000`,
			"What is your favourite colour?",
			nil, 4, "needs_input", "question",
		},
		"answered by EOF": {
			`cat >/dev/null; printf 'What is your favourite colour? '; read c; exit 0`,
			"What is your favourite colour?", nil, 4, "needs_input", "question",
		},
		"confirm": {
			`cat >/dev/null; printf 'Overwrite it? [y/N] '; sleep 1000`, "Overwrite it? [y/N]",
			[]string{"y", "n"},
			4, "needs_input", "question",
		},
		"password":    {`cat >/dev/null; printf 'Password: '; sleep 1000`, "", nil, 8, "failed", "not_logged_in"},
		"no question": {`cat >/dev/null; printf 'Done. Anything else?\n'`, "", nil, 0, "succeeded", "done_unchanged"},
		"only a question": {
			`cat >/dev/null; printf 'Which colour do you want?\n'`, "Which colour do you want?", nil,
			4, "needs_input", "question",
		},
		"work and a question": {`cat >new; printf 'Which colour do you want?\n'`, "", nil, 0, "succeeded", "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).agent("fake", c.script)
			a := p.run("fake", "--yolo", "--idle-timeout", "2s")
			a.is(t, c.code, c.status, c.reason)
			if c.code == 4 && (len(a.Data.Questions) != 1 || a.Data.Questions[0].Text != c.question ||
				!slices.Equal(a.Data.Questions[0].Options, c.options) && c.options != nil) {
				t.Errorf("%s", a)
			}
			if name == "work and a question" && len(a.Data.Open) != 1 {
				t.Errorf("%s", a)
			}
			p.nothing()
		})
	}
}

// TestNothingAnswersAPrompt: an agent that speaks a protocol may ask in plain text too. An interrupt of the protocol
// would be its answer.
func TestNothingAnswersAPrompt(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put(filepath.Join(p.bin, "claude"), `#!/bin/sh
case "$*" in *--version*) echo '2.1.329 (Claude Code)'; exit ;; esac
while read -r line; do
	case $line in
	*'"initialize"'*)
		id=$(printf %s "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
		echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"$id"'","response":{}}}' ;;
	*'"type":"user"'*) break ;;
	esac
done
echo '{"type":"system","subtype":"init","session_id":"x","tools":[],"model":"m"}'
echo half >half
printf 'Delete the build directory? [Y/n] '
read -r answer
echo "$answer" >answered
`)
	p.allowed = append(p.allowed, "claude")
	a := p.configured("").trusting("claude").run("claude", "--yolo", "--idle-timeout", "2s")
	a.is(t, 4, "needs_input", "question")
	if len(a.Data.Questions) != 1 || a.Data.Questions[0].Text != "Delete the build directory? [Y/n]" {
		t.Errorf("%s", a)
	}
	if a.Data.Changed == nil || a.Data.Changed.Count != 1 {
		t.Errorf("who answers does not see what was changed: %s", a)
	}
	if _, err := os.Stat(filepath.Join(p.work, "answered")); err == nil {
		t.Errorf("the agent read %q as an answer", p.read("answered"))
	}
	p.nothing()
}

// TestFlagsOfSeveral: what limits one run limits each of a batch.
func TestFlagsOfSeveral(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("fake", `cat >made; echo done`)
	p.put(filepath.Join(p.work, "tasks.md"), "- one\n")
	one := p.run("fake", "--yolo", "--sandbox", "off")
	if one.Code == 0 || p.read("made") != "" {
		t.Fatalf("this agent has no such flag: %s", one)
	}
	several := p.call("run", "--agent", "fake", "--yolo", "--sandbox", "off", "--batch", "tasks.md")
	if several.Code == 0 || p.read("made") != "" {
		t.Errorf("%s", several)
	}
}

// TestSecretsAreAskedForAgain: a run that is retried has the plain answers of the first, and asks for the secret one.
func TestSecretsAreAskedForAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >README; echo done`)
	p.env = append(p.env, "TOKEN=hunter2-canary")
	a := p.run("scribe", "--yolo", "--require", "token=Which token?")
	a.is(t, 4, "needs_input", "missing_input")
	p.call("answer", a.Data.ID, "--secret-from-env", "TOKEN").is(t, 0, "succeeded", "done")
	if !strings.Contains(p.read("README"), "hunter2-canary") {
		t.Errorf("the agent got %q", p.read("README"))
	}
	p.call("runs", "retry", a.Data.ID).is(t, 4, "needs_input", "missing_input")
}
