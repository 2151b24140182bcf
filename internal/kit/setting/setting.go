// Package setting holds the flags that all agents share, as values.
//
// Each word has one spelling and one meaning, for the command line, the configuration and the drivers. Every value
// knows where it came from, because that decides how it is passed on: what a person typed is sent as it is, a default
// is sent so that the agent's own flags can still override it.
package setting

import (
	"slices"
	"strings"
)

// Mode tells whether a person sits in front of the agent.
type Mode string

// The modes.
const (
	Interactive Mode = "interactive"
	OneShot     Mode = "one-shot"
)

// Approval is what an agent may do without a question. Flags, configuration, hosts, drivers and the engine all use
// these words.
type Approval string

// The approvals, from the strictest.
const (
	DenyAll Approval = "deny" // no tool runs
	AskAll  Approval = "ask"  // every call needs approval, even one that only reads
	Plan    Approval = "plan" // calls that only read run, others are denied: the agent describes what it would do
	// calls that only read run, others need approval; if nobody can be asked, they are denied
	Prompt Approval = "prompt"
	// calls run without approval if walls contain them and a snapshot can take them back; otherwise as prompt, but if
	// nobody can be asked, calls that the walls hold inside the workspace run
	Default  Approval = "default"
	AutoEdit Approval = "auto-edit" // files of the workspace may be changed too
	Yolo     Approval = "yolo"      // everything runs
)

// Approvals lists them, from the strictest.
func Approvals() []Approval {
	return []Approval{DenyAll, AskAll, Plan, Prompt, Default, AutoEdit, Yolo}
}

// Edits reports whether files of the workspace are changed without a question, even if a person could be asked.
func (a Approval) Edits() bool { return a == AutoEdit || a == Yolo }

// Stricter reports whether fewer calls run without a question than with prompt.
func (a Approval) Stricter() bool { return a == DenyAll || a == AskAll || a == Plan }

// Strictest returns the stricter of two approvals. If one is empty, it returns the other.
func Strictest(a, b Approval) Approval {
	for _, m := range Approvals() {
		if m == a || m == b {
			return m
		}
	}
	return ""
}

// ParseApproval reads an approval: one of the seven words, or another word for one: auto for yolo, interactive for ask,
// and those of Elsewhere. It ignores case and surrounding blanks.
func ParseApproval(word string) (Approval, bool) {
	switch word = strings.ToLower(Elsewhere().Read(strings.TrimSpace(word))); word {
	case "auto":
		return Yolo, true
	case "interactive":
		return AskAll, true
	}
	return Parse(word, Approvals())
}

// Words returns what a person sees of an approval: its name and its meaning.
func (a Approval) Words() (name, about string) {
	switch a {
	case DenyAll:
		return "Deny", "No tool runs"
	case AskAll:
		return "Ask about everything", "Every call is asked about, those that only read too"
	case Plan:
		return "Plan", "Only reads, and says what it would do"
	case Prompt:
		return "Ask", "Reads without a question, and asks before it changes anything"
	case Default:
		return "Default", "Ours asks only about what walls and undo do not cover; others as Ask does"
	case AutoEdit:
		return "Edit",
			"Files of the workspace are changed without a question; what else changes something is asked about"
	case Yolo:
		return "Everything", "Everything runs without a question, behind the walls"
	}
	return string(a), ""
}

// Common lists the approvals that every installed agent has a word for, from the strictest.
func Common() []Approval { return []Approval{Prompt, AutoEdit, Yolo} }

// Sandbox is what an agent's commands can reach.
type Sandbox string

// The sandboxes.
const (
	WorkspaceWrite Sandbox = "workspace-write" // writes stay inside the workspace
	Off            Sandbox = "off"
)

// Sandboxes lists them.
func Sandboxes() []Sandbox { return []Sandbox{WorkspaceWrite, Off} }

// Output is the form of what an agent prints.
type Output string

// The outputs.
const (
	Text       Output = "text"
	JSON       Output = "json"        // one object at the end
	StreamJSON Output = "stream-json" // one object a line while it works
)

// Outputs lists them.
func Outputs() []Output { return []Output{Text, JSON, StreamJSON} }

// Origin is who chose a value.
type Origin uint8

// The origins, from the weakest.
const (
	Unchosen   Origin = iota // nobody
	Derived                  // it follows from another flag, as sandbox off does from yolo
	Configured               // the configuration
	Typed                    // the command line
)

func (o Origin) String() string {
	return [...]string{"default", "derived", "configured", "typed"}[min(o, Typed)]
}

// Chosen is a value and who chose it.
type Chosen[T any] struct {
	Value  T
	Origin Origin
}

// Typed reports whether the value comes from the command line.
func (c Chosen[T]) Typed() bool { return c.Origin == Typed }

// Asked reports whether a person chose the value, now or earlier.
func (c Chosen[T]) Asked() bool { return c.Origin >= Configured }

// AsTyped returns a value as if a person had typed it.
func AsTyped[T any](v T) Chosen[T] { return Chosen[T]{v, Typed} }

// Shared are the flags that mean the same for every agent.
type Shared struct {
	Approval Chosen[Approval]
	Sandbox  Chosen[Sandbox]
	Output   Chosen[Output]
	Model    Chosen[string] // empty: the agent's own
	Web      Chosen[bool]
}

// Defaults are the values where nobody chose.
func Defaults() Shared {
	return Shared{
		Approval: Chosen[Approval]{Value: Prompt},
		Sandbox:  Chosen[Sandbox]{Value: WorkspaceWrite},
		Output:   Chosen[Output]{Value: Text},
	}
}

// Derive sets the values that follow from others: with yolo the sandbox is off, unless a person chose one.
func (s Shared) Derive() Shared {
	if s.Approval.Value == Yolo && !s.Sandbox.Asked() {
		s.Sandbox = Chosen[Sandbox]{Off, Derived}
	}
	return s
}

// Parse finds the word among the allowed ones. It ignores case and surrounding blanks.
func Parse[T ~string](word string, allowed []T) (T, bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	if i := slices.Index(allowed, T(word)); i >= 0 {
		return allowed[i], true
	}
	return "", false
}

// ParseWeb reads on, off, true, false, 1 and 0.
func ParseWeb(word string) (on, ok bool) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "on", "true", "1":
		return true, true
	case "off", "false", "0":
		return false, true
	}
	return false, false
}

// OnOff is the word for a switch.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
