package event

import "encoding/json"

// ToolSpec is what a model is told about a tool, and what is known of its calls in advance.
type ToolSpec struct {
	Name        string
	Description string
	Input       json.RawMessage // JSON schema of an object

	Kind    ToolKind // what its calls do; empty: none of the kinds fits
	Rule    RuleForm // what is in the brackets of a rule about it
	Changes bool     // it may change something
	With    string   // the tool that starts what this one controls: a rule for that one applies to both
}

// RuleForm is what is in the brackets of a rule about a tool, such as Bash(git diff:*); see docs/rules.md.
type RuleForm uint8

// The forms.
const (
	RuleBare    RuleForm = iota // nothing: the rule is about every call
	RuleCommand                 // the beginning of a command
	RulePath                    // a pattern for files
	RuleHost                    // the name of a host
)
