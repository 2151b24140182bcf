package chat

import (
	"context"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/talk/conversation"
)

// World is what a chat reaches beside its conversation. What is nil cannot be done there.
type World struct {
	Dir  string // the workspace
	Home string // the person's home directory
	Bare bool   // exit, quit and q leave without a slash
	From int64  // the first record of the conversation that is shown
	// Rehearses: a script answers. There is no other model, and nothing that is saved goes on.
	Rehearses bool

	// Open opens another conversation.
	Open func(ctx context.Context, n Next) (*conversation.Conversation, error)
	// Joined is called with each conversation that the person begins to talk with. wait is called when it is closed.
	Joined func(ctx context.Context, with *conversation.Conversation) (wait func())
	// Closed is called with each of them when it is closed.
	Closed func(ctx context.Context, id string)
	// Agents are those that can be talked with here.
	Agents func() []Agent
	// Sessions are the conversations about this workspace, the newest first.
	Sessions func(ctx context.Context) ([]Session, error)
	// Prompts are the agents and commands that files define.
	Prompts func(ctx context.Context) eidolon.Prompts
	// Shell runs a command of the person's, and returns what it printed and its exit code.
	Shell func(ctx context.Context, command string) (output string, code int, err error)
	// Load reads a file that a person named. Below the workspace it does not follow links out of it.
	Load func(f eidolon.File) ([]byte, error)
	// List hands over the names in a directory, in pieces and in no order. Directories end in a slash.
	List func(ctx context.Context, dir string, take func(names []string))
	// Private reports whether logins or keys lie at an absolute path.
	Private func(path string) bool
	// Exists reports whether there is a file at an absolute path.
	Exists func(path string) bool
	// Reminder returns what the agent is reminded of before a message, given how many there were; empty: nothing.
	Reminder func(with *conversation.Conversation, messages int) string
	// Undo takes the last turn of a conversation back, or its last undo, and says what came of it; nil: that is not
	// possible.
	Undo func(ctx context.Context, id string, redo bool) (said string, err error)
	// Back says how changes of the agent are taken back; "": nothing does.
	Back string
	// Undoes reports whether that has the file or directory at an absolute path; nil: it has all of them.
	Undoes func(path string) bool
	// Kept says at the end where the changes are, if they are in no workspace of the person's.
	Kept string
	// Command is how a person continues a conversation later; nil, or an empty result: it is not kept.
	Command func(id string) string
}

// Next says which conversation the person wants to go to: one on disk, or a new one.
type Next struct {
	Session string // the id of one on disk
	Agent   string // of a new one; empty: the same
}

// Agent is an agent that a person can talk with.
type Agent struct {
	Name, Title string
	Installed   bool
}

// Session is a conversation on disk.
type Session struct {
	ID, Agent, Title, When string
}

func (w World) prompts(ctx context.Context) eidolon.Prompts {
	if w.Prompts == nil {
		return eidolon.Prompts{}
	}
	return w.Prompts(ctx)
}

// modes are the words of the modes that a person may choose.
func modes() []string { return text.Words(setting.Approvals()) }

const notHere = "That cannot be done here."

// blockOf is a text of ours that travels with a message.
func blockOf(name, content string) event.Block { return event.Block{Name: name, Text: content} }
