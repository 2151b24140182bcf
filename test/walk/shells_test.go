//go:build unix

package walk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// typed are lines, what completes their last word, and what the shell shows of a word that several could be.
var typed = []struct{ line, whole, shows string }{
	{"omniagent conf", "config", ""},
	{"omniagent config un", "unset", ""},
	{"omniagent status --show-side", "--show-side-effects", ""},
	{"omniagent completion po", "powershell", ""},
	{"omniagent status --output pl", "plain", ""},
	{"omniagent --agent ge", "gemini", ""},
	{"omniagent --approval yo", "yolo", ""},
	{"omniagent run --agent ope", "opencode", ""},
	{"omniagent agents show cop", "copilot", ""},
	{"omniagent chat --provider anth", "anthropic", ""},
	{"omniagent chat --provider anthropic --model claude-opus-4-8", "claude-opus-4-8", ""},
	{"omniagent models use gemini/gemini-2.5-p", "gemini/gemini-2.5-pro", ""},
	{"omniagent config get audit.k", "audit.keep", ""},
	{"omniagent config set undo.snapshots of", "off", ""},
	{"omniagent config set native.provider ope", "openai", ""},
	{"omniagent session show sess-1a", "sess-1a2b3c4d", ""},
	{"omniagent chat --resume sess-1a", "sess-1a2b3c4d", ""},
	{"omniagent runs show run-1a", "run-1a2b3c4d", ""},
	{"omniagent --agent c", "", "Claude Code"},
	{"omniagent config set native.", "", "model API that is asked"},
	{"omniagent session show ", "", "Where is the deadlock?"},
}

// shell returns the program that completes, with the environment of a person who has omniagent, or skips the test.
func (b *box) shell(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed here", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = b.project, b.environment(call{
		unset: []string{"PATH"},
		set:   []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "TERM=dumb", "COLUMNS=200"},
	})
	return cmd
}

// shared is a session beside the one of the box, so that a shell has two to choose from.
const shared = `{"n":1,"p":0,"k":"begin","t":"2026-01-31T12:00:00.000Z","d":{"v":1,"id":"sess-9z","cwd":"/x","created":"2026-01-31T12:00:00Z"}}
`

func completing(t *testing.T) *box {
	t.Helper()
	b := furnished(t)
	b.write(t, "home/.yume/sessions/sess-9z.jsonl", shared)
	return b
}

// TestBash completes in a real bash, with the package bash-completion and without it.
func TestBash(t *testing.T) {
	b := completing(t)
	const ask = `
[ "$1" = alone ] || . /usr/share/bash-completion/bash_completion
shift
source <(omniagent completion bash)
complete -p omniagent | grep -q __start_omniagent || exit 9
COMP_LINE=$1 COMP_TYPE=9 COMP_KEY=9; COMP_POINT=${#COMP_LINE}
read -ra COMP_WORDS <<<"$1"; [[ $1 != *' ' ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
__start_omniagent omniagent 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"`
	for _, with := range []string{"alone", "package"} {
		t.Run(with, func(t *testing.T) {
			if _, err := os.Stat("/usr/share/bash-completion/bash_completion"); err != nil && with == "package" {
				t.Skip("the package bash-completion is not installed here")
			}
			for _, c := range typed {
				out, err := b.shell(t, "bash", "--norc", "--noprofile", "-c", ask, "bash", with,
					c.line).CombinedOutput()
				got := strings.TrimSpace(string(out))
				if err != nil || c.shows == "" && got != c.whole || !strings.Contains(got, c.shows) {
					t.Errorf("%q is completed to %q (%v), not to %q %q", c.line, got, err, c.whole, c.shows)
				}
			}
		})
	}
}

// TestFish completes in a real fish.
func TestFish(t *testing.T) {
	b := completing(t)
	for _, c := range typed {
		out, err := b.shell(t, "fish", "--no-config", "-c", "omniagent completion fish | source; complete -C $argv[1]",
			c.line).CombinedOutput()
		got := strings.TrimSpace(string(out))
		word, _, _ := strings.Cut(got, "\t")
		if err != nil || c.shows == "" && word != c.whole || !strings.Contains(got, c.shows) {
			t.Errorf("%q is completed to %q (%v), not to %q %q", c.line, got, err, c.whole, c.shows)
		}
	}
}

// TestZsh types into a real zsh and presses Tab. A key of its own shows the line that came of it.
func TestZsh(t *testing.T) {
	b := completing(t)
	const ask = `
zmodload zsh/zpty
zpty z zsh -f -i
await() { local all piece; while zpty -r z piece; do all+=$piece; [[ $all == *$1* ]] && break; done; print -r -- "$all" }
zpty -w z 'PS1= PS2=; stty columns 200 rows 50; autoload -Uz compinit; compinit -D -u'
zpty -w z 'source <(omniagent completion zsh)'
zpty -w z 'show() { print -r -- "<<$BUFFER>""END"; BUFFER=; zle redisplay }; zle -N show; bindkey "^Xs" show'
zpty -w z 'LISTMAX=1000; print "rea""dy"'
await ready >/dev/null
zpty -w -n z "$1"$'\t'$2$'\C-Xs'
await '>END'`
	for _, c := range typed {
		list := ""
		if c.shows != "" {
			list = "\t"
		}
		out, err := b.shell(t, "zsh", "-f", "-c", ask, "zsh", c.line, list).CombinedOutput()
		got := string(out)
		begin, end := strings.LastIndex(got, "<<"), strings.LastIndex(got, ">END")
		if err != nil || begin < 0 || end < begin {
			t.Fatalf("zsh said %q (%v)", got, err)
		}
		words := strings.Fields(got[begin+2 : end])
		if last := words[len(words)-1]; c.whole != "" && last != c.whole || !strings.Contains(got, c.shows) {
			t.Errorf("%q is completed to %q, not to %q %q: %q", c.line, last, c.whole, c.shows, got)
		}
	}
}
