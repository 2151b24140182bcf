//go:build unix

package run

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
		"answered by EOF, and worked on": {
			`cat >/dev/null; printf 'What is your favourite colour? '; read c; echo "got=$c" | tee new`,
			"What is your favourite colour?", nil, 4, "needs_input", "question",
		},
		"waits below its line": {
			`cat >/dev/null; echo 'What is your favourite colour?'; sleep 1000`,
			"What is your favourite colour?",
			nil, 4, "needs_input", "question",
		},
		"waits without a question mark": {
			`cat >/dev/null; echo 'Should I use tabs or spaces'; exec sleep 1000`, "Should I use tabs or spaces",
			nil, 4, "needs_input", "question",
		},
		"waits within a line": {
			`cat >/dev/null; printf 'Your colour, please'; sleep 1000`, "Your colour, please",
			nil, 4, "needs_input", "question",
		},
		"device": {
			`cat >/dev/null; echo 'To sign in, visit https://example.com/device and enter code ABCD-1234'
				while :; do sleep 0.2; done`, "", nil, 8, "failed", "not_logged_in",
		},
		"pauses in its answer": {
			`cat >/dev/null; printf 'It says: '; printf 'Overwrite it? [y/N] '; sleep 4; echo 'and then it goes on.'`,
			"", nil, 0, "succeeded", "done_unchanged",
		},
		"wakes": {`cat >/dev/null; printf 'Compiling, ok? '; sleep 4; echo yes`, "", nil, 0, "succeeded", "done_unchanged"},
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
			kernel := strings.HasPrefix(name, "waits") || name == "answered by EOF, and worked on"
			if kernel && runtime.GOOS != "linux" {
				t.Skip("only Linux tells what a program waits for, and keeps its writes apart")
			}
			p := newPlace(t).agent("fake", c.script)
			a := p.run("fake", "--yolo", "--idle-timeout", "1m")
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
	p := newPlace(t).walled()
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

// TestStalledAfterWords: what an agent printed last stands in the message. It only becomes a question if it asks.
func TestStalledAfterWords(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("fake", `cat >/dev/null; echo 'Compiling the parser.'; sleep 1000`)
	a := p.run("fake", "--yolo", "--idle-timeout", "4s")
	a.is(t, 10, "stalled", "idle")
	if !strings.Contains(a.Error.Message, "Compiling the parser.") {
		t.Errorf("%s", a)
	}
}

// TestNoProtocol: an agent whose entry promises a protocol that it does not speak has failed. Nobody cancelled it.
func TestNoProtocol(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for name, script := range map[string]string{
		"words": `read -r line; echo 'Hello, I am an agent.'; sleep 1000`,
		"json":  `read -r line; echo '{"hello":"world"}'; sleep 1000`,
		"exits": `read -r line; echo 'Hello, I am an agent.'; exit 0`,
	} {
		p.put(filepath.Join(p.bin, name), "#!/bin/sh\n"+script)
		p.targets = append(p.targets, `{"id":"`+name+`","cli":{"modes":{"acp":{"command":"`+name+`","args":[]}}}}`)
		p.allowed = append(p.allowed, name)
	}
	p.put(filepath.Join(p.home, ".config/omniagent/agents/omniagent.config.json"),
		`{"targets":[`+strings.Join(p.targets, ",")+`]}`)
	p.configured("")
	for _, name := range p.allowed {
		a := p.trusting(name).run(name, "--approval", "default")
		if a.Code != 1 || a.Data.Status != "failed" || !strings.Contains(a.Error.Message, "Agent Client Protocol") ||
			!strings.Contains(a.Error.Message, "ello") {
			t.Errorf("%s: %s", name, a)
		}
	}
}

// TestEchoOfAnAnswer: an agent that repeats what it was told asks nothing with it.
func TestEchoOfAnAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("echo", `task=$(cat)
		case $task in *Answer:*) printf '%s\n' "$task" ;; *) printf 'Overwrite it? [y/N] '; exec sleep 1000 ;; esac`)
	a := p.run("echo", "--yolo", "--idle-timeout", "1m")
	a.is(t, 4, "needs_input", "question")
	p.call("answer", a.Data.ID, "yn").is(t, 0, "succeeded", "done_unchanged")
}

// TestOutputLeavesTheProtocol: an agent that prints words instead of its protocol has failed, or is silent.
func TestOutputLeavesTheProtocol(t *testing.T) {
	t.Parallel()
	for end, want := range map[string][3]string{
		"exit 0":          {"1", "failed", "cut_stream"},
		"exec sleep 1000": {"10", "stalled", "idle"},
	} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.put(filepath.Join(p.bin, "copilot"), `#!/bin/sh
case "$*" in *--version*) echo 'GitHub Copilot CLI 1.0.102.'; exit ;; esac
cat >/dev/null
for i in 1 2 3 4 5 6 7 8 9; do
	echo '{"type":"assistant.message_delta","data":{"messageId":"m","deltaContent":"one "}}'
done
echo 'Shall I use tabs or spaces?'
printf 'Overwrite it? [y/N] '
`+end+"\n")
			p.allowed = append(p.allowed, "copilot")
			a := p.configured("").trusting("copilot").run("copilot", "--yolo", "--idle-timeout", "4s")
			code, _ := strconv.Atoi(want[0])
			a.is(t, code, want[1], want[2])
			p.nothing()
		})
	}
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
