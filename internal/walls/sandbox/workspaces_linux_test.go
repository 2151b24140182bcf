package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// workspaces are the lines of the list: name, outcome, how it is made.
func workspaces(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/workspaces.txt")
	if err != nil { // another user, in another directory, has it by its content
		text = []byte(os.Getenv(workspacesVariable))
	}
	var list [][]string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(strings.TrimSpace(line), " | ", 3)
		if len(parts) != 3 {
			t.Fatalf("%q", line)
		}
		parts[2] = strings.ReplaceAll(parts[2], "{s}", strings.Repeat("s", 200))
		list = append(list, parts)
	}
	if len(list) == 0 {
		t.Fatal("there is no list")
	}
	return list
}

const workspacesVariable = "SANDBOX_TEST_WORKSPACES"

// spoil makes a workspace what a line says.
func (g ground) spoil(t *testing.T, line string) {
	t.Helper()
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwX", g.root).Run() })
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = g.root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// plant tries to leave a hook wherever git could look for one, and other things that run later.
const plant = `put() { [ -p "$1" ] || echo "$2" >> "$1"; } # a pipe would be waited for
for d in .git real real/.git c x; do
	mkdir -p "$d/hooks"; put "$d/hooks/pre-commit" evil; put "$d/config" evil; put "$d/commondir" ../evil
	rm -rf "$d/hooks"; mv "$d" moved; mkdir -p "$d/hooks" && put "$d/hooks/pre-commit" evil; mv moved "$d"
done
for f in .envrc .mcp.json .claude .vscode; do
	rm -rf $f; mv $f moved; put $f evil; mkdir -p $f; put $f/settings.json evil; rm -f moved
done; true`

// repositories are the directories from which git would run something.
func (g ground) repositories() (dirs []string) {
	for _, dir := range []string{"real", "c", "x"} {
		if exists(filepath.Join(g.root, dir, "HEAD")) {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, ".git")
}

// planted are the places in which a person would find something.
func (g ground) planted(repositories []string) (found []string) {
	places := []string{".envrc", ".mcp.json", ".claude", ".vscode", ".claude/settings.json", ".vscode/settings.json"}
	for _, dir := range repositories {
		places = append(places, dir+"/config", dir+"/commondir", dir+"/hooks/pre-commit")
	}
	for _, place := range places {
		info, err := os.Stat(filepath.Join(g.root, place))
		if err != nil || !info.Mode().IsRegular() { // a pipe would be waited for
			continue
		}
		if text, err := os.ReadFile(filepath.Join(g.root, place)); err == nil &&
			strings.Contains(string(text), "evil") {
			found = append(found, place)
		}
	}
	return found
}

// TestWorkspaces: whatever lies in a workspace, walls of the machine's tier stand around it and hold, or they are
// refused with the name of what is in the way. A refusal is never that the machine has no walls.
func TestWorkspaces(t *testing.T) {
	hermetic.Long(t)
	if tiers(t)[0] != Namespaces {
		t.Skip("this tier does not hold names")
	}
	for _, w := range workspaces(t) {
		t.Run(w[0], func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			g.repository(t)
			g.spoil(t, w[2])
			p := g.policy()
			p.Protected = append(p.Protected, ".envrc", ".vscode")
			walls, err := Open(p, Report{Tier: Namespaces}, Options{State: g.state})
			outcome, name, _ := strings.Cut(w[1], " ")
			if err != nil {
				named := strings.Contains(err.Error(), name) || strings.Contains(fault.Of(err).Sentence(), name)
				if outcome == "stands" || errors.Is(err, fault.ServiceDown) || !named {
					t.Errorf("refused: %v (%s)", err, fault.Of(err).Code)
				}
				return
			}
			defer walls.Close()
			if outcome == "refused" {
				t.Error("the walls stand")
			}
			dirs := g.repositories()
			r := g.sh(t, walls, plant)
			if found := g.planted(dirs); len(found) > 0 || r.ending.ExitCode != 0 {
				t.Errorf("planted: %v (%v)", found, r.ending)
			}
		})
	}
}

// TestPlantWorks: without walls what is tried does its harm.
func TestPlantWorks(t *testing.T) {
	g := newGround(t)
	g.repository(t)
	dirs := g.repositories()
	g.spoil(t, plant)
	if found := g.planted(dirs); len(found) < 4 {
		t.Errorf("planted: %v", found)
	}
}

// TestWorkspaceOfMounts runs where mounts can be made.
func TestWorkspaceOfMounts(t *testing.T) {
	hermetic.Long(t)
	again(t, inNamespace(), 0, "as-it-is", "^TestMountsUnderNames$")
}

// TestMountsUnderNames: a protected name, or what it lies in, is a place where something is mounted.
func TestMountsUnderNames(t *testing.T) {
	if os.Getenv(groundVariable) == "" {
		t.Skip("TestWorkspaceOfMounts runs it, where mounts can be made")
	}
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	for name, how := range map[string]func(g ground) error{
		"hooks": func(g ground) error { return unix.Mount("none", g.root+"/.git/hooks", "tmpfs", 0, "") },
		"a file": func(g ground) error {
			must(t, os.WriteFile(g.root+"/.mcp.json", nil, 0o600))
			return unix.Mount(g.outside+"/file", g.root+"/.mcp.json", "", unix.MS_BIND, "")
		},
		"repository, read-only": func(g ground) error {
			return errors.Join(unix.Mount(g.root+"/.git", g.root+"/.git", "", unix.MS_BIND, ""),
				unix.Mount("", g.root+"/.git", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		},
		"processes": func(g ground) error {
			must(t, os.Mkdir(g.root+"/.vscode", 0o700))
			return unix.Mount("/proc/self", g.root+"/.vscode", "", unix.MS_BIND|unix.MS_REC, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			g.repository(t)
			must(t, how(g))
			t.Cleanup(func() {
				for _, at := range []string{"/.git/hooks", "/.mcp.json", "/.git", "/.vscode"} {
					_ = unix.Unmount(g.root+at, unix.MNT_DETACH)
				}
			})
			w := g.walls(t, Namespaces, func(p *Policy) { p.Protected = append(p.Protected, ".envrc", ".vscode") })
			g.sh(t, w, plant)
			if found := g.planted([]string{".git"}); len(found) > 0 {
				t.Errorf("planted: %v", found)
			}
			if text, err := os.ReadFile(g.outside + "/file"); err != nil || string(text) != "outside" {
				t.Errorf("outside: %q, %v", text, err)
			}
		})
	}
}

// TestStands is about the machine alone, and says when it could not be found out.
func TestStands(t *testing.T) {
	for _, tier := range tiers(t) {
		if err := Stands(tier, Policy{}); err != nil {
			t.Errorf("%s: %v", tier, err)
		}
	}
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	if err := Stands(Landlock, Policy{}); err == nil || errors.Is(err, fault.ServiceDown) {
		t.Errorf("%v", err)
	}
}
