package walls

import (
	"strings"
	"testing"
)

// TestPlannedWallsThatFail: walls that held in an earlier conversation are planned in the next one. If the workspace
// has changed so that they do not stand, the command is refused, the turn fails, and nothing more is done in it.
func TestPlannedWallsThatFail(t *testing.T) {
	g := newGround(t)
	turn := func(id string, steps ...string) outcome {
		return g.turn(t, namespaces(), steps, "--permission-mode", "auto", "--session-id", id)
	}
	planned := func(o outcome) bool {
		walls, _ := o.init["sandbox"].(map[string]any)
		return walls["planned"] == true
	}
	show := func(id string) string {
		out, err := g.command(namespaces(), "session", "show", id, "--output", "plain").CombinedOutput()
		must(t, err)
		return string(out)
	}
	if o := turn("one", bash("touch marks/first")); o.exit != 0 || planned(o) || !exists(g.work+"/marks/first") {
		t.Fatalf("exit %d, planned %v\n%s", o.exit, planned(o), o.stderr)
	}
	o := turn("two", bash("touch marks/second"))
	if o.exit != 0 || !planned(o) || !exists(g.work+"/marks/second") || strings.Contains(show("two"), "(planned)") {
		t.Errorf("exit %d, planned %v\n%s\n%s", o.exit, planned(o), o.stderr, show("two"))
	}
	g.spoil(t, "ln -s . .claude")
	o = turn("three", bash("touch marks/third"), call("Write", map[string]any{"file_path": "w.txt", "content": "x"}))
	if o.exit == 0 || !planned(o) || !strings.Contains(o.out, "the command was not started") {
		t.Errorf("exit %d, planned %v\n%s\n%s", o.exit, planned(o), o.out, o.stderr)
	}
	if exists(g.work+"/marks/third") || exists(g.work+"/w.txt") {
		t.Error("the turn goes on without walls")
	}
	if !strings.Contains(show("three"), "(planned)") {
		t.Errorf("that no walls stood is not said:\n%s", show("three"))
	}
	if o = turn("four", bash("touch marks/fourth")); o.exit == 0 || exists(g.work+"/marks/fourth") {
		t.Errorf("exit %d\n%s", o.exit, o.stderr)
	}
}
