package chat

import (
	"context"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/talk/conversation"
)

// World gives a chat access to what is outside its conversation. What is nil is not available.
type World struct {
	Dir  string // the workspace
	Home string // the person's home directory
	Bare bool   // exit, quit and q leave without a slash
	From int64  // number of the first record to show
	// Rehearses: a script answers. The model cannot change, and no saved conversation can be continued.
	Rehearses bool

	// Open opens another conversation.
	Open func(ctx context.Context, n Next) (*conversation.Conversation, error)
	// Joined is called with each conversation that becomes the current one. wait is called when the chat has closed it;
	// it may be nil.
	Joined func(ctx context.Context, with *conversation.Conversation) (wait func())
	// Closed is called with each of them when it is closed.
	Closed func(ctx context.Context, id string)
	// Agents returns the agents.
	Agents func() []Agent
	// Sessions returns the conversations about this workspace, the newest first.
	Sessions func(ctx context.Context) ([]Session, error)
	// Prompts returns the agents and commands that files define.
	Prompts func(ctx context.Context) eidolon.Prompts
	// Shell runs a command of the person, and returns its output and its exit code.
	Shell func(ctx context.Context, command string) (output string, code int, err error)
	// Load reads a file that a person named. Below the workspace it does not follow links out of it.
	Load func(f eidolon.File) ([]byte, error)
	// List calls take with parts of the names in a directory, in no order. Directories end in a slash.
	List func(ctx context.Context, dir string, take func(names []string))
	// Private reports whether an absolute path may contain logins or keys.
	Private func(path string) bool
	// Exists reports whether there is a file at an absolute path.
	Exists func(path string) bool
	// Reminder returns the reminder for the agent before a message, given the number of messages before; empty: none.
	Reminder func(with *conversation.Conversation, messages int) string
	// Undo takes back the last turn of a conversation, or its last undo, and returns a text about the result. If turn
	// is not 0, it takes back only the turn with this number. nil: not available.
	Undo func(ctx context.Context, id string, turn int64, redo bool) (said string, err error)
	// Back says how to take back changes of the agent; "": they cannot be.
	Back string
	// Undoes reports whether undo covers the file or directory at an absolute path; nil: it covers all.
	Undoes func(path string) bool
	// Kept says at the end where the changes are, if they are not in the person's workspace.
	Kept string
	// Command returns the command that continues a conversation; nil, or an empty result: it is not kept.
	Command func(id string) string
}

// Next describes the conversation to go to: one on disk, or a new one.
type Next struct {
	Session string // the id of one on disk
	Agent   string // of a new one; empty: the same
	// Mode and Model are those of a new one; empty: as the chat began. Like is the id of one whose model it has
	// otherwise.
	Mode        setting.Approval
	Model, Like string
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

// modes returns the words of the modes that a person may choose.
func modes() []string { return text.Words(setting.Approvals()) }

const notHere = "That cannot be done here."

// blockOf returns a block with a text of ours, to be sent with a message.
func blockOf(name, content string) event.Block { return event.Block{Name: name, Text: content} }
