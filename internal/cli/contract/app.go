package contract

import (
	_ "embed" // keys.txt
	"slices"
	"strconv"
	"sync"

	"omniagent/internal/sys/config"
)

// App is a whole program as data.
type App struct {
	Name     string
	Version  string
	Summary  string
	Detail   string
	Groups   map[string]string // summaries of groups of commands, such as "config"
	Commands []Registered
	Examples []Example      // of calls, for the help
	Tasks    []Task         // groups of commands in the help; empty: all in one, in their order
	Topics   []Topic        // further pages of the help
	Keys     []config.Key   // in addition to Keys()
	Direct   func() *Direct // what a call without a command does; nil: nothing
	// Complete returns the values that completion offers for a parameter whose declaration lists none. The call is the
	// one that is being typed. If Complete is nil, there are no such values.
	Complete func(*Call, Param) []Choice
}

// Registered is a command that is constructed when it is looked up, so that a call does not pay for all commands.
type Registered struct {
	Path string // equal to Command.Path
	Make func() *Command
}

// Direct describes a call that names no command. Other code parses it and carries it out.
type Direct struct {
	Usage       string // what follows the program's name
	Summary     string // one line, no period
	Differences string // how agents differ, for the help of the program
	Detail      string // the same at length, for the manual
	Params      []Param
	Exits       []DirectExit
	// Suggest returns the call that was probably meant by a word that names no command, or "".
	Suggest func(word string) string
}

// DirectExit is one exit code of such a call.
type DirectExit struct {
	Number string
	Name   string
	When   string
	Effect string // none, partial or complete
}

// Variable is an environment variable that the program reads.
type Variable struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required,omitempty"`

	own bool // it sets a key of App.Keys, which only some commands read
}

// Program runs the calls of an App. New checks all declarations before the first call, Open those of a command before
// it runs.
type Program struct {
	App
	keys []config.Key

	mu   sync.Mutex
	made []*Command // by index in Commands; nil until a command is looked up
}

// prefix begins the names of the program's own variables.
const prefix = "OMNIAGENT_"

//go:embed keys.txt
var keyTable string

// Keys returns the settings of the framework itself.
func Keys() []config.Key { return config.ReadKeys(keyTable) }

// ConfigKeys returns all settings.
func (p *Program) ConfigKeys() []config.Key { return p.keys }

// variables lists every environment variable that has an effect.
func (p *Program) variables() []Variable {
	list := []Variable{
		{Name: prefix + "INSTANCE_ID", Description: "keeps state apart, like --instance-id"},
		{Name: prefix + "TRACE_ID", Description: "repeated in meta.trace_id and the audit log; TOOL_TRACE_ID too"},
		{Name: prefix + "NO_UPDATE", Description: "accepted; there are no updates"},
		{Name: prefix + "NO_TELEMETRY", Description: "accepted; nothing is reported"},
	}
	framework := len(p.keys) - len(p.Keys)
	for i, k := range p.keys {
		if k.Env != "" {
			list = append(list, Variable{Name: k.Env, Description: k.Help, own: i >= framework})
		}
	}
	for _, v := range [][2]string{
		{"CI", "no questions, JSON"},
		{"NO_COLOR", "no colour"},
		{"HOME", "where configuration and state are kept"},
		{"XDG_CONFIG_HOME", "configuration"},
		{"XDG_STATE_HOME", "state"},
		{"XDG_DATA_HOME", "audit log"},
		{"XDG_CACHE_HOME", "caches"},
	} {
		list = append(list, Variable{Name: v[0], Description: v[1]})
	}
	return list
}

// Find returns the command with that path.
func (p *Program) Find(path string) (*Command, bool) {
	i := slices.IndexFunc(p.Commands, func(r Registered) bool { return r.Path == path })
	if i < 0 {
		return nil, false
	}
	return p.at(i), true
}

// All returns all commands, in their order.
func (p *Program) All() []*Command {
	all := make([]*Command, len(p.Commands))
	for i := range all {
		all[i] = p.at(i)
	}
	return all
}

// at returns the command at an index of Commands. It constructs each command only once.
func (p *Program) at(i int) *Command {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made[i] == nil {
		p.made[i] = p.Commands[i].Make()
	}
	return p.made[i]
}

func itoa(n int) string { return strconv.Itoa(n) }
