package touch_test

import (
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/touch"
	"omniagent/internal/workspace"
)

// scene is a directory in which an agent and somebody else write.
type scene struct {
	t      *testing.T
	dir    string
	log    *touch.Log
	window *touch.Window
	before map[string]workspace.Status
}

func newScene(t *testing.T, names ...string) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), log: touch.New(), before: map[string]workspace.Status{}}
	for _, name := range names {
		s.write(name, "before")
		s.before[s.at(name)] = s.status(name)
	}
	s.window = s.log.Open()
	return s
}

func (s *scene) at(name string) string { return filepath.Join(s.dir, name) }

func (s *scene) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.at(name)), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.at(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) status(name string) workspace.Status {
	info, err := os.Lstat(s.at(name))
	if err != nil {
		return workspace.Status{}
	}
	return workspace.StatusOf(info)
}

// agent writes a file while the supervisor looks.
func (s *scene) agent(name, text string) {
	s.t.Helper()
	was := s.status(name)
	f, err := os.OpenFile(s.at(name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	s.log.Wrote(s.at(name), was, true)
	_, _ = f.WriteString(text)
	_ = f.Close()
	s.window.CatchUp()
}

func (s *scene) judge(name string, want touch.By) {
	s.t.Helper()
	was := func(path string) workspace.Status { return s.before[path] }
	s.window.CatchUp()
	if v := s.window.Judge(s.at(name), was, s.status(name)); v.By != want {
		s.t.Errorf("%s is by %s (%s), not by %s", name, v.By, v.Why, want)
	}
}

// TestWhoseAPathIs lets an agent and somebody else write in every order.
func TestWhoseAPathIs(t *testing.T) {
	s := newScene(t, "first", "after", "between", "alone", "theirs")
	s.write("first", "theirs, longer")
	s.agent("first", "x")
	s.agent("after", "x")
	s.write("after", "theirs, longer")
	s.agent("between", "x")
	s.write("between", "theirs, longer")
	s.agent("between", "y")
	s.agent("alone", "x")
	s.agent("alone", "y")
	s.write("theirs", "theirs, longer")
	s.judge("first", touch.Perhaps)
	s.judge("after", touch.Perhaps)
	s.judge("between", touch.Perhaps)
	s.judge("alone", touch.Agent)
	s.judge("theirs", touch.Other)
	s.log.Unseen("nothing sees it")
	s.judge("theirs", touch.Perhaps)
}

// TestAFileOpenFromBeforeCounts: the agent writes through a descriptor that it had before the window.
func TestAFileOpenFromBeforeCounts(t *testing.T) {
	s := newScene(t, "log")
	f, err := os.OpenFile(s.at("log"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.log.Wrote(s.at("log"), s.status("log"), true)
	s.window.Close()
	s.window = s.log.Open()
	_, _ = f.WriteString("more")
	_ = f.Close()
	s.judge("log", touch.Agent)
}

// TestWhatIsMovedKeepsItsOwner moves a directory in which somebody else has written.
func TestWhatIsMovedKeepsItsOwner(t *testing.T) {
	s := newScene(t, "d/whole", "d/theirs")
	s.write("d/theirs", "theirs, longer")
	s.write("d/new", "theirs")
	is := s.status("d")
	if err := os.Rename(s.at("d"), s.at("e")); err != nil {
		t.Fatal(err)
	}
	s.log.Moved(s.at("d"), s.at("e"), is, workspace.Status{}, true)
	s.judge("e/whole", touch.Agent)
	s.judge("d/whole", touch.Agent)
	s.judge("e/theirs", touch.Perhaps)
	s.judge("e/new", touch.Perhaps)
}
