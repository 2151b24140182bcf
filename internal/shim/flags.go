package shim

import (
	"omniagent/internal/setting"
)

// takes is what may follow a flag.
type takes uint8

const (
	nothing  takes = iota // a switch; =true and =false are accepted
	aValue                // the rest after "=", or the next word
	maybe                 // the rest after "=", or the next word unless that begins with a dash
	assigned              // only the rest after "="
)

// Flag is a flag of a direct call of an agent.
type Flag struct {
	Name    string
	Short   string
	Value   string   // placeholder of the value in help; empty: a switch
	Allowed []string // all values, if they can be listed
	Default string
	Help    string
	takes   takes
	free    bool // any text is a value
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// Flags lists them in the order of the help. Help, manifest and the parser read the same list.
func Flags() []Flag {
	return []Flag{
		{Name: "prompt", Short: "p", Value: "TEXT", takes: aValue, Help: "do this and end; a pipe works too"},
		{Name: "agent", Value: "NAME", takes: aValue, free: true, Help: "the coding agent"},
		{
			Name: "approval", Value: "WORD", takes: aValue, Allowed: words(setting.Approvals()), Default: "prompt",
			Help: "what it may do unasked",
		},
		{
			Name: "permission-mode", Value: "WORD", takes: aValue, Allowed: words(setting.Approvals()),
			Help: "--approval WORD",
		},
		{Name: "auto-edit", Help: "--approval auto-edit"},
		{Name: "yolo", Help: "--approval yolo; no sandbox unless asked for"},
		{Name: "read-only", Help: "--approval plan"},
		{
			Name: "sandbox", Value: "WORD", takes: aValue, Allowed: words(setting.Sandboxes()),
			Default: "workspace-write",
			Help:    "what its commands can reach",
		},
		{
			Name: "output", Value: "FORM", takes: aValue, Allowed: words(setting.Outputs()), Default: "text",
			Help: "what the agent prints",
		},
		{Name: "json", Help: "--output json"},
		{Name: "stream-json", Help: "--output stream-json"},
		{Name: "model", Short: "m", Value: "NAME", takes: aValue, free: true, Help: "model, as the agent calls it"},
		{Name: "web", Value: "on|off", takes: maybe, Default: "off", Help: "may it use the web"},
		{
			Name: "output-schema", Value: "FILE|JSON", takes: aValue, free: true,
			Help: "print one line of JSON that fits",
		},
		{Name: "output-schema-retries", Value: "0..10", takes: aValue, Default: "2", Help: "further tries"},
		{Name: "cwd", Value: "DIR", takes: aValue, free: true, Help: "where the agent works"},
		{Name: "timeout", Value: "DURATION", takes: aValue, Help: "end it after so long"},
		{Name: "agentsDir", Value: "DIR", takes: aValue, free: true, Default: "agents", Help: "of omniagent.config.*"},
		{Name: "strict", Help: "exit 2 if one would not hold"},
		{Name: "report", Value: "FILE", takes: aValue, free: true, Help: "write what happened"},
		{Name: "trace-translate", Value: "only", takes: assigned, Help: "print its command line; =only: no run"},
		{Name: "rehearse", Value: "SCRIPT", takes: assigned, Help: "on a scripted model"},
		{
			Name: "undo", Value: "WORD", takes: aValue, Allowed: []string{"on", "off"},
			Help: "off: omniagent undo cannot take the run back",
		},
		{Name: "allow-workspace-agent", Help: "start a program that comes with the workspace"},
		{Name: "help", Short: "h", Help: "show this"},
		{Name: "version", Short: "V", Help: "print the version"},
	}
}
