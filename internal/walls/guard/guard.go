// Package guard decides from the text of a tool call alone: allow, ask or deny.
//
// Where whole walls contain a command and a snapshot can undo it (see Containment), effects decide: guard asks only
// about effects beyond both. Anywhere else it allows only lists and pipes of commands from one short list
// (readonly.go), and asks about everything else; in every mode it asks about what it cannot read or what its tables
// deny.
//
// It promises: what that list allows executes only the programs that it names, and changes no file; adding a deny or
// ask rule never makes a verdict laxer, whatever the order and the source of the rules. A rule covers a command that is
// plainly written, and what cannot be read plainly and may be that command is asked about.
//
// It is not a sandbox. It sees a text, not a system: it follows symbolic links only by Place.ResolveLinks, as they are
// before a command runs, it cannot know which program PATH finds, and a person may allow more than it does. The kernel
// enforces the rest; see package sandbox.
package guard

import (
	"cmp"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/pathname"
)

// Decision is what happens to a call. A greater Decision is stricter.
type Decision uint8

// The decisions, from the laxest to the strictest.
const (
	Allow Decision = iota
	Ask
	Deny
)

func (w Decision) String() string {
	switch w {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// BuiltIn is the source of a verdict that comes from no rule of the user.
const BuiltIn = "built in"

// Reason is why a part of a call has its Decision.
type Reason struct {
	Decision Decision `json:"word"`
	Text     string   `json:"text"`
	Piece    string   `json:"piece,omitempty"` // the part of the line, or the path
	Source   string   `json:"source"`          // BuiltIn, or where the user's rule comes from
}

// Verdict is the Decision about a call with all reasons, the strictest first.
type Verdict struct {
	Decision Decision `json:"word"`
	Reasons  []Reason `json:"reasons,omitempty"`
	Explicit bool     `json:"explicit"` // a rule or an answer of the user decided, not the built-in tables
	Firm     bool     `json:"firm"`     // every mode asks; only a rule that names it lifts the question
	// NeedsPerson means that the call never runs where nobody can be asked, even behind walls: it publishes something,
	// starts an agent, or changes something that is protected or that no snapshot has.
	NeedsPerson bool `json:"grave"`
	// Refusal is what the walls refuse to a command, whatever is answered here, and the setting that would allow it.
	Refusal string `json:"shut,omitempty"`
	// NeedsNetwork means that the call may need the network, which the walls keep closed, so an approval has to open
	// it. Answered means that an earlier answer decided.
	NeedsNetwork bool `json:"opens,omitempty"`
	Answered     bool `json:"answered,omitempty"`
	never        bool // no rule and no answer lifts the denial
}

// Place is where a call would run. Paths are absolute; Home may be empty.
type Place struct {
	Root string   // the workspace
	More []string // further directories of the workspace
	Dir  string   // the working directory, Root or below it
	Home string
	// the agents whose programs, settings and logins are recognised
	Agents Agents
	// Kept returns further paths that only a person may change, such as the hooks that git's configuration names; it
	// may be nil
	Kept func() []string
	// Fresh returns why only a person may create a path that does not exist yet, or "", see autorun.Policy; it may be
	// nil
	Fresh func(path string) string
	// InGit reports whether a path lies in a git directory, whatever its name; nil: only .git is one
	InGit func(path string) bool
	// ResolveLinks returns where a path leads if a link is on the way, or where each match of a pattern with * or ?
	// leads. nil: links are not followed
	ResolveLinks func(path string) []string
	// Names lists a directory, to find the matches of a pattern. nil: that is unknown
	Names       func(dir string) []string
	Containment Containment
}

// Set selects one of the two sets of built-in denials. Everything else is the same for both.
type Set uint8

// The sets.
const (
	Tools      Set = iota // Claude's tool names
	SysBuiltIn            // the routes SysBuiltIn.*
)

// barred returns a denial that nothing lifts.
func barred(piece, text string) Verdict {
	v := one(Deny, piece, text)
	v.never = true
	return v
}

func one(w Decision, piece, text string) Verdict {
	return Verdict{Decision: w, Reasons: []Reason{{Decision: w, Text: text, Piece: piece, Source: BuiltIn}}}
}

// add adds a reason, and its Decision if that is stricter.
func (v *Verdict) add(r Reason) {
	v.Decision = max(v.Decision, r.Decision)
	if !slices.Contains(v.Reasons, r) {
		v.Reasons = append(v.Reasons, r)
	}
}

// sort puts the strictest reason first and keeps the order of the line among equals. A rule comes before what is built
// in, which asks in fewer modes, unless that asks in every mode.
func (v *Verdict) sort() {
	builtIn := func(r Reason) int {
		if r.Source == BuiltIn && !v.Firm && !v.NeedsPerson {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(v.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Decision, a.Decision), cmp.Compare(builtIn(a), builtIn(b)))
	})
}

// root returns the innermost directory of the workspace that contains path, which is clean, or "".
func (p Place) root(path string) string {
	best := ""
	for _, root := range append([]string{p.Root}, p.More...) {
		if root = filepath.Clean(root); pathname.Within(root, path) && len(root) > len(best) {
			best = root
		}
	}
	return best
}
