// Package touch records which paths an agent has written, and tells who changed a path.
//
//	log := touch.New()          // gets what supervisors see, and what the agent's own tools write
//	w := log.Open()             // before the first snapshot
//	// an agent works, and others too
//	w.Close()
//	w.Judge(path, before, after) // of each path that differs
//
// Where everything that an agent starts is seen, the claims of its calls do not count, and a path that it did not write
// is not its own. A path that the agent and somebody else wrote, before, between or afterwards, is perhaps its own: the
// status of the path is compared each time with the one that the agent had left. Where something is not seen, the
// agent's calls may explain a change: see Claim.
package touch

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/sys/workspace"
)

// By says who changed a path.
type By string

// The values of By.
const (
	Agent   By = "agent"
	Unknown By = "perhaps" // it cannot be told
	Other   By = "other"   // not the agent's
)

// Verdict is a By, with the reason for Unknown.
type Verdict struct {
	By  By     `json:"by"`
	Why string `json:"why,omitempty"`
}

// The reasons.
const (
	ReasonBoth        = "somebody else changed it too while the turn ran"
	ReasonUnwatched   = "nothing saw who wrote it"
	ReasonUnexplained = "it is not what the agent's calls say that they made of it"
	ReasonAmbiguous   = "a command of the agent names it, and what that made of it cannot be told"
)

// Moment is the state of a workspace at a moment.
type Moment interface {
	// Status returns the status of a path, and zero if it does not exist.
	Status(path string) workspace.Status
	// Content returns the content of a regular file, and false if it is not known.
	Content(path string) ([]byte, bool)
}

// Log gets what an agent writes. Its methods may be called from several goroutines.
type Log struct {
	above    *Log // of the agent for whom this one works; nil: none
	mu       sync.Mutex
	windows  []*Window
	open     map[string]*opened   // paths that may still be written
	sources  map[*int]func() bool // report whether everything that was seen has been passed on
	blind    string               // why a write may be missing; "": none is
	settling bool
}

// opened is a path that the agent writes.
type opened struct {
	before workspace.Status
	begun  bool
	since  time.Time
	next   time.Time
	wait   time.Duration
}

// New returns an empty log.
func New() *Log { return &Log{open: map[string]*opened{}, sources: map[*int]func() bool{}} }

// Under returns the log of an agent that works for another one: above, which may be nil, gets everything too.
func Under(above *Log) *Log {
	l := New()
	l.above = above
	return l
}

// Attach implements sandbox.Watcher.
func (l *Log) Attach(delivered func() bool) (detach func()) {
	further := func() {}
	if l.above != nil {
		further = l.above.Attach(delivered)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := new(int)
	l.sources[key] = delivered
	return func() {
		further()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.sources, key)
	}
}

// Unseen records that nobody sees some writes of the agent, and why.
func (l *Log) Unseen(why string) {
	if l.above != nil {
		l.above.Unseen(why)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blind == "" {
		l.blind = why
	}
	for _, w := range l.windows {
		w.blind = l.blind
	}
}

// Wrote implements sandbox.Watcher.
func (l *Log) Wrote(path string, before workspace.Status, began time.Time) {
	if l.above != nil {
		l.above.Wrote(path, before, began)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows {
		w.wrote(path, before, began)
	}
	l.expect(path, before, !began.IsZero())
}

// Moved implements sandbox.Watcher.
func (l *Log) Moved(from, to string, is, before workspace.Status, began time.Time) {
	if l.above != nil {
		l.above.Moved(from, to, is, before, began)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows {
		w.moved(from, to, is, before, began)
	}
	delete(l.open, from)
	if is.Mode.IsDir() {
		for name := range l.open {
			if rest, beneath := strings.CutPrefix(name, from+"/"); beneath {
				l.open[to+"/"+rest] = l.open[name]
				delete(l.open, name)
			}
		}
	}
	l.expect(to, before, !began.IsZero())
}

// Put records that one of the agent's own tools has changed a path.
func (l *Log) Put(path string, before, after workspace.Status) {
	if l.above != nil {
		l.above.Put(path, before, after)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows {
		w.wrote(path, before, time.Time{})
		w.settled(path, after, time.Now())
	}
}

// Open begins a window. It gets the writes from now on, and those that are not finished.
func (l *Log) Open() *Window {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &Window{log: l, paths: map[string]*trace{}, blind: l.blind}
	for name := range l.open {
		w.paths[name] = &trace{vague: true}
	}
	l.windows = append(l.windows, w)
	return w
}

// Only returns a window in which the agent wrote the paths for which wrote is true.
func Only(wrote func(path string) bool) *Window { return &Window{only: wrote} }

// Window holds what was written while it was open.
type Window struct {
	only  func(path string) bool // what was written; nil: paths says it
	log   *Log
	blind string
	paths map[string]*trace
	moves []move // of directories
	said  []Claim
}

// trace is what is known of a path that the agent wrote.
type trace struct {
	before workspace.Status // when the agent wrote it first
	vague  bool             // before is not known
	after  workspace.Status // as the agent left it
	at     time.Time        // when after was found; zero: it is not known
	mixed  bool             // somebody else wrote it between two writes of the agent
	origin *origin          // what was moved there
}

// origin is what a path was before the agent moved it.
type origin struct {
	path   string
	before workspace.Status
	vague  bool
}

type move struct{ from, to string }

// wrote needs the lock of the log. If the call had begun when before was taken, before may be its result.
func (w *Window) wrote(path string, before workspace.Status, began time.Time) *trace {
	t := w.paths[path]
	switch {
	case t == nil:
		t = &trace{before: before}
		if from, moved := w.source(path); moved && present(before) {
			t.origin, t.vague = &origin{path: from, before: before}, true
		}
		w.paths[path] = t
	case !t.at.IsZero() && (began.IsZero() || t.at.Before(began)) && !unchanged(t.after, before, t.at):
		t.mixed = true
	}
	t.at = time.Time{}
	return t
}

// settled needs the lock of the log.
func (w *Window) settled(path string, after workspace.Status, at time.Time) {
	if t := w.paths[path]; t != nil {
		t.after, t.at = after, at
	}
}

// moved needs the lock of the log.
func (w *Window) moved(from, to string, is, before workspace.Status, began time.Time) {
	source, target := w.wrote(from, is, began), w.wrote(to, before, began)
	gone := began // nothing is where it was from then on
	if began.IsZero() {
		gone = time.Now()
	}
	target.inherit(from, source, gone)
	if !is.Mode.IsDir() {
		return
	}
	w.moves = append(w.moves, move{from, to})
	for name, t := range w.paths {
		rest, beneath := strings.CutPrefix(name, from+"/")
		if !beneath {
			continue
		}
		there := &trace{vague: true}
		there.after, there.at = t.after, t.at
		there.inherit(name, t, gone)
		w.paths[to+"/"+rest] = there
	}
}

// inherit makes t the trace of the file that source had until it was moved away at the time gone.
func (t *trace) inherit(from string, source *trace, gone time.Time) {
	t.mixed = t.mixed || source.mixed
	t.origin = source.origin
	if t.origin == nil {
		t.origin = &origin{from, source.before, source.vague}
	}
	source.origin, source.mixed = nil, false
	source.after, source.at = workspace.Status{}, gone
}

// source returns the name that a path had before directories were moved.
func (w *Window) source(name string) (from string, moved bool) {
	for _, m := range slices.Backward(w.moves) {
		if rest, beneath := strings.CutPrefix(name, m.to+"/"); beneath {
			name, moved = path.Join(m.from, rest), true
		}
	}
	return name, moved
}

// CatchUp waits a short time for writes that were seen and not passed on yet.
func (w *Window) CatchUp() {
	if w.log != nil {
		w.log.catchUp()
	}
}

// Close ends the window, after CatchUp.
func (w *Window) Close() {
	w.CatchUp()
	l := w.log
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.windows = slices.DeleteFunc(l.windows, func(other *Window) bool { return other == w })
}

// Exact reports whether everything was seen.
func (w *Window) Exact() bool {
	if w.log == nil {
		return true
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.blind == ""
}

// Under reports whether the agent works for another one; see the func Under.
func (w *Window) Under() bool { return w.log != nil && w.log.above != nil }

// Judge returns who changed a path, which is absolute and without links. The caller has called CatchUp.
func (w *Window) Judge(name string, before, after Moment) Verdict {
	if w.only != nil {
		if w.only(name) {
			return Verdict{By: Agent}
		}
		return Verdict{By: Other}
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	t, is := w.paths[name], after.Status(name)
	if t != nil {
		return w.traced(t, name, before, is)
	}
	if from, moved := w.source(name); moved && present(is) {
		if same(before.Status(from), is) {
			return Verdict{By: Agent}
		}
		return Verdict{Unknown, ReasonBoth}
	}
	if !present(is) && w.movedAway(name) {
		return Verdict{By: Agent}
	}
	was := before.Status(name)
	if present(was) && present(is) && was.Inode == is.Inode && w.hasInode(is.Inode) {
		return Verdict{By: Agent} // under another name of the same file
	}
	if w.blind != "" {
		return w.explained(name, before, after)
	}
	return Verdict{By: Other}
}

func (w *Window) traced(t *trace, name string, before Moment, after workspace.Status) Verdict {
	foreign := t.mixed || !t.vague && !same(t.before, before.Status(name)) ||
		!t.at.IsZero() && !unchanged(t.after, after, t.at)
	if o := t.origin; o != nil && present(after) && !o.vague {
		foreign = foreign || !same(o.before, before.Status(o.path))
	}
	if foreign {
		return Verdict{Unknown, ReasonBoth}
	}
	return Verdict{By: Agent}
}

// movedAway reports whether a path lay in a directory that the agent moved.
func (w *Window) movedAway(name string) bool {
	return slices.ContainsFunc(w.moves, func(m move) bool { return strings.HasPrefix(name, m.from+"/") })
}

// hasInode reports whether the agent wrote a file by any name.
func (w *Window) hasInode(inode uint64) bool {
	for _, t := range w.paths {
		if t.before.Inode == inode || t.after.Inode == inode {
			return true
		}
	}
	return false
}

// WroteBeneath reports whether the agent wrote something in a directory.
func (w *Window) WroteBeneath(dir string) bool {
	if w.only != nil {
		return w.only(dir)
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	for name := range w.paths {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

func present(s workspace.Status) bool { return s.Inode != 0 || s.Mode != 0 }

// same reports whether two statuses are of one file with the same content. The number of links and the owner do not
// count.
func same(a, b workspace.Status) bool {
	switch {
	case !present(a) || !present(b):
		return present(a) == present(b)
	case a.Inode != b.Inode || a.Mode != b.Mode:
		return false
	}
	return a.Mode.IsDir() || a.Size == b.Size && a.Modified == b.Modified
}

// unchanged is same, but allows that the time of modification was set to the past, as programs that unpack files do.
func unchanged(left, is workspace.Status, at time.Time) bool {
	if same(left, is) {
		return true
	}
	return present(left) && left.Inode == is.Inode && left.Mode == is.Mode && left.Size == is.Size &&
		is.Modified < left.Modified && is.Modified < at.UnixNano()
}
