// Package guard decides by the text of a tool's call alone: allow, ask or deny.
//
// Where whole walls contain a command and a snapshot can undo it (see Ground), effects decide: it asks only about those
// beyond both. Anywhere else it allows by itself only lists and pipes of commands from one short list (readonly.go),
// and asks about every other; in every mode about what it cannot read or what its tables deny.
//
// It promises: what that list allows executes only the programs that it names, and changes no file; adding a deny or
// ask rule never makes a verdict laxer, whatever the order and the source of the rules. A rule covers a command that is
// plainly written, and what cannot be read plainly and may be that command is asked about.
//
// It is not a sandbox. It sees a text, not a system: it follows symbolic links only with Place.Leads, as they lie
// before a command runs, cannot know which program PATH finds, and a person may allow more than it does. The kernel
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
	Explicit bool     `json:"explicit"` // a rule or an answer of the user decided it, not the built-in tables
	Firm     bool     `json:"firm"`     // every mode asks, and only a rule that names it lifts the question
	// NeedsPerson means that it never runs where nobody can be asked, even behind walls: it publishes something, starts
	// an agent, or changes what is protected or what no snapshot has.
	NeedsPerson bool `json:"grave"`
	// Refusal is what the walls refuse of a command, whatever is answered here, and the setting that would open it.
	Refusal string `json:"shut,omitempty"`
	// NeedsNetwork: it may need the network, which the walls keep closed, so a yes has to open it. Answered: one did.
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
	// Kept returns further paths that only a person may change, such as the hooks that git's configuration names; may
	// be nil
	Kept func() []string
	// Fresh returns why nobody but a person makes a path that is not there yet, see autorun.Policy, or ""; may be nil
	Fresh func(path string) string
	// InGit reports whether a path lies in a git directory, whatever its name; nil: only .git is one
	InGit func(path string) bool
	// Leads returns where a path leads, or each match of one with * or ?, if a link is on the way. nil: links are not
	// followed
	Leads func(path string) []string
	// Names lists a directory, for what a pattern becomes. nil: that is not known
	Names  func(dir string) []string
	Ground Ground
}

// Set selects one of the two sets of built-in denials. Everything else is the same for both.
type Set uint8

// The sets.
const (
	Tools      Set = iota // Claude's tool names
	SysBuiltIn            // the routes SysBuiltIn.*
)

// barred is a denial that nothing lifts.
func barred(piece, text string) Verdict {
	v := one(Deny, piece, text)
	v.never = true
	return v
}

func one(w Decision, piece, text string) Verdict {
	return Verdict{Decision: w, Reasons: []Reason{{Decision: w, Text: text, Piece: piece, Source: BuiltIn}}}
}

// add adds a reason, and takes over its Decision if that is stricter.
func (v *Verdict) add(r Reason) {
	v.Decision = max(v.Decision, r.Decision)
	if !slices.Contains(v.Reasons, r) {
		v.Reasons = append(v.Reasons, r)
	}
}

// sort puts the strictest reason first, then a rule, which counts in more modes than what is built in, and keeps the
// order of the line among equals.
func (v *Verdict) sort() {
	builtIn := func(r Reason) int {
		if r.Source == BuiltIn {
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
