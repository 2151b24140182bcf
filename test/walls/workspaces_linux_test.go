package walls

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestWorkspaceDoesNotChooseTheWalls: whatever lies in a workspace, its commands have the walls of the machine, or none
// of them runs and the refusal names what is in the way. The list is that of internal/sandbox.
func TestWorkspaceDoesNotChooseTheWalls(t *testing.T) {
	text, err := os.ReadFile("../../internal/sandbox/testdata/workspaces.txt")
	must(t, err)
	inTiers(t, func(t *testing.T, where tier) {
		for line := range strings.Lines(string(text)) {
			parts := strings.SplitN(strings.TrimSpace(line), " | ", 3)
			if strings.HasPrefix(line, "#") || len(parts) != 3 {
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
			o := g.turn(t, where, []string{bash("d=.git/hooks; echo evil > $d/pre-commit; touch marks/ran")},
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

// claimOf is the name of the walls in the first line.
func claimOf(o outcome) string {
	walls, _ := o.init["sandbox"].(map[string]any)
	name, _ := walls["name"].(string)
	return name
}
