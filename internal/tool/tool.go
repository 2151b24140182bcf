// Package tool has the tools of the native agent: one file a tool, with its description for the model.
//
// It promises: a tool describes a call before it runs, so that code that does not know the tool can decide about
// it; it reaches files, commands and pages only through Env, where they are restricted; any input gets an answer that
// the model can learn from, never a panic; and a list of tools has only those that work here. It never decides what is
// allowed, asks nobody, and prints nothing.
package tool

import (
	"context"
	"encoding/json"

	"omniagent/internal/event"
	"omniagent/internal/toolspec"
	"omniagent/internal/workspace"
)

// Tool is one tool of a model.
type Tool struct {
	toolspec.Tool
	// Plan parses the input and returns what the call would do, without any effect. The error is for the model: which
	// argument is wrong, and what is correct.
	Plan func(input json.RawMessage) (Action, error)
}

// Action is a call that can run.
type Action struct {
	Kind    event.ToolKind
	Changes bool     // it may change something: it runs alone, and needs permission
	Paths   []string // names beneath the root that it reads or changes; nil: not known
	Command string   // for a shell
	Lasts   bool     // what it starts goes on when the call has returned, and when the turn has ended
	URL     string   // of a page
	// At returns where a command would begin, relative to the root; nil: in the root. It is called when somebody
	// decides, because another command may have changed the directory meanwhile. Run begins only where At last said.
	At    func() string
	Opens func()          // opens the network for a command, which a person agreed to; nil: it stays as it is
	Title string          // one line for a person
	Input json.RawMessage // the input under the names that hosts know (file_path), with unknown members
	// Run runs the call. It ends soon after ctx does, and leaves nothing running. progress may be nil; it gets what the
	// tool prints meanwhile.
	Run func(ctx context.Context, progress func(string)) Result
	// Delegate runs a call whose work another agent does, in place of Run; by is the conversation that makes it.
	Delegate func(ctx context.Context, by Caller) Result
	// Person: only a person can decide, so one is asked, whatever the rules and the mode allow.
	Person bool
	// Form is set for a call that is a question. It makes the result from what a person filled in or said. If that has
	// no answer, ok is false and the result says so.
	Form func(filled json.RawMessage, text string) (r Result, ok bool)
}

// Result is what the model gets.
type Result struct {
	Text   string
	Failed bool
	Images []Image
	Exit   *int          // of a command
	Masked int           // secrets already removed from the text
	Listed bool          // the list of tasks has changed
	Waits  bool          // it reports something that still runs: repeating the call is not a loop
	Change *event.Change // the change of a file, for hosts that show it; not for the model
}

// Image is an image in a result.
type Image struct {
	Media string
	Data  []byte
}

// Env is what the tools of one conversation share, and all that they can reach.
type Env struct {
	Files    *workspace.Dir
	Excludes string   // the user's own rules for git, see ExcludesFile; "": none
	Shell    Shell    // nil: no commands
	Web      Web      // nil: no pages
	Task     Task     // nil: no sub-agents
	Helpers  []Helper // sub-agents in addition to the general one
	Agents   Agents   // nil: no other agents
	Skills   []Skill
	Person   bool // a person can be asked
	Seen     *Seen
	Todos    *Todos
}

// Helper is a kind of sub-agent.
type Helper struct{ Name, Description string }

// Task runs a sub-agent to its end and returns its answer.
type Task func(ctx context.Context, description, kind, prompt string) (answer string, err error)
