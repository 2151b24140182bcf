// Package tool is what the native agent can do: one file a tool, its description for the model beside it.
//
// It promises that a tool says beforehand what a call would do, so that somebody who does not know the tool can decide
// about it; that it reaches files, commands and pages only through the doors of Env, which is where the walls stand;
// that any input gets an answer that the model can learn from, never a panic; and that a list of tools names only what
// works here. It refuses to decide what is allowed, to ask anybody, and to print.
package tool

import (
	"context"
	"encoding/json"

	"omniagent/internal/event"
	"omniagent/internal/toolspec"
	"omniagent/internal/workspace"
)

// Tool is one thing that a model can do.
type Tool struct {
	toolspec.Tool
	// Plan reads the input and says what the call would do, without any effect. The error is for the model: which
	// argument is wrong, and how it is right.
	Plan func(input json.RawMessage) (Action, error)
}

// Action is a call that could be made.
type Action struct {
	Kind    event.ToolKind
	Changes bool     // it may change something, here or elsewhere: it runs alone, and needs to be allowed
	Paths   []string // names beneath the root that it reads or changes; nil where it cannot be told
	Command string   // for a shell
	URL     string   // of a page
	// At is where a command would begin, relative to the root; nil: in the root. It is asked for when somebody decides,
	// since another command may have moved there meanwhile, and Run begins nowhere else than it has told last.
	At    func() string
	Title string          // what it does, in one line for a person
	Input json.RawMessage // the input under the names that hosts know (file_path); members that we do not know are kept
	// Run does it. It ends soon after ctx does, and leaves nothing behind then. progress may be nil; it is told what
	// the tool prints meanwhile.
	Run func(ctx context.Context, progress func(string)) Result
	// Person: it is a person's decision, so one is asked, whatever the rules and the mode allow.
	Person bool
	// Form is of a call that is a question: what a person filled in, or said, as its result. It is not ok where there
	// is no answer in it, and the result says so. Nil: it is none.
	Form func(filled json.RawMessage, text string) (r Result, ok bool)
}

// Result is what the model gets to see.
type Result struct {
	Text   string
	Failed bool
	Images []Image
	Exit   *int          // of a command
	Masked int           // secrets that are left out of the text already
	Waits  bool          // it tells of something that still runs: to ask the same again is no going in circles
	Change *event.Change // what became of a file, for hosts that show it; the model does not see it
}

// Image is a picture in a result.
type Image struct {
	Media string
	Data  []byte
}

// Env is what the tools of one conversation share, and their only doors.
type Env struct {
	Files    *workspace.Dir
	Excludes string   // the user's own rules for git, see ExcludesFile; "": none
	Shell    Shell    // nil: no commands
	Web      Web      // nil: no pages
	Task     Task     // nil: no sub-agents
	Helpers  []Helper // sub-agents beside the general one
	Person   bool     // somebody can be asked
	Seen     *Seen
	Todos    *Todos
}

// Helper is a kind of sub-agent.
type Helper struct{ Name, Description string }

// Task runs a sub-agent to its end and returns its answer.
type Task func(ctx context.Context, description, kind, prompt string) (answer string, err error)
