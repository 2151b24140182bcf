package native_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/native"
)

// TestPlannedWalls: a conversation says that its walls are planned until a command ran in them. If they do not stand,
// its turn fails, and what the model wanted to do next is not done.
func TestPlannedWalls(t *testing.T) {
	bash := `{"call":{"name":"Bash","input":{"command":"echo hi"}}}`
	d := newDesk(t, `[`+bash+`,{"say":"ok"},`+bash+`,
		{"call":{"name":"Write","input":{"file_path":"written","content":"x"}}},{"say":"ok"}]`)
	state := t.TempDir()
	walled := func(o *native.Options) { o.Sandbox, o.Walls.State = "workspace-write", state }
	m := d.open(t, walled)
	if walls := m.Facts().Walls; walls.Name != "namespaces" {
		t.Skipf("only walls of namespaces are built later, and here they are %s", walls.Name)
	} else if walls.Planned {
		t.Error("the first conversation in a workspace does not try its walls")
	}
	m = d.open(t, walled)
	if !m.Facts().Walls.Planned {
		t.Fatal("walls that have held are tried before the conversation")
	}
	all := say(t, m, "go")
	told := slices.ContainsFunc(all, func(e event.Event) bool {
		return e.Kind == event.Changed && e.Facts.Walls != nil && !e.Facts.Walls.Planned
	})
	if !told {
		t.Error("no event says that the walls stand")
	}
	if e := end(all); !e.OK || !strings.Contains(results(all), "hi") || m.Facts().Walls.Planned {
		t.Errorf("%+v, planned %v: %s", e, m.Facts().Walls.Planned, results(all))
	}

	m = d.open(t, walled)
	if err := os.Rename(d.dir, d.dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(d.dir+"-away", d.dir); err != nil {
		t.Fatal(err)
	}
	all = say(t, m, "go")
	why := slices.IndexFunc(all, func(e event.Event) bool {
		return e.Fault != nil && strings.Contains(e.Fault.Message, "the command was not started") &&
			strings.Contains(e.Fault.Suggestion, "--sandbox off")
	})
	if e := end(all); e.OK || e.Reason != event.FailedTurn || why < 0 {
		t.Errorf("%+v: %s", e, results(all))
	}
	if _, err := os.Stat(d.dir + "-away/written"); err == nil || !m.Facts().Walls.Planned {
		t.Errorf("the turn goes on without walls; planned %v", m.Facts().Walls.Planned)
	}
}
