package event

import "encoding/json"

// ToolSpec is what a model is told of a tool, and what is known of its calls before there is one.
type ToolSpec struct {
	Name        string
	Description string
	Input       json.RawMessage // JSON schema of an object

	Kind    ToolKind // what its calls do; empty: nothing that anybody has a word for
	Rule    RuleForm // what stands in the brackets of a rule about it
	Changes bool     // it may change something
	With    string   // the tool that begins what it looks after: who names that one means both
}

// RuleForm is what stands in the brackets of a rule about a tool, such as Bash(git diff:*); see docs/rules.md.
type RuleForm uint8

// The forms.
const (
	RuleBare    RuleForm = iota // nothing: the rule is about every call
	RuleCommand                 // the beginning of a command
	RulePath                    // a pattern for files
	RuleHost                    // the name of a host
)
