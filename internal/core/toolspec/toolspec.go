// Package toolspec is what a tool is to a model, and to those who judge its calls.
//
// It promises that one description serves every model API, every host and every rule. It refuses to know what a tool
// does.
package toolspec

import "encoding/json"

// Tool is what a model is told of a tool, and what is known of its calls before there is one.
type Tool struct {
	Name        string
	Description string
	Input       json.RawMessage // JSON schema of an object

	Kind    Kind   // what its calls do; empty: nothing that anybody has a word for
	Rule    Form   // what stands in the brackets of a rule about it
	Changes bool   // it may change something
	With    string // the tool that begins what it looks after: who names that one means both
}

// Kind is what a tool does, whatever an agent calls it. Package event has the words.
type Kind string

// Form is what stands in the brackets of a rule about a tool, such as Bash(git diff:*); see docs/rules.md.
type Form uint8

// The forms.
const (
	Bare    Form = iota // nothing: the rule is about every call
	Command             // the beginning of a command
	Path                // a pattern for files
	Host                // the name of a host
)
