package undo

import (
	"errors"

	"omniagent/internal/kit/fault"
)

// NotRestored is a path that was not restored.
type NotRestored struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Cause  Cause  `json:"-"`

	Removes bool `json:"-"` // the path did not exist before the turn
}

// Cause says what can be done about a path that was kept.
type Cause int

// The causes.
const (
	CauseTemporary    Cause = iota // another try may restore it, as when the disk was full
	CauseChangedSince              // it was changed after the turn, or may have been: Request.TakeOld restores it
	CauseUncertain                 // it is not certain that the turn changed it: Request.TakeAll restores it
	CausePermanent                 // nothing restores it
)

// reason is why a path is kept. If its text is empty, the path is not kept.
type reason struct {
	cause Cause
	text  string
}

func (r reason) Error() string { return r.text }

// at returns the reason with the path that it is about.
func (r reason) at(path string) reason {
	r.text += ": " + path
	return r
}

// keep adds a path to what is kept.
func (p *plan) keep(path string, why error) {
	p.keptPaths[path] = true
	kept := NotRestored{Path: path, Reason: fault.Bare(why).Error()}
	if r := (reason{}); errors.As(why, &r) {
		kept.Cause = r.cause
	}
	p.kept = append(p.kept, kept)
}

// The reasons.
var (
	changedSince     = reason{CauseChangedSince, "it has changed since the turn left it"}
	changedByOthers  = reason{CauseChangedSince, "somebody else has changed it"} // of what the turn did not change
	changedMeanwhile = reason{CausePermanent, "somebody else changed it while the turn ran"}
	leftHidden       = reason{
		CauseChangedSince, "what the turn left there could not be read, so it may have been changed after the turn",
	}
	notHeld    = reason{CausePermanent, "no copy of its content was saved"}
	notSaved   = reason{CauseTemporary, "what is there now could not be brought back"}
	special    = reason{CausePermanent, "it is neither a file, a directory nor a link"}
	unreadable = reason{CauseTemporary, "it cannot be read"}
	notEmpty   = reason{CauseTemporary, "it contains files that the turn did not create"}
	foreign    = reason{CausePermanent, "it belongs to another working tree that was worked in"}
	shared     = reason{
		CausePermanent, "its refs are in one file with those of another working tree that was worked in",
	}
	gitAtWork = reason{CauseTemporary, "git is at work there, or has left a lock"}
	uncertain = reason{CauseUncertain, "it is not certain that the turn changed it"}
)
