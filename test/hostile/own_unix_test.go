//go:build unix

package hostile

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// looking is a person's own program that looks for code in the usual ways: modules and packages of the current
// directory and of those above it, programs in PATH, and where a variable says. It notes that it ran.
const looking = `#!/bin/sh
echo "$1" >>"$HOME/ran"
d=$PWD
while :; do
	for f in "$d/module.sh" "$d/node_modules/.bin/tool"; do
		if [ -f "$f" ]; then sh "$f" "$1"; fi
	done
	[ "$d" = / ] && break
	d=$(dirname "$d")
done
tool "$1"
[ -f "$GEM_PATH/module.sh" ] && sh "$GEM_PATH/module.sh" "$1"
case $1 in pre|post|notify) cat >>"$HOME/heard" ;; esac
`

// looked lays a repository that has something for every way, and a home with a program that tries them all, whose path
// it returns. A link in PATH leads into the repository.
func (g *ground) looked(t *testing.T, dir string) (program string) {
	t.Helper()
	evil := fmt.Sprintf("#!/bin/sh\necho \"$0\" >%s/\"$1\"\n", g.marks)
	for _, name := range []string{"module.sh", "node_modules/.bin/tool", "gems/module.sh", "bin/tool"} {
		executable(t, filepath.Join(dir, name), evil)
	}
	own := filepath.Join(g.home, "bin")
	executable(t, filepath.Join(own, "looking"), looking)
	if err := os.Symlink(filepath.Join(dir, "bin"), filepath.Join(g.home, "linked")); err != nil {
		t.Fatal(err)
	}
	g.env[1] = "PATH=" + strings.Join([]string{
		"bin", ".", filepath.Join(dir, "node_modules/.bin"), filepath.Join(g.home, "linked"), own, os.Getenv("PATH"),
	}, ":")
	g.env = append(g.env, "GEM_PATH="+filepath.Join(dir, "gems"))
	return filepath.Join(own, "looking")
}

func executable(t *testing.T, path, content string) {
	t.Helper()
	write(t, path, content)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// marked returns what the repository got to run.
func (g *ground) marked() (names []string) {
	all, _ := os.ReadDir(g.marks)
	for _, one := range all {
		names = append(names, one.Name())
	}
	return names
}

// ran returns which of the person's programs ran.
func (g *ground) ran() []string {
	data, _ := os.ReadFile(filepath.Join(g.home, "ran"))
	words := strings.Fields(string(data))
	slices.Sort(words)
	return slices.Compact(words)
}

// TestProgramsOfThePerson: MCP servers and hooks of the person's own run nothing of a repository, whatever they look
// for and wherever. Only a server whose entry names the workspace finds what is there.
func TestProgramsOfThePerson(t *testing.T) {
	t.Parallel()
	g := newGround(t, `[{"say":"done"}]`)
	dir := filepath.Join(filepath.Dir(g.home), "work")
	program := g.looked(t, dir)
	only, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"path":     map[string]any{"command": program, "args": []string{"server"}},
		"name":     map[string]any{"command": "looking", "args": []string{"named-server"}},
		"relative": map[string]any{"command": "sh", "args": []string{"module.sh", "relative-server"}},
		"cwd":      map[string]any{"command": program, "args": []string{"relative-cwd"}, "cwd": "."},
		"told":     map[string]any{"command": program, "args": []string{"told"}, "cwd": "${workspaceFolder}"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(g.home, ".config", "omniagent")
	write(t, filepath.Join(config, "mcp.json"), string(only))
	write(t, filepath.Join(config, "config.toml"), "[run]\nnotify = ['looking', 'notify']\n"+
		"[run.hooks]\npre = ['looking', 'pre']\npost = ['"+program+"', 'post']\n")
	g.run(t, dir, "", "agents", "allow", "native")
	for _, args := range [][]string{
		{"start", "--model", "m", "-p", "go", "--permission-mode", "plan"},
		{"start", "--model", "m", "-p", "go"},
		{"run", "--agent", "native", "--model", "m", "-p", "go"},
	} {
		out := g.run(t, dir, "", args...)
		if !strings.Contains(out, "done") {
			t.Errorf("%v: %s", args, out)
		}
		if got := g.marked(); !slices.Equal(got, []string{"told"}) {
			t.Errorf("%v: the repository ran in the place of %q\n%s", args, got, out)
		}
	}
	want := []string{"named-server", "notify", "post", "pre", "server", "told"}
	if got := g.ran(); !slices.Equal(got, want) {
		t.Errorf("%q ran, want %q", got, want)
	}
	heard, _ := os.ReadFile(filepath.Join(g.home, "heard"))
	for _, told := range []string{`"hook_event_name":"PreRun"`, `"hook_event_name":"PostRun"`, `"cwd":"` + dir + `"`} {
		if !strings.Contains(string(heard), told) {
			t.Errorf("a hook did not hear %s: %s", told, heard)
		}
	}
	state := filepath.Join(g.home, ".local", "state", "omniagent")
	if left, err := filepath.Glob(filepath.Join(state, "empty-*")); len(left) > 0 || err != nil {
		t.Errorf("left %q %v", left, err)
	}
}

// TestHelpersInPATH: git and its like are never those of the workspace, by whatever way PATH leads there.
func TestHelpersInPATH(t *testing.T) {
	t.Parallel()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed: ", err)
	}
	g := newGround(t, `[{"say":"done"}]`)
	dir := filepath.Join(filepath.Dir(g.home), "work")
	write(t, filepath.Join(dir, "a.txt"), "a\n")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command(real, append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
		cmd.Env = g.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-qm", "x")
	write(t, filepath.Join(dir, "a.txt"), "b\n")
	linked := filepath.Join(g.home, "linked")
	if err := os.Symlink(filepath.Join(dir, "bin"), linked); err != nil {
		t.Fatal(err)
	}
	single := filepath.Join(g.home, "single")
	if err := os.Mkdir(single, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"git", "less", "more", "sh", "gcloud", "secret-tool", "node", "npm"} {
		trap := fmt.Sprintf("#!/bin/sh\n: >%s/%s\nexec /usr/bin/%s \"$@\"\n", g.marks, name, name)
		executable(t, filepath.Join(dir, "bin", name), trap)
		if err := os.Symlink(filepath.Join(dir, "bin", name), filepath.Join(single, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, path := range map[string]string{
		"named": filepath.Join(dir, "bin"), "linked": linked, "single": single, "relative": "bin",
	} {
		g.env[1] = "PATH=" + path + ":" + os.Getenv("PATH")
		fork := "try-" + name
		for _, args := range [][]string{
			{"review", "--agent", "native", "--model", "m"},
			{
				"fork", "run", "--name", fork, "--", "/bin/sh", "-c",
				"echo " + name + " >c.txt; " + real + " add c.txt; " + real + " -c user.name=n -c user.email=e commit -qm c",
			},
			{"fork", "diff", fork, "--patch"},
			{"fork", "apply", fork},
			{"doctor"},
			{"models", "list", "--offline"},
			{"start", "--model", "m", "-p", "go"},
			{"sandbox", "run", "--network", "packages", "--", "/bin/true"},
		} {
			out := g.run(t, dir, "", args...)
			g.unharmed(t, name+": "+strings.Join(args, " "), out)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "c.txt")); string(got) != name+"\n" {
			t.Errorf("%s: the fork did not come home: %q", name, got)
		}
	}
	cmd := exec.Command("sh", "-c", "git --version")
	cmd.Env, cmd.Dir = []string{"PATH=" + linked + ":/usr/bin:/bin"}, dir
	if _ = cmd.Run(); !slices.Equal(g.marked(), []string{"git"}) {
		t.Errorf("the trap does not work: %q", g.marked())
	}
}
