// Package tool has the tools of the native agent, one file for each tool.
//
// A tool describes a call before it runs, so that code that does not know the tool can decide about it. It reaches
// files, commands and pages only through Env, which restricts them. Invalid input never causes a panic, but an error
// that helps the model. A list contains only the tools that work in its Env. The package does not decide what is
// allowed, asks nobody, and prints nothing.
package tool

import (
	"context"
	"encoding/json"

	"omniagent/internal/core/event"
	"omniagent/internal/sys/workspace"
)

// Tool is one tool of a model.
type Tool struct {
	event.ToolSpec
	// Plan parses the input and returns what the call would do. It has no effects. The error tells the model which
	// argument is wrong, and what would be correct.
	Plan func(input json.RawMessage) (Action, error)
}

// Action is a call that can run.
type Action struct {
	Kind    event.ToolKind
	Changes bool     // it may change something: it runs alone, and needs permission
	Paths   []string // names, relative to the root, that it reads or changes; nil if unknown
	Command string   // for a shell
	Lasts   bool     // it starts a command that outlives the call and the turn
	URL     string   // of a page
	// At returns the directory in which a command would start, relative to the root; nil means the root. It is called
	// for the decision, because another command may have changed the directory. Run starts only in the directory that
	// At returned last.
	At    func() string
	Opens func()          // opens the network for a command, after a person agreed; may be nil
	Title string          // one line for a person
	Input json.RawMessage // the input with the names that hosts know (file_path), including unknown members
	// Asked is called with nil before a person is asked about the call, and returns the state of the file that the
	// person sees. Run then fails if the file has another state. If the input is changed afterwards, Asked of the new
	// call is called with that state. It may be nil.
	Asked func(seen *FileState) *FileState
	// Run runs the call. It returns soon after ctx ends, and leaves nothing running.
	Run func(ctx context.Context) Result
	// Delegate replaces Run if another agent does the work. by is the calling conversation.
	Delegate func(ctx context.Context, by Caller) Result
	// Person means that a person must decide, whatever the rules and the mode allow.
	Person bool
	// Form is set for a call that asks a person. It makes the result from the filled form or the text of the answer. If
	// there is no answer, ok is false and the result says so.
	Form func(filled json.RawMessage, text string) (r Result, ok bool)
}

// Result is the result of a call, for the model.
type Result struct {
	Text   string
	Failed bool
	Images []Image
	Exit   *int          // of a command
	Masked int           // secrets already removed from the text
	Listed bool          // the list of tasks has changed
	Waits  bool          // it reports on a running command, so that repeating the call is allowed
	Change *event.Change // the change of a file, for hosts that show it; not for the model
}

// Image is an image in a result.
type Image struct {
	Media string
	Data  []byte
}

// Env is shared by the tools of a conversation. They reach nothing else.
type Env struct {
	Files    *workspace.Dir
	Excludes string   // the file of the user's own rules for git; see ExcludesFile; may be empty
	Shell    Shell    // nil if commands cannot run
	Web      Web      // nil if pages cannot be fetched
	Task     Task     // nil if there are no sub-agents
	Helpers  []Helper // sub-agents in addition to the general one
	Agents   Agents   // nil if there are no other agents
	Skills   []Skill
	Person   bool // a person can be asked
	Seen     *Seen
	Todos    *Todos
}

// Helper is a kind of sub-agent.
type Helper struct{ Name, Description string }

// Task runs a sub-agent to its end and returns its answer.
type Task func(ctx context.Context, description, kind, prompt string) (answer string, err error)
