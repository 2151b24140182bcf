package touch

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"omniagent/internal/workspace"
)

// Claim is what a call of the agent says that it does to a path. It counts where nothing sees the writes, and only with
// what the files themselves tell: a change is the agent's
//
//   - if its calls, applied to what was there before the turn, make exactly what is there now;
//   - if a call names the path, its last change lies within that call, and what was there before is nobody's but the
//     snapshot's: the call replaced it as a whole, or its status when the call began is that of the snapshot;
//   - if a call says that it removes the path, and it is gone; or that it moves it, and it is the same file.
type Claim struct {
	Path         string // absolute, without links
	Began, Ended time.Time
	// Was and Is are what was seen there when the call began and when it was over; nil: nobody looked.
	Was, Is *workspace.Status
	// Edit returns what the call makes of a content; exists: there was a file. nil: its record does not say that.
	Edit    func(content []byte, exists bool) (made []byte, is, ok bool)
	From    string // what is moved there; "": nothing
	Whole   bool   // what was there is replaced
	Removes bool
	Beneath bool // and everything beneath
}

// A call is recorded a moment after it began, and its files have the time of the kernel's tick.
const (
	late = mayBegin
	tick = 50 * time.Millisecond
)

// Claim takes what a call says. It comes when the call is over.
func (l *Log) Claim(c Claim) {
	if l.above != nil {
		l.above.Claim(c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows {
		w.said = append(w.said, c)
	}
}

// about reports whether a claim is about a path.
func (c *Claim) about(name string) bool {
	return c.Path == name || c.Beneath && strings.HasPrefix(name, c.Path+"/")
}

// holds reports whether a moment lies within the call. Without a time for its begin none does.
func (c *Claim) holds(at int64) bool {
	return !c.Began.IsZero() && at >= c.Began.Add(-late).UnixNano() && at <= c.Ended.Add(tick).UnixNano()
}

// explained says whether the agent's calls explain a change that nothing saw. It needs the lock of the log.
func (w *Window) explained(name string, before, after Moment) Verdict {
	was, is := before.Status(name), after.Status(name)
	var all []Claim
	for _, c := range w.said {
		if c.about(name) {
			all = append(all, c)
		}
	}
	switch {
	case is.Mode.IsDir() && !present(was) && w.saysBeneath(name):
		return Verdict{By: Agent}
	case len(all) == 0:
		return Verdict{Perhaps, w.blind}
	}
	if edited(all) {
		made, known := replay(all, name, before)
		switch {
		case known && agrees(made, name, was, is, after):
			return Verdict{By: Agent}
		case known:
			return Verdict{Perhaps, Unexplained}
		}
	}
	removes := slices.ContainsFunc(all, func(c Claim) bool { return c.Removes })
	switch {
	case !present(is) && removes:
		return Verdict{By: Agent}
	case !present(is):
		return Verdict{Perhaps, w.blind}
	case moved(all, name, before, is) || timely(all, name, was, is):
		return Verdict{By: Agent}
	}
	return Verdict{Perhaps, Unexplained}
}

// saysBeneath reports whether a call names a directory that it makes, or something in it.
func (w *Window) saysBeneath(dir string) bool {
	return slices.ContainsFunc(w.said, func(c Claim) bool {
		return !c.Removes && (c.about(dir) || strings.HasPrefix(c.Path, dir+"/"))
	})
}

// edited reports whether it is said of each claim what it makes of the content.
func edited(all []Claim) bool {
	return !slices.ContainsFunc(all, func(c Claim) bool { return c.Edit == nil })
}

// file is what calls make of one.
type file struct {
	content []byte
	exists  bool
}

// replay applies calls to what was there before.
func replay(all []Claim, name string, before Moment) (f file, ok bool) {
	if was := before.Status(name); present(was) {
		if !was.Mode.IsRegular() {
			return f, false
		}
		if f.content, ok = before.Content(name); !ok {
			f.content = nil // a call that replaces it does not need that
		}
		f.exists = true
	}
	for _, c := range all {
		if f.content, f.exists, ok = c.Edit(f.content, f.exists); !ok {
			return f, false
		}
	}
	return f, true
}

// agrees reports whether what calls made is what is there, with its mode from before.
func agrees(made file, name string, was, is workspace.Status, after Moment) bool {
	switch {
	case made.exists != present(is):
		return false
	case !made.exists:
		return true
	case !is.Mode.IsRegular() || present(was) && was.Mode != is.Mode:
		return false
	}
	content, ok := after.Content(name)
	return ok && bytes.Equal(content, made.content)
}

// moved reports whether a path is, unchanged, a file that a call says it moved there.
func moved(all []Claim, name string, before Moment, is workspace.Status) bool {
	return slices.ContainsFunc(all, func(c Claim) bool {
		return c.From != "" && same(before.Status(c.From+strings.TrimPrefix(name, c.Path)), is)
	})
}

// replaces reports whether nothing is left of what was at a path. Nobody knows whose a file is that is moved there, nor
// which of those beneath a directory a call has replaced.
func (c *Claim) replaces(name string) bool { return c.Whole && c.From == "" && c.Path == name }

// timely reports whether the last change of a path lies within a call that names it, and no earlier one is of others.
func timely(all []Claim, name string, was, is workspace.Status) bool {
	last := slices.IndexFunc(all, func(c Claim) bool { return c.holds(is.Changed) })
	if last < 0 {
		return false
	}
	first, replaced := 0, false
	for i, c := range all[:last+1] { // what a call replaces as a whole is nobody's any more
		if c.replaces(name) {
			first, replaced = i, true
		}
	}
	left := &was // as the snapshot, or the call before, left it; nil: not known
	for i, c := range all[first : last+1] {
		switch {
		case c.From != "":
			return false // moved has said no
		case i == 0 && (replaced || c.Was == nil && (c.makes(was) || present(was) && same(was, withMode(is, was)))):
		case i > 0 && c.Began.Equal(all[first+i-1].Began): // it is the same call
		case c.Was != nil && c.holds(c.Was.Changed): // it was looked at when the call had begun to write
		case c.Was != nil && left != nil && same(*left, *c.Was):
		default:
			return false
		}
		left = c.Is
	}
	return left == nil || same(*left, is)
}

// makes reports whether a call has made what is at a path, or replaced what others had made there since the snapshot.
// One that only changes a file would leave in it what a person wrote, in a file that the snapshot lacks.
func (c *Claim) makes(was workspace.Status) bool { return !present(was) && c.Whole }

// withMode is a status with the mode of another: a call that changes the mode alone leaves the rest.
func withMode(s, mode workspace.Status) workspace.Status {
	s.Mode = mode.Mode
	return s
}
