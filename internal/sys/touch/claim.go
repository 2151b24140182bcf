package touch

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"omniagent/internal/sys/workspace"
)

// Claim is what a call of the agent says that it does to a path. Claims count only where nothing sees the writes, and
// only together with the state of the files. Where the path was looked at before and after the call, a call that left
// it unchanged claims nothing, and each call has to find it as the snapshot, or the call before, left it. Then a change
// is the agent's
//
//   - if its calls, applied to what was there before the turn, make exactly what is there now, and one of them made it
//     last;
//   - if calls that took a short time name the path, its last change lies within one of them, and the content before
//     is that of the snapshot: the path was looked at, or the call replaced it as a whole;
//   - if the last call about the path says that it removes it, and it is gone; or that it moves it, and it is the same
//     file.
//
// A call explains no change that its record does not mention.
type Claim struct {
	Path         string // absolute, without links
	Began, Ended time.Time
	// Before and Is are the status of the path when the call began and when it ended; nil: nobody looked.
	Before, After *workspace.Status
	// Edit returns the content that the call makes; exists tells that there was a file. It is nil if the record of the
	// call does not say that.
	Edit    func(content []byte, exists bool) (made []byte, is, ok bool)
	From    string // the path that is moved to Path; "": none
	Whole   bool   // the whole content is replaced
	Removes bool
	Beneath bool // everything below Path is meant as well
	Unsure  bool // it may not have happened
}

// A call is recorded a moment after it began, and its files have the time of the kernel's tick.
const (
	late = mayBegin
	tick = 50 * time.Millisecond
	// soon is how long a call of unknown effect may take: others may write to the path meanwhile.
	soon = 2 * time.Second
)

// Claim adds what a call says. It is called when the call has ended.
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

// holds reports whether a time lies within the call. It returns false if the begin of the call is not known.
func (c *Claim) holds(at int64) bool { return c.from(at) && at <= c.Ended.Add(tick).UnixNano() }

// Starts reports whether a time is so near to the begin of the call that the call may have made its change by then.
func (c *Claim) Starts(at int64) bool { return c.from(at) && at <= c.Began.Add(tick).UnixNano() }

func (c *Claim) from(at int64) bool { return !c.Began.IsZero() && at >= c.Began.Add(-late).UnixNano() }

// idle reports whether the call is known not to have done what it says: its path is unchanged, or the file that it says
// it removes still exists.
func (c *Claim) idle() bool {
	switch {
	case c.Before == nil || c.After == nil:
		return false
	case present(*c.After) && c.Before.Inode == c.After.Inode && (c.Removes || c.Before.Changed == c.After.Changed):
		return c.Removes || !c.Starts(c.Before.Changed)
	}
	return !present(*c.Before) && !present(*c.After) && !c.Starts(c.Before.Changed)
}

// claims returns the claims of calls that may have changed a path.
func (w *Window) claims(name string) (all []Claim) {
	for _, c := range w.said {
		own := c.Path == name
		if !c.about(name) || c.idle() && (own || c.Removes || c.From != "") {
			continue
		}
		if !own { // Was and Is are those of the directory
			c.Before, c.After = nil, nil
		}
		all = append(all, c)
	}
	return all
}

// explained judges a change that nothing saw by the agent's calls. The caller has the lock of the log.
func (w *Window) explained(name string, before, after Moment) Verdict {
	was, is := before.Status(name), after.Status(name)
	all := w.claims(name)
	sure := slices.DeleteFunc(slices.Clone(all), func(c Claim) bool { return c.Unsure })
	switch {
	case is.Mode.IsDir() && !present(was) && w.saysMade(name):
		return Verdict{By: Agent}
	case len(all) == 0:
		return Verdict{Unknown, w.blind}
	case !chained(all, was, is):
		return Verdict{Unknown, ReasonBoth}
	}
	if len(sure) > 0 && edited(sure) {
		made, known := replay(sure, name, before)
		switch {
		case known && agrees(made, name, was, is, after) && last(sure, is) >= 0:
			return Verdict{By: Agent}
		case known && len(sure) == len(all):
			return Verdict{Unknown, ReasonUnexplained}
		}
	}
	end := all[len(all)-1]
	switch {
	case !present(is) && end.Removes && !end.Unsure:
		return Verdict{By: Agent}
	case !present(is) && !end.Removes:
		return Verdict{Unknown, w.blind}
	case moved(sure, name, before, is) || len(sure) == len(all) && timely(all, name, was, is):
		return Verdict{By: Agent}
	}
	return Verdict{Unknown, ReasonAmbiguous}
}

// chained reports whether each call whose path was looked at found it as the snapshot, or the call before, left it, and
// whether it is now as the last call left it.
func chained(all []Claim, was, is workspace.Status) bool {
	left := &was // nil: unknown
	for i, c := range all {
		again := i > 0 && c.Began.Equal(all[i-1].Began) // it is the same call
		if !again && left != nil && c.Before != nil && !same(*left, *c.Before) && !c.Starts(c.Before.Changed) {
			return false
		}
		left = c.After
	}
	return left == nil || same(*left, is)
}

// last returns the index of the first call that may have made the last change of a path, or -1. A missing path has no
// time of change: any call may have removed it.
func last(all []Claim, is workspace.Status) int {
	return slices.IndexFunc(all, func(c Claim) bool { return !present(is) || c.holds(is.Changed) })
}

// saysMade reports whether a call makes a directory, or names something in it that nobody looked at.
func (w *Window) saysMade(dir string) bool {
	return slices.ContainsFunc(w.said, func(c Claim) bool {
		switch {
		case c.Removes:
			return false
		case c.Before == nil:
			return c.about(dir) || strings.HasPrefix(c.Path, dir+"/")
		}
		return c.about(dir) && present(*c.After) && (!present(*c.Before) || c.Starts(c.Before.Changed))
	})
}

// edited reports whether all claims have an Edit.
func edited(all []Claim) bool {
	return !slices.ContainsFunc(all, func(c Claim) bool { return c.Edit == nil })
}

// file is a file that calls have made.
type file struct {
	content []byte
	exists  bool
}

// replay applies the edits of calls to the file of the snapshot.
func replay(all []Claim, name string, before Moment) (f file, ok bool) {
	if was := before.Status(name); present(was) {
		if !was.Mode.IsRegular() {
			return f, false
		}
		if f.content, ok = before.Content(name); !ok {
			f.content = nil // a call that replaces the file does not need its content
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

// agrees reports whether the file that calls made is the one that exists, with an unchanged mode.
func agrees(made file, name string, was, is workspace.Status, after Moment) bool {
	switch {
	case made.exists != present(is):
		return false
	case !made.exists:
		return true
	case !is.Mode.IsRegular() || present(was) && was.Mode != is.Mode || !present(was) && is.Mode&0o111 != 0:
		return false
	}
	content, ok := after.Content(name)
	return ok && bytes.Equal(content, made.content)
}

// moved reports whether a path is, unchanged, a file that a call says it moved there.
func moved(all []Claim, name string, before Moment, is workspace.Status) bool {
	return slices.ContainsFunc(all, func(c Claim) bool {
		return c.From != "" && same(before.Status(c.From+strings.TrimPrefix(name, c.Path)), is) &&
			(c.Path != name || c.holds(is.Changed)) // what lies in a directory that is moved keeps its time
	})
}

// replaces reports whether the call replaces the whole content of a path. It is false for a file that is moved there,
// whose author is unknown, and below a directory, where the call may have replaced any file.
func (c *Claim) replaces(name string) bool { return c.Whole && c.From == "" && c.Path == name }

// timely reports whether the last change of a path lies within a call that names it, and no earlier change is of
// others.
func timely(all []Claim, name string, was, is workspace.Status) bool {
	last := last(all, is)
	if last < 0 || slices.ContainsFunc(all, func(c Claim) bool { return c.Ended.Sub(c.Began) > soon }) {
		return false
	}
	first, replaced, kept := 0, false, !present(was) || was.Mode == is.Mode
	for i, c := range all[:last+1] { // the changes before a call that replaces the whole file are gone
		if c.replaces(name) {
			first, replaced = i, true
		}
	}
	for i, c := range all[first : last+1] {
		switch {
		case c.From != "":
			return false // moved has returned false for it
		case c.Before != nil: // chained has checked it
		case i == 0 && (replaced && kept || c.makes(was) || present(was) && same(was, withMode(is, was))):
		case i > 0 && c.Began.Equal(all[first+i-1].Began): // it is the same call
		default:
			return false
		}
	}
	return true
}

// makes reports whether a call has made the file at a path, or replaced what others had made there since the snapshot.
// A call that changes only a part of a file that the snapshot lacks would leave in it what a person wrote.
func (c *Claim) makes(was workspace.Status) bool { return !present(was) && c.Whole }

// withMode returns s with the mode of another status, to ignore a change of the mode.
func withMode(s, mode workspace.Status) workspace.Status {
	s.Mode = mode.Mode
	return s
}
