package touch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
)

// scene is a directory in which an agent and somebody else write.
type scene struct {
	t      *testing.T
	dir    string
	log    *touch.Log
	window *touch.Window
	before snapshot
}

// snapshot is what the directory was before, and now what it is.
type (
	snapshot map[string]kept
	kept     struct {
		status workspace.Status
		text   string
	}
	now struct{}
)

func (s snapshot) Status(path string) workspace.Status { return s[path].status }

func (s snapshot) Content(path string) ([]byte, bool) {
	k, there := s[path]
	return []byte(k.text), there
}

func (now) Status(path string) workspace.Status { return statusOf(path) }

func (now) Content(path string) ([]byte, bool) {
	text, err := os.ReadFile(path)
	return text, err == nil
}

func statusOf(path string) workspace.Status {
	info, err := os.Lstat(path)
	if err != nil {
		return workspace.Status{}
	}
	return workspace.StatusOf(info)
}

func newScene(t *testing.T, names ...string) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), log: touch.New(), before: snapshot{}}
	for _, name := range names {
		s.write(name, "before")
		s.before[s.at(name)] = kept{s.status(name), "before"}
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

func (s *scene) status(name string) workspace.Status { return statusOf(s.at(name)) }

// agent writes a file while the supervisor looks.
func (s *scene) agent(name, text string) {
	s.t.Helper()
	was := s.status(name)
	f, err := os.OpenFile(s.at(name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	s.log.Wrote(s.at(name), was, time.Now())
	_, _ = f.WriteString(text)
	_ = f.Close()
	s.window.CatchUp()
}

func (s *scene) judge(name string, want touch.By) {
	s.t.Helper()
	s.window.CatchUp()
	if v := s.window.Judge(s.at(name), s.before, now{}); v.By != want {
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
	s.judge("first", touch.Unknown)
	s.judge("after", touch.Unknown)
	s.judge("between", touch.Unknown)
	s.judge("alone", touch.Agent)
	s.judge("theirs", touch.Other)
	s.log.Unseen("nothing sees it")
	s.judge("theirs", touch.Unknown)
}

// TestAFileOpenFromBeforeCounts: the agent writes through a descriptor that it had before the window.
func TestAFileOpenFromBeforeCounts(t *testing.T) {
	s := newScene(t, "log")
	f, err := os.OpenFile(s.at("log"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.log.Wrote(s.at("log"), s.status("log"), time.Now())
	s.window.Close()
	s.window = s.log.Open()
	_, _ = f.WriteString("more")
	_ = f.Close()
	s.judge("log", touch.Agent)
}

// TestWhatIsSeenWhileACallIsMadeIsTheAgents: the supervisor moves what the agent has just written, as git moves
// index.lock to index, and the file is looked for before the entry of that is read.
func TestWhatIsSeenWhileACallIsMadeIsTheAgents(t *testing.T) {
	s := newScene(t)
	began := time.Now()
	s.write("index.lock", "agent")
	is, moves := s.status("index.lock"), time.Now()
	if err := os.Rename(s.at("index.lock"), s.at("index")); err != nil {
		t.Fatal(err)
	}
	s.log.Wrote(s.at("index.lock"), workspace.Status{}, began)
	s.window.CatchUp() // nothing is there any more
	s.log.Moved(s.at("index.lock"), s.at("index"), is, workspace.Status{}, moves)
	s.judge("index", touch.Agent)
}

// TestAFileWhereOneWasMovedAway: a person makes a file where the agent has just moved one away, and the agent writes it
// too, before the entry of the move is read.
func TestAFileWhereOneWasMovedAway(t *testing.T) {
	for _, name := range []string{"plan", "d/plan"} {
		s := newScene(t, name)
		s.agent(name, "x")
		from, moves := strings.Split(name, "/")[0], time.Now()
		is := s.status(from)
		if err := os.Rename(s.at(from), s.at("old")); err != nil {
			t.Fatal(err)
		}
		s.write(name, "theirs")
		theirs, writes := s.status(name), time.Now()
		s.write(name, "theirs and the agent's")
		s.log.Moved(s.at(from), s.at("old"), is, workspace.Status{}, moves)
		s.log.Wrote(s.at(name), theirs, writes)
		s.judge(name, touch.Unknown)
	}
}

// TestWhatIsMovedKeepsItsOwner moves a directory in which somebody else has written.
func TestWhatIsMovedKeepsItsOwner(t *testing.T) {
	s := newScene(t, "d/whole", "d/theirs", "d/written")
	s.agent("d/written", "x")
	s.write("d/theirs", "theirs, longer")
	s.write("d/new", "theirs")
	is := s.status("d")
	if err := os.Rename(s.at("d"), s.at("e")); err != nil {
		t.Fatal(err)
	}
	s.log.Moved(s.at("d"), s.at("e"), is, workspace.Status{}, time.Now())
	s.judge("e/written", touch.Agent)
	s.judge("d/written", touch.Agent)
	s.judge("e/whole", touch.Agent)
	s.judge("d/whole", touch.Agent)
	s.judge("e/theirs", touch.Unknown)
	s.judge("e/new", touch.Unknown)
}

// TestWhatCallsExplain: nothing sees the writes, and the agent's calls name files. The clock is that of the files: a
// person writes before the call, after it, or not at all.
func TestWhatCallsExplain(t *testing.T) {
	whole := func(text string) func([]byte, bool) ([]byte, bool, bool) {
		return func([]byte, bool) ([]byte, bool, bool) { return []byte(text), true, true }
	}
	adds := func(content []byte, exists bool) ([]byte, bool, bool) {
		return append(content, "+agent"...), true, exists
	}
	fails := func([]byte, bool) ([]byte, bool, bool) { return nil, false, false } // there is no file to edit
	const before, after = 1, 2                                                    // when the person writes
	for _, c := range []struct {
		name   string
		claim  touch.Claim
		looked bool // somebody looked at the file when the call began and was over
		there  bool // the file was there before the turn
		person int
		makes  string // what the agent makes of the file; "": it removes it
		want   touch.By
	}{
		{"a new file", touch.Claim{Whole: true}, false, false, 0, "agent", touch.Agent},
		{"a new one that nobody looked at", touch.Claim{}, false, false, 0, "agent", touch.Unknown},
		{"a person's new one, not looked at", touch.Claim{}, false, false, before, "both", touch.Unknown},
		{"a person's new one, in an edit", touch.Claim{Edit: fails}, false, false, before, "both", touch.Unknown},
		{"an old one that nobody looked at", touch.Claim{}, false, true, 0, "agent", touch.Unknown},
		{"an old one", touch.Claim{}, true, true, 0, "agent", touch.Agent},
		{"an old one that a person wrote first", touch.Claim{}, true, true, before, "agent", touch.Unknown},
		{"a new one that a person made", touch.Claim{}, true, false, before, "agent", touch.Unknown},
		{"one that a person wrote last", touch.Claim{}, true, true, after, "agent", touch.Unknown},
		{"a whole one", touch.Claim{Whole: true}, false, true, 0, "agent", touch.Agent},
		{"a whole one that a person wrote first", touch.Claim{Whole: true}, false, true, before, "agent", touch.Agent},
		{"a whole one that a person wrote last", touch.Claim{Whole: true}, false, true, after, "agent", touch.Unknown},
		{"an edit", touch.Claim{Edit: adds}, false, true, 0, "before+agent", touch.Agent},
		{"an edit of what a person wrote", touch.Claim{Edit: adds}, false, true, before, "person+agent", touch.Unknown},
		{"an edit that a person wrote over", touch.Claim{Edit: adds}, true, true, after, "before+agent", touch.Unknown},
		{"another edit than is said", touch.Claim{Edit: whole("x")}, true, true, 0, "agent", touch.Unknown},
		{"one that may not have run", touch.Claim{Unsure: true}, true, true, 0, "agent", touch.Unknown},
		{"an unsure edit", touch.Claim{Edit: adds, Unsure: true}, true, true, 0, "before+agent", touch.Unknown},
		{"a removal that may not have run", touch.Claim{Removes: true, Unsure: true}, true, true, 0, "", touch.Unknown},
		{"a removal", touch.Claim{Removes: true}, false, true, 0, "", touch.Agent},
		{"a removal that is not said", touch.Claim{}, true, true, 0, "", touch.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			if c.there {
				s = newScene(t, "f")
			}
			s.log.Unseen(touch.ReasonUnwatched)
			s.window = s.log.Open()
			s.write("other", "theirs")
			if c.person == before {
				s.write("f", "person")
			}
			s.pass()
			c.claim.Path, c.claim.Began = s.at("f"), time.Now()
			was := s.status("f")
			if c.makes == "" {
				_ = os.Remove(s.at("f"))
			} else {
				s.write("f", c.makes)
			}
			c.claim.Ended = time.Now()
			if is := s.status("f"); c.looked {
				c.claim.Before, c.claim.After = &was, &is
			}
			s.log.Claim(c.claim)
			if c.person == after {
				s.pass()
				s.write("f", "person")
			}
			s.judge("f", c.want)
			s.judge("other", touch.Unknown)
		})
	}
}

// TestWhatAPersonMadeAndAnAgentMovesIsTheirs: it is not in the snapshot, so undo has no copy of it. Neither a move nor
// what the agent does to it afterwards makes it the agent's.
func TestWhatAPersonMadeAndAnAgentMovesIsTheirs(t *testing.T) {
	for _, looked := range []bool{true, false} {
		s := newScene(t)
		s.log.Unseen(touch.ReasonUnwatched)
		s.write("theirs", "theirs")
		s.pass()
		began := time.Now()
		if err := os.Rename(s.at("theirs"), s.at("moved")); err != nil {
			t.Fatal(err)
		}
		c := touch.Claim{
			Path: s.at("moved"), From: s.at("theirs"), Whole: true, Beneath: true, Began: began, Ended: time.Now(),
		}
		if is := s.status("moved"); looked {
			c.Before, c.After = &workspace.Status{}, &is
		}
		s.log.Claim(c)
		s.judge("moved", touch.Unknown)
		s.write("moved", "theirs+agent")
		c = touch.Claim{Path: s.at("moved"), Began: began, Ended: time.Now()}
		s.log.Claim(c)
		s.judge("moved", touch.Unknown)
	}
}

// TestACallWithoutATimeHoldsNoChange: its record does not say when it began.
func TestACallWithoutATimeHoldsNoChange(t *testing.T) {
	s := newScene(t)
	s.log.Unseen(touch.ReasonUnwatched)
	s.write("f", "theirs")
	s.log.Claim(touch.Claim{Path: s.at("f"), Whole: true, Ended: time.Now()})
	s.judge("f", touch.Unknown)
}

// pass lets as much time pass, on the clock of the files, as a call may be recorded late.
func (s *scene) pass() {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		s.write("clock", "")
		if s.status("clock").Changed > began.Add(400*time.Millisecond).UnixNano() {
			return
		}
	}
}

// TestALongCallOfUnknownBytesIsPerhaps: others may write into the file that it holds.
func TestALongCallOfUnknownBytesIsPerhaps(t *testing.T) {
	for takes, want := range map[time.Duration]touch.By{time.Second: touch.Agent, time.Minute: touch.Unknown} {
		s := newScene(t)
		s.log.Unseen(touch.ReasonUnwatched)
		ended := time.Now()
		s.write("f", "agent")
		s.log.Claim(touch.Claim{
			Path: s.at("f"), Whole: true, Began: ended.Add(time.Second/2 - takes), Ended: ended.Add(time.Second / 2),
		})
		s.judge("f", want)
	}
}
