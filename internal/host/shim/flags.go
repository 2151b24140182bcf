package shim

import (
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
)

// takes says what may follow a flag.
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
	Common  bool // often used
	takes   takes
	free    bool             // any text is a value
	also    setting.Synonyms // words of other programs for the values
	as      string           // another spelling of the name
}

// Optional reports whether the flag has a meaning without its value too.
func (f Flag) Optional() bool { return f.takes == maybe || f.takes == assigned }

// events is the value of --output for events, which are the same for every agent.
const events = "events"

// Flags returns all flags, in the order of the help. Help, manifest and the parser use the same list.
//
// Long because it is that list.
func Flags() []Flag {
	return []Flag{
		{
			Name: "prompt", Short: "p", Value: "TEXT", takes: aValue, Common: true,
			Help: "one prompt, then exit; default: text from a pipe",
		},
		{Name: "with-stdin", Help: "what comes from a pipe stands behind the prompt of -p"},
		{Name: "agent", Value: "NAME", takes: aValue, free: true, Common: true, Help: "the coding agent"},
		{
			Name: "approval", Value: "WORD", takes: aValue, Allowed: text.Words(setting.Approvals()), Default: "prompt",
			Common: true, Help: "what runs unasked", also: setting.Elsewhere(),
		},
		{
			Name: "permission-mode", Value: "WORD", takes: aValue, Allowed: text.Words(setting.Approvals()),
			Help: "--approval WORD", also: setting.Elsewhere(),
		},
		{Name: "auto-edit", Help: "--approval auto-edit"},
		{Name: "yolo", Help: "--approval yolo; no sandbox unless asked for"},
		{Name: "read-only", Help: "--approval plan"},
		{
			Name: "sandbox", Value: "WORD", takes: aValue, Allowed: text.Words(setting.Sandboxes()),
			Default: "workspace-write",
			Common:  true, Help: "walls", also: setting.SandboxElsewhere(),
		},
		{
			Name: "output", Value: "FORM", takes: aValue, Allowed: append(text.Words(setting.Outputs()), events),
			Default: "text",
			Common:  true, Help: "form",
			also: setting.OutputElsewhere(), as: "output-format",
		},
		{Name: "json", Help: "--output json"},
		{Name: "stream-json", Help: "--output stream-json"},
		{
			Name: "model", Short: "m", Value: "NAME", takes: aValue, free: true, Common: true,
			Help: "model, as the agent calls it",
		},
		{Name: "web", Value: "on|off", takes: maybe, Default: "off", Help: "whether the agent may use the web"},
		{Name: "continue", Common: true, Help: "continue the newest session of this directory"},
		{
			Name: "resume", Value: "ID", takes: aValue, free: true, Common: true,
			Help: "continue this session, by the agent's own id",
		},
		{
			Name: "provider", Short: "P", Value: "NAME", takes: aValue, free: true,
			Help: "the model API of the native agent",
		},
		{Name: "api-base", Value: "URL", takes: aValue, free: true, Help: "its address"},
		{
			Name: "output-schema", Value: "FILE|JSON", takes: aValue, free: true,
			Help: "print one line of JSON that fits this schema",
		},
		{
			Name: "output-schema-retries", Value: "0..10", takes: aValue, Default: "2",
			Help: "how often to ask again for one that fits",
		},
		{Name: "cwd", Value: "DIR", takes: aValue, free: true, Help: "where the agent works"},
		{
			Name: "timeout", Value: "DURATION", takes: aValue, Common: true,
			Help: "time limit of the agent, such as 15m",
		},
		{
			Name: "agentsDir", Value: "DIR", takes: aValue, free: true, Default: "agents",
			Help: "where omniagent.config.* is",
		},
		{Name: "strict", Help: "exit 2 if the agent cannot do what a flag asks"},
		{Name: "report", Value: "FILE", takes: aValue, free: true, Help: "write what happened, as JSON"},
		{
			Name: "trace-translate", Value: "only", takes: assigned,
			Help: "print the agent's command line; =only: do not run it",
		},
		{Name: "rehearse", Value: "SCRIPT", takes: assigned, Help: "use a scripted model: no key, no cost"},
		{
			Name: "undo", Value: "WORD", takes: aValue, Allowed: []string{"on", "off"},
			Help: "off: omniagent undo cannot take the run back",
		},
		{Name: "walls", Help: "run the agent behind walls: it can change the workspace, and its own files"},
		{Name: "allow-workspace-agent", Help: "start a program that comes with the workspace"},
		{Name: "help", Short: "h", Help: "show this"},
		{Name: "version", Short: "V", Help: "print the version"},
	}
}
