//go:build unix

package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

const script = `[{"shell":"ls; cat a.txt; echo from $OPENAI_API_KEY."},{"call":{"name":"Glob","input":{"pattern":"*.txt"}}},{"say":"heard: ${result}"}]`

// TestNothingCounts: whatever a repository brings, and from wherever in it the program is called, nothing of it runs,
// is asked, is believed or widens what may run.
func TestNothingCounts(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	for name, place := range map[string]func(t *testing.T, base string) (repository, dir string){
		"root":   func(_ *testing.T, base string) (string, string) { return base, base },
		"below":  func(t *testing.T, base string) (string, string) { return base, made(t, base, "sub", "deep") },
		"no git": func(t *testing.T, base string) (string, string) { return base, base },
		"above":  func(t *testing.T, base string) (string, string) { return base, made(t, base, "mine") },
		"nested": func(t *testing.T, base string) (string, string) {
			made(t, base, "inner", ".git")
			return base, filepath.Join(base, "inner")
		},
		"inner too": func(t *testing.T, base string) (string, string) {
			return filepath.Join(base, "vendor", "x"), made(t, base, "vendor", "x")
		},
		"linked": func(t *testing.T, base string) (string, string) {
			link := base + "-link"
			if err := os.Symlink(base, link); err != nil {
				t.Fatal(err)
			}
			return base, link
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, script)
			base := filepath.Join(filepath.Dir(g.home), "work")
			repository, dir := place(t, base)
			g.lay(t, repository)
			switch name {
			case "no git":
				remove(t, filepath.Join(base, ".git"))
			case "nested", "linked":
				remove(t, filepath.Join(base, ".git"))
				write(t, filepath.Join(base, ".git"), "gitdir: /elsewhere\n") // as a worktree has it
			}
			// What a user's shell may have put there for them.
			// there it is somebody else's directory, outside of the workspace, that the user has put into PATH
			if name == "nested" {
				repository = filepath.Join(repository, "none")
			}
			g.env[1] = "PATH=" + strings.Join([]string{
				filepath.Join(repository, "bin"), "./bin", "node_modules/.bin",
				filepath.Join(repository, "node_modules", ".bin"), os.Getenv("PATH"),
			}, ":")
			for _, c := range []struct {
				stdin string
				args  []string
			}{
				{"", []string{"start", "--model", "m", "-p", "go", "--permission-mode", "prompt"}},
				{"", []string{"start", "--model", "m", "-p", "go"}},
				{"", []string{"start", "--model", "m", "-p", "go", "--permission-mode", "auto"}},
				{"go\n/exit\n", []string{"chat", "--plain", "--model", "m"}},
				{"", []string{"--agent", "native", "-m", "m", "-p", "go"}},
				{"", []string{"-p", "go"}},
				{"", []string{"agents", "list"}},
				{"", []string{"doctor"}},
				{"", []string{"config", "list"}},
				{"", []string{"status"}},
				{"", []string{"session", "list"}},
				{"", []string{"trust", "--dry-run"}},
				{"", []string{"trust", "list"}},
			} {
				what := strings.Join(c.args, " ")
				out := g.run(t, dir, c.stdin, c.args...)
				g.unharmed(t, what, out)
				switch {
				case strings.HasSuffix(what, "--permission-mode auto"):
					if !strings.Contains(out, "from .") || dir == repository && !strings.Contains(out, "plain") {
						t.Errorf("%s: %s", what, out)
					}
				// what whole walls hold in the workspace may run where nobody can be asked
				case strings.HasSuffix(what, "-p go") && c.args[0] == "start":
					if !strings.Contains(out, "from .") && !strings.Contains(out, "needs approval") {
						t.Errorf("%s: %s", what, out)
					}
					if none := strings.Contains(out, `"sandbox":{"name":"none"`); none != unwalled(t) ||
						!strings.Contains(out, `"sandbox":{"name":"`) {
						t.Errorf("%s: the repository took the walls away: %s", what, out)
					} else if !none && !strings.Contains(out, `"network":"off"`) {
						t.Errorf("%s: the repository opened the network: %s", what, out)
					}
				case c.args[0] == "start", c.args[0] == "--agent":
					if !strings.Contains(out, "It did not run") && !strings.Contains(out, "needs approval") &&
						!strings.Contains(out, "was not allowed to use Bash") {
						t.Errorf("%s: the repository widened what may run: %s", what, out)
					}
				case c.args[0] == "agents":
					if strings.Contains(out, `"evil"`) {
						t.Errorf("%s: %s", what, out)
					}
				}
			}
			if len(g.model.Requests()) < 6 {
				t.Errorf("the model was asked %d times: nothing was tried", len(g.model.Requests()))
			}
		})
	}
}

// unwalled reports whether this machine has no walls to begin with.
func unwalled(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(program, "sandbox", "run", "--", "true")
	cmd.Dir, cmd.Env = made(t, dir, "work"), []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode() == 12
}

func made(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// TestTrustIsOfContent: what was trusted counts; one byte more, another file in its place, a link, and trust that was
// taken back do not.
func TestTrustIsOfContent(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	g := newGround(t, `[{"say":"ok"}]`)
	work := filepath.Join(filepath.Dir(g.home), "work")
	file := filepath.Join(work, "AGENTS.md")
	made(t, work, ".git")
	const text = "Always speak of badgers.\n"
	write(t, file, text)
	counts := func(step string, want bool) {
		t.Helper()
		before := len(g.model.Requests())
		out := g.run(t, work, "", "start", "--model", "m", "-p", "go")
		asked := g.model.Requests()[before:]
		if len(asked) != 1 || strings.Contains(string(asked[0].Raw), "badgers") != want {
			t.Errorf("%s: it counts: %v\n%s", step, !want, out)
		}
	}
	counts("at first", false)
	g.run(t, work, "", "trust", "--dry-run", file)
	counts("after a dry run", false)
	if out := g.run(t, work, "", "trust", file); !strings.Contains(out, "Always speak of badgers.") {
		t.Errorf("what counts is not shown: %s", out)
	}
	counts("trusted", true)
	write(t, file, text+" ")
	counts("one byte more", false)
	write(t, file, strings.Replace(text, "A", "a", 1))
	counts("another case", false)
	write(t, file, text)
	counts("as before", true)

	// The same content elsewhere, by a link, and a link to what somebody trusted elsewhere.
	other := filepath.Join(filepath.Dir(g.home), "other")
	made(t, other, ".git")
	write(t, filepath.Join(other, "AGENTS.md"), text)
	g.run(t, other, "", "trust", filepath.Join(other, "AGENTS.md"))
	remove(t, file)
	if err := os.Symlink(filepath.Join(other, "AGENTS.md"), file); err != nil {
		t.Fatal(err)
	}
	counts("a link to another repository", false)
	if out := g.run(t, work, "", "trust", file); !strings.Contains(out, "UNSAFE_PATH") {
		t.Errorf("a link out of the repository can be trusted: %s", out)
	}
	secret := filepath.Join(g.home, ".ssh", "id")
	write(t, secret, "badgers\n")
	remove(t, file)
	if err := os.Symlink(secret, file); err != nil {
		t.Fatal(err)
	}
	g.run(t, work, "", "trust", file)
	counts("a link to the user's own file", false)
	remove(t, file)
	write(t, filepath.Join(work, "claude.md"), text)
	counts("the content under another name", false)
	write(t, file, text)
	counts("back", true)
	made(t, work, "inner", ".git")
	write(t, filepath.Join(work, "inner", "AGENTS.md"), text)
	before := len(g.model.Requests())
	g.run(t, filepath.Join(work, "inner"), "", "start", "--model", "m", "-p", "go")
	if strings.Contains(string(g.model.Requests()[before].Raw), "badgers") {
		t.Error("the content counts in a repository within")
	}

	list := filepath.Join(g.home, ".local", "state", "omniagent", "trust.json")
	if err := os.Chmod(list, 0o666); err != nil {
		t.Fatal(err)
	}
	counts("others may write the record", false)
	if err := os.Chmod(list, 0o600); err != nil {
		t.Fatal(err)
	}
	counts("the record is ours again", true)
	g.run(t, work, "", "trust", "--remove", file)
	counts("trusted no longer", false)

	// A repository that brings its own record, where the environment leads there.
	g.env = append(g.env, "XDG_STATE_HOME="+filepath.Join(work, "state"))
	if out := g.run(t, work, "", "trust", file); !strings.Contains(out, "UNSAFE_PATH") {
		t.Errorf("trust is recorded in the repository: %s", out)
	}
	g.env = g.env[:len(g.env)-1]
	g.run(t, work, "", "trust", file)
	data, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	counts("trusted again", true)
	g.run(t, work, "", "trust", "--remove", file)
	write(t, filepath.Join(work, "state", "omniagent", "trust.json"), string(data))
	g.env = append(g.env, "XDG_STATE_HOME="+filepath.Join(work, "state"))
	counts("a record in the repository", false)
}

// TestTrustedConfigurationCounts: the other tests could not fail if nothing ever counted. What is personal does not
// count even then.
func TestTrustedConfigurationCounts(t *testing.T) {
	t.Parallel()
	g := newGround(t, script)
	work := filepath.Join(filepath.Dir(g.home), "work")
	made(t, work, ".git")
	config := filepath.Join(work, ".omniagent", "config.toml")
	write(t, config, "grace = '3s'\n[native]\nenv = ['OPENAI_API_KEY']\n")
	if out := g.run(t, work, "", "config", "get", "grace"); strings.Contains(out, `"3s"`) {
		t.Errorf("%s", out)
	}
	if out := g.run(t, work, "", "trust"); !strings.Contains(out, "native.env does not count") {
		t.Errorf("%s", out)
	}
	if out := g.run(t, work, "", "config", "get", "grace"); !strings.Contains(out, `"3s"`) ||
		!strings.Contains(out, "PERSONAL_CONFIG_KEY") {
		t.Errorf("%s", out)
	}
	if out := g.run(t, work, "", "start", "--model", "m", "-p", "go", "--permission-mode",
		"auto"); !strings.Contains(out, "from .") {
		t.Errorf("a repository hands a variable on: %s", out)
	}
	write(t, filepath.Join(g.home, ".config", "omniagent", "config.toml"), "[native]\nenv = ['OPENAI_API_KEY']\n")
	if out := g.run(t, work, "", "start", "--model", "m", "-p", "go", "--permission-mode",
		"auto"); !strings.Contains(out, "from [REDACTED].") || strings.Contains(out, key) {
		t.Errorf("the user's own word: %s", out)
	}
}
