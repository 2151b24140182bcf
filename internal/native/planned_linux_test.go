package native_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
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

// walled opens two conversations with walls, of which the second has only planned them. homes is the directory in which
// they keep home directories of commands.
func (d *desk) walled(t *testing.T) (homes string, m *mind) {
	t.Helper()
	state := t.TempDir()
	walled := func(o *native.Options) {
		o.Sandbox, o.Walls.State, o.Mode = "workspace-write", state, setting.Yolo
	}
	first := d.open(t, walled)
	if walls := first.Facts().Walls; walls.Name != "namespaces" {
		t.Skipf("only walls of namespaces are built later, and here they are %s", walls.Name)
	}
	found, err := filepath.Glob(filepath.Join(state, "walls", "home-*"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	first.close(t)
	m = d.open(t, walled)
	if !m.Facts().Walls.Planned {
		t.Fatal("walls that have held are tried before the conversation")
	}
	return found[0], m
}

// away replaces the workspace with a link, behind which no walls can be built, until back is called.
func (d *desk) away(t *testing.T) (back func()) {
	t.Helper()
	for _, err := range []error{os.Rename(d.dir, d.dir+"-away"), os.Symlink(d.dir+"-away", d.dir)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		for _, err := range []error{os.Remove(d.dir), os.Rename(d.dir+"-away", d.dir)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

const echo = `{"call":{"name":"Bash","input":{"command":"echo hi"}}}`

// TestPlannedWallsOfASubAgent: if they do not stand, the whole turn fails, and not only the sub-agent's part of it.
func TestPlannedWallsOfASubAgent(t *testing.T) {
	d := newDesk(t, `[{"call":{"name":"Task","input":{"description":"d","prompt":"p"}}},`+echo+`,{"say":"ok"}]`)
	_, m := d.walled(t)
	d.away(t)
	all := say(t, m, "go")
	var commands []string // of whom; the sub-agent begins with the script again, and has no Task
	for _, e := range all {
		if e.Kind == event.ToolCall && e.Call.Name == "Bash" {
			commands = append(commands, e.Parent)
		}
	}
	if e := end(all); e.OK || e.Reason != event.FailedTurn || len(commands) != 1 || commands[0] == "" {
		t.Errorf("%+v, commands of %q: %s", e, commands, results(all))
	}
}

// TestPlannedWallsStandLater: after a failure, which leaves nothing in the way, below the temporary directory as well.
func TestPlannedWallsStandLater(t *testing.T) {
	d := newDesk(t, `[`+echo+`,{"say":"ok"},`+echo+`,{"say":"ok"}]`)
	_, m := d.walled(t)
	back := d.away(t)
	all := say(t, m, "go")
	why := slices.IndexFunc(all, func(e event.Event) bool {
		return e.Fault != nil && strings.Contains(e.Fault.Suggestion, "Begin a new conversation")
	})
	if end(all).OK || why < 0 {
		t.Errorf("%+v: %s", end(all), results(all))
	}
	back()
	if all = say(t, m, "go"); !end(all).OK || !strings.Contains(results(all), "hi") || m.Facts().Walls.Planned {
		t.Errorf("%+v, planned %v: %s", end(all), m.Facts().Walls.Planned, results(all))
	}
}

// TestKilledWhileWallsAreBuilt: the killed turn leaves no fault and no event to the next one, whose walls stand.
func TestKilledWhileWallsAreBuilt(t *testing.T) {
	d := newDesk(t, `[`+echo+`,{"say":"ok"},{"say":"ok"}]`)
	homes, m := d.walled(t)
	if err := os.MkdirAll(homes, 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(homes)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Turn(t.Context(), []event.Block{{Text: "go"}}) }()
	for called := false; !called; runtime.Gosched() {
		m.mu.Lock()
		called = slices.ContainsFunc(m.events, func(e event.Event) bool { return e.Kind == event.ToolCall })
		m.mu.Unlock()
	}
	m.Kill()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	_ = held.Close()
	all := say(t, m, "go")
	if e := end(all); !e.OK {
		t.Errorf("%+v: %s", e, results(all))
	}
}
