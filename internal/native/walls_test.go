package native

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/policy"
)

// TestGoingOnOpensNothing whatever is asked for, and also behind a time in which no walls could be built.
func TestGoingOnOpensNothing(t *testing.T) {
	for _, c := range []struct{ held, wanted, asked, want string }{
		{"off", "", "on", "off"},
		{"off", "", "a.example", "off"},
		{"off", "", "", ""},
		{"", "", "on", "on"},
		{"on", "", "on", "on"},
		{"on", "", "a.example", "a.example"},
		{"a.example,b.example", "", "on", "a.example,b.example"},
		{"a.example,b.example", "", "B.example,c.example", "B.example"},
		{"a.example", "", "*.example", "off"},
		{"a.example:8443", "", "a.example", "off"},
		{"a.example", "", "off", "off"},
		{"a.example", "", "ON", "off"},
		{"a.example", "", ",", "off"},
		{"off", "", "off,on", "off"},
		{"on", "off", "on", "off"},
		{"on", "a.example", "on", "a.example"},
		{"on", "on", "on", "on"},
	} {
		o := Options{Log: func(string, ...any) {}}
		o.Sandbox, o.Walls.Network = string(setting.Off), c.asked
		o.stricter(session.Confinement{Sandbox: string(setting.WorkspaceWrite), Network: c.held, Wanted: c.wanted})
		if o.Walls.Network != c.want || o.Sandbox != string(setting.WorkspaceWrite) {
			t.Errorf("%+v: %s, %s", c, o.Walls.Network, o.Sandbox)
		}
		if o.Walls.Network != c.asked && policy.CheckNetwork(o.Walls.Network) != nil {
			t.Errorf("%+v: %q is not a network", c, o.Walls.Network)
		}
	}
}

// TestWallsThatCannotBeBuilt leave on record what they were to hold.
func TestWallsThatCannotBeBuilt(t *testing.T) {
	kept, err := session.Open(t.TempDir()).Create(t.Context(), session.Begin{ID: "one", Provider: "openai", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	o := Options{Kept: kept, Log: func(string, ...any) {}}
	o.Sandbox = string(setting.WorkspaceWrite)
	if err := (&Mind{}).keepWalls(o); err != nil {
		t.Fatal(err)
	}
	o.Walls.Network = "on"
	if o.stricter(kept.State().Confinement); o.Walls.Network != "off" || kept.State().Network != "on" {
		t.Errorf("%q, on record %+v", o.Walls.Network, kept.State().Confinement)
	}
}

// TestARehearsalMayWrite: the workspace of a rehearsal lies among the files of this program, which no other may be in.
func TestARehearsalMayWrite(t *testing.T) {
	state := filepath.Join(t.TempDir(), ".local/state/omniagent")
	for dir, want := range map[string]int{"rehearsal/a/work": 1, "runs/a": 2, "rehearsals": 2, "../rehearsal": 2} {
		root := filepath.Join(state, dir)
		if err := os.MkdirAll(root, 0o700); err != nil {
			t.Fatal(err)
		}
		if got := credentialsFrom(root, []string{state, "/home/a/.ssh"}); len(got) != want {
			t.Errorf("%s: %v", dir, got)
		}
	}
}

// TestWallsThatStandAreToldOnce at the beginning of a turn, if the turn in which they were built was over.
func TestWallsThatStandAreToldOnce(t *testing.T) {
	m := &Mind{}
	if m.tells(nil, "id") != nil || m.ready(Options{}) != nil {
		t.Error("there is a function without anything to do")
	}
	var told []event.Kind
	tell := m.tells(func(e event.Event) { told = append(told, e.Kind) }, "id")
	m.untold.Store(true)
	for _, kind := range []event.Kind{event.Text, event.TurnBegan, event.Ended, event.TurnBegan} {
		tell(event.Event{Kind: kind})
	}
	want := []event.Kind{event.Text, event.TurnBegan, event.Changed, event.Ended, event.TurnBegan}
	if !slices.Equal(told, want) {
		t.Errorf("%v", told)
	}
}
