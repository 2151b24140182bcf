package undo

import (
	"errors"

	"omniagent/internal/kit/fault"
)

// Kept is a path that was not restored.
type Kept struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Cause  Cause  `json:"-"`

	Removes bool `json:"-"` // the path did not exist before the turn
}

// Cause says what can be done about a path that was kept.
type Cause int

// The causes.
const (
	Passing Cause = iota // another try may restore it, as when the disk was full
	ByHand               // it was changed after the turn, or may have been: Request.TakeOld restores it
	Doubted              // it is not certain that the turn changed it: Request.TakeAll restores it
	Lasting              // nothing restores it
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
	kept := Kept{Path: path, Reason: fault.Bare(why).Error()}
	if r := (reason{}); errors.As(why, &r) {
		kept.Cause = r.cause
	}
	p.kept = append(p.kept, kept)
}

// The reasons.
var (
	changedSince     = reason{ByHand, "it has changed since the turn left it"}
	changedByOthers  = reason{ByHand, "somebody else has changed it"} // of what the turn did not change
	changedMeanwhile = reason{Lasting, "somebody else changed it while the turn ran"}
	leftHidden       = reason{
		ByHand, "what the turn left there could not be read, so it may have been changed after the turn",
	}
	notHeld    = reason{Lasting, "no copy of its content was saved"}
	notSaved   = reason{Passing, "what is there now could not be brought back"}
	special    = reason{Lasting, "it is neither a file, a directory nor a link"}
	unreadable = reason{Passing, "it cannot be read"}
	notEmpty   = reason{Passing, "it contains files that the turn did not create"}
	foreign    = reason{Lasting, "it belongs to another working tree that was worked in"}
	shared     = reason{Lasting, "its refs are in one file with those of another working tree that was worked in"}
	gitAtWork  = reason{Passing, "git is at work there, or has left a lock"}
	uncertain  = reason{Doubted, "it is not certain that the turn changed it"}
)
