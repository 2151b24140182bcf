package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/emulator"
)

// A person with an empty home types what README.md shows, at 80 columns and 24 rows. The model is a script on this
// machine, which is all that differs: its address is in the environment.

// mostTyped is how many lines lead to each of the four things, the installation included.
const mostTyped = 12

// installed are the lines of the README that bring the program; the test has it already.
var installed = []string{"go install ./cmd/omniagent && "}

type typedLine struct {
	line  string
	shows string
	own   bool // the person's, not the README's
}

func TestFirstHour(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	must(t, err)
	for _, line := range installed {
		if !strings.Contains(string(readme), line) {
			t.Errorf("the README does not show %q", line)
		}
	}
	key := typedLine{"export ANTHROPIC_API_KEY=sk-ant-of-mine", "", true}
	project := typedLine{"mkdir parser && cd parser", "", true}
	mend := typedLine{
		"omniagent run --agent native --auto-edit -p 'Mend the failing test in ./parser.'", "1 file changed", false,
	}
	for name, path := range map[string]struct {
		script string
		lines  []typedLine
	}{
		"first answer": {"", []typedLine{{`omniagent --agent native -p "hello" --rehearse; echo $?`, "ok", false}}},
		"chat": {`[{"say":"It is a greeting."}]`, []typedLine{
			key, project,
			{"omniagent chat --provider anthropic --model claude-sonnet-4-5", "claude-sonnet-4-5", false},
			{"hello", "It is a greeting.", true},
			{"/exit", "Go on with:", true},
		}},
		"run": {`[{"write":{"path":"${cwd}/mended.txt","content":"x"}},{"say":"It is mended."}]`, []typedLine{
			key, project, mend,
		}},
		"undone turn": {`[{"write":{"path":"${cwd}/mended.txt","content":"x"}},{"say":"It is mended."}]`, []typedLine{
			key, project, mend,
			{"ls; echo there are $(ls | wc -l) files", "there are 1 files", true},
			{"omniagent undo --list", "mended.txt", false},
			{"omniagent undo", "mended.txt", false},
			{"ls; echo there are $(ls | wc -l) files", "there are 0 files", true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := len(installed) + len(path.lines); n > mostTyped {
				t.Errorf("%d lines are typed", n)
			}
			root, err := filepath.EvalSymlinks(beyond(t))
			must(t, err)
			home := filepath.Join(root, "ann")
			checkout := filepath.Join(home, "omniagent") // where the installation ends
			must(t, os.MkdirAll(checkout, 0o755))
			script := strings.ReplaceAll(path.script, "${cwd}", filepath.Join(checkout, "parser"))
			if script == "" {
				script = `[{"say":"nobody asks"}]`
			}
			backend, err := modelserver.ParseScript([]byte(script))
			must(t, err)
			server, err := modelserver.Start(backend, modelserver.Options{})
			must(t, err)
			t.Cleanup(func() { _ = server.Close() })
			p := emulator.Tmux(t, checkout, []string{
				"-i", "HOME=" + home, "PATH=" + filepath.Dir(program) + ":/usr/local/bin:/usr/bin:/bin", "PS1=$ ",
				"TERM=screen-256color", "LANG=C.UTF-8", "ANTHROPIC_BASE_URL=" + server.URL(),
			}, "bash", "--norc", "--noprofile")
			p.Shows("$ ")
			for _, l := range path.lines {
				if !l.own && !strings.Contains(string(readme), l.line) &&
					!strings.Contains(string(readme), strings.Replace(l.line, "native", "codex", 1)) {
					t.Errorf("the README does not show %q", l.line)
				}
				p.Types(l.line + "\r")
				if l.shows != "" {
					p.Shows(l.shows)
				}
			}
		})
	}
}
