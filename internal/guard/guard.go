// Package guard says what a call of a tool may do, by its text alone: allow, ask or deny.
//
// It promises that a command which it allows by itself executes nothing but the programs it names, that what it allows
// changes no file, and that adding a deny or ask rule never makes a word laxer, whatever the order and the source of
// the rules. A line is allowed only where every part of it is in a closed grammar; what cannot be parsed is denied,
// what is not known is asked about, and a limit that is exceeded is a denial.
//
// It refuses to be a wall. It sees a text, not a system: it follows no symbolic link, does not know what a program
// found in PATH really is, and a person may allow what it would not. The kernel holds what it cannot; see package
// sandbox.
package guard

import (
	"cmp"
	"path/filepath"
	"slices"
)

// Word is what may happen with a call. A greater word is stricter.
type Word uint8

// The words, from the laxest.
const (
	Allow Word = iota
	Ask
	Deny
)

func (w Word) String() string {
	switch w {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// BuiltIn is the source of what no rule of a user says.
const BuiltIn = "built in"

// Reason is why a part of a call has its word.
type Reason struct {
	Word   Word   `json:"word"`
	Text   string `json:"text"`
	Piece  string `json:"piece,omitempty"` // the part of the line, or the path
	Source string `json:"source"`          // BuiltIn, or where a user's rule stands
}

// Verdict is the word on a call with all its reasons, the worst first.
type Verdict struct {
	Word     Word     `json:"word"`
	Reasons  []Reason `json:"reasons,omitempty"`
	Explicit bool     `json:"explicit"` // a rule or an answer of the user decided it, not the built-in tables
	Firm     bool     `json:"firm"`     // a question that is asked in every mode: the answer decides what may run later
}

// Place is where a call would happen. All are absolute; Home may be empty where nobody has one.
type Place struct {
	Root string   // what belongs to the conversation
	More []string // further directories that do
	Dir  string   // the working directory, Root or beneath it
	Home string
	// whose programs, settings and logins are told from others
	Agents Agents
}

// Set is one of the two sets of built-in denials. Everything else is the same for both.
type Set uint8

// The sets.
const (
	Tools        Set = iota // Claude's tool names
	SysBuiltIn              // the routes SysBuiltIn.*
	numberOfSets            // for tests
)

func one(w Word, piece, text string) Verdict {
	return Verdict{Word: w, Reasons: []Reason{{Word: w, Text: text, Piece: piece, Source: BuiltIn}}}
}

// add takes a reason in, and its word where that is worse.
func (v *Verdict) add(r Reason) {
	v.Word = max(v.Word, r.Word)
	if !slices.Contains(v.Reasons, r) {
		v.Reasons = append(v.Reasons, r)
	}
}

// sort puts the worst first and keeps the order of the line among equals.
func (v *Verdict) sort() {
	slices.SortStableFunc(v.Reasons, func(a, b Reason) int { return cmp.Compare(b.Word, a.Word) })
}

// root is the directory of the conversation in which a path lies, which is clean; "" where there is none. Of several it
// is the innermost.
func (p Place) root(path string) string {
	best := ""
	for _, root := range append([]string{p.Root}, p.More...) {
		if root = filepath.Clean(root); within(root, path) && len(root) > len(best) {
			best = root
		}
	}
	return best
}
