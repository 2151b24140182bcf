package walls

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestWorkspaceDoesNotChooseTheWalls: whatever lies in a workspace, its commands have the walls of the machine, or none
// of them runs and the refusal names what is in the way. The list is that of internal/walls/sandbox.
func TestWorkspaceDoesNotChooseTheWalls(t *testing.T) {
	text, err := os.ReadFile("../../internal/walls/sandbox/testdata/workspaces.txt")
	must(t, err)
	inTiers(t, func(t *testing.T, where tier) {
		n := 0
		for line := range strings.Lines(string(text)) {
			parts := strings.SplitN(strings.TrimSpace(line), " | ", 3)
			if strings.HasPrefix(line, "#") || len(parts) != 3 {
				continue
			}
			// Every day the tiers take turns; OMNIAGENT_WHOLE=matrices tries each line in both.
			if n++; !hermetic.Matrices() && (n%2 == 0) != (where.name == "landlock") {
				continue
			}
			t.Run(parts[0], func(t *testing.T) {
				t.Parallel()
				g := newGround(t)
				g.spoil(t, strings.ReplaceAll(parts[2], "{s}", strings.Repeat("s", 200)))
				g.plants(t, where, parts[1])
			})
		}
	}, namespaces(), landlock())
}

// spoil makes the workspace what a line says.
func (g *ground) spoil(t *testing.T, line string) {
	t.Helper()
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwX", g.work).Run() })
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = g.work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// plants runs a command that plants a hook, behind the walls of a tier.
func (g *ground) plants(t *testing.T, where tier, outcome string) {
	t.Helper()
	const line = "echo ran > marks/ran; d=.git/hooks; mkdir -p $d; [ -p $d/pre-commit ] || echo evil > " +
		"$d/pre-commit; true"
	cmd := g.command(where, "sandbox", "run", "--", "bash", "-c", line)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	_, ran := os.Stat(g.work + "/marks/ran")
	word, name, _ := strings.Cut(outcome, " ")
	switch said := stderr.String(); {
	case ran != nil && word == "stands":
		t.Errorf("refused: %v: %s", err, said)
	case ran != nil && (err == nil || !strings.Contains(said, name)):
		t.Errorf("the refusal does not name %s: %v: %s", name, err, said)
	case ran != nil:
	case word == "refused" && where.name == "namespaces":
		t.Error("it ran")
	case strings.Contains(said, "only the walls") && where.name == "namespaces":
		t.Errorf("weaker walls: %s", said)
	}
	if evil, err := os.ReadFile(g.work + "/.git/hooks/pre-commit"); err == nil && where.name == "namespaces" {
		t.Errorf("a hook was planted: %q", evil)
	}
}

// TestConversationsRefuseAWorkspace: a model gets no commands at all where the walls do not stand around the workspace.
func TestConversationsRefuseAWorkspace(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		for workspace, refused := range map[string]bool{"ln -s .envrc .envrc": false, "ln -s . .claude": true} {
			g := newGround(t)
			g.spoil(t, workspace)
			o := g.turn(t, where,
				[]string{bash(`python3 -c 'open(".g" + "it/hooks/pre-commit", "w").write("evil")'; touch marks/ran`)},
				"--permission-mode", "auto")
			_, ran := os.Stat(g.work + "/marks/ran")
			if _, err := os.Stat(g.work + "/.git/hooks/pre-commit"); err == nil || (ran != nil) != refused {
				t.Errorf("%s: planted %v, ran %v: %s", workspace, err == nil, ran == nil, o.stderr)
			}
			if walls := claimOf(o); !refused && walls != where.name {
				t.Errorf("%s: the walls are %q", workspace, walls)
			}
			if refused && (o.exit == 0 || len(o.requests) > 0 || !strings.Contains(o.out+o.stderr, ".claude")) {
				t.Errorf("%s: exit %d, %d requests: %s", workspace, o.exit, len(o.requests), o.stderr)
			}
		}
	}, namespaces())
}

// TestAWorkspaceOfAnotherUser: behind walls root has no right over the files of others, and the refusal says so.
func TestAWorkspaceOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		must(t, os.Chmod(g.work, 0o755))
		must(t, os.Chown(g.work, 65534, 65534))
		o := g.turn(t, where, []string{bash("touch ran")}, "--permission-mode", "auto")
		if _, err := os.Stat(g.work + "/ran"); err == nil || o.exit == 0 ||
			!strings.Contains(o.out+o.stderr, "it belongs to another user") {
			t.Errorf("exit %d, ran %v: %s", o.exit, err == nil, o.stderr)
		}
	}, namespaces())
}

// claimOf is the name of the walls in the first line.
func claimOf(o outcome) string {
	walls, _ := o.init["sandbox"].(map[string]any)
	name, _ := walls["name"].(string)
	return name
}

// TestHomeIsNoWorkspace: what lies in a home directory starts at the next login or with every git, so that commands
// have walls around a project alone, or none by the person's own word.
func TestHomeIsNoWorkspace(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		// In a script, because the text of a command that makes such a file is asked about without walls too.
		const script = "mkdir -p {home}/.config/git && echo evil > {home}/.config/git/config; touch ran"
		for name, c := range map[string]struct {
			dir, link string
			args      []string
			runs      bool
		}{
			"home":             {dir: "home"},
			"what holds it":    {dir: "."},
			"over a link":      {dir: "link", link: "home"},
			"a further one":    {dir: "work", args: []string{"--add-dir", "{home}"}},
			"a project there":  {dir: "home/project", runs: true},
			"walls off by you": {dir: "home", args: []string{"--sandbox", "off"}, runs: true},
		} {
			t.Run(name, func(t *testing.T) {
				g := newGround(t)
				must(t, os.MkdirAll(g.home+"/project", 0o700))
				if c.link != "" {
					must(t, os.Symlink(c.link, g.base+"/"+c.dir))
				}
				g.work = filepath.Join(g.base, c.dir)
				args := []string{"--permission-mode", "auto"}
				for _, arg := range c.args {
					args = append(args, g.fill(arg, ""))
				}
				g.write(t, g.work+"/do.sh", g.fill(script, ""))
				o := g.turn(t, where, []string{bash("sh do.sh")}, args...)
				if exists(g.work+"/ran") != c.runs {
					t.Fatalf("ran: %v\n%s\n%s", !c.runs, o.out, o.stderr)
				}
				said := o.out + o.stderr
				if !c.runs && (len(o.requests) > 0 || !strings.Contains(said, "home directory") ||
					!strings.Contains(said, "--sandbox off")) {
					t.Errorf("%d requests: %s", len(o.requests), said)
				}
				if exists(g.home+"/.config/git/config") != (c.args != nil && c.runs) {
					t.Error("the configuration of every git was written, or could not be without walls")
				}
				if c.args != nil {
					return
				}
				out, err := g.command(where, "sandbox", "run", "--", "touch", "ran2").CombinedOutput()
				if exists(g.work+"/ran2") != c.runs || (err == nil) != c.runs {
					t.Errorf("sandbox run: %v: %s", err, out)
				}
			})
		}
	}, namespaces(), landlock())
}
