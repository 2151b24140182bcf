package agent

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/touch"
)

// DepthVariable is the environment variable that counts how many agents have asked one another in a row. The MCP
// servers of an agent get it too, because not every agent passes its own environment on.
const DepthVariable = "OMNIAGENT_DEPTH"

// Change is a host's request to change settings. Empty fields change nothing.
type Change struct {
	Mode  setting.Approval
	Model string
	Dir   string // a further directory to work in, absolute
}

// Outcome is how a conversation with an agent ended.
type Outcome struct {
	Exit     Exit
	Evidence Evidence
}

// Services are the functions of the conversation and of its host that a Mind uses.
type Services struct {
	// Tell receives the events, in order. It may block, but never waits for a host. Event.Raw need only be valid during
	// the call.
	Tell func(event.Event)

	Grace   time.Duration // between asking the agent to exit and killing it
	Connect time.Duration // from the agent's start to its first output; 0 for no limit
	Timeout time.Duration // for a turn; 0 for no limit
	CanAsk  bool          // somebody answers questions
	Asker   string        // what the ids of questions begin with, so that those of two conversations differ
	Hook    Hook          // nil if the host does not intervene
	// Replied is called when a person's answer is on record, before the agent gets it. It may block; it may be nil.
	Replied func(question string)
	// Cover returns which changes of the current turn can be undone; it may be nil.
	Cover func() event.Cover
	// Serve passes a message to an MCP server that lives in the host, and returns its answer; it may be nil.
	Serve func(ctx context.Context, server string, message []byte) ([]byte, error)
	// Chore serves requests of an agent to its client in the Agent Client Protocol; it may be nil.
	Chore func(ctx context.Context, method string, params []byte) (any, error)
	Tap   *Tap // may be nil
	// Private reports whether a file's content must not be kept in snapshots; nil: all may be kept.
	Private func(content []byte) bool
	// Touched gets what the agent writes; it may be nil.
	Touched *touch.Log
	// WithWalls changes the plan of a process of the agent so that it runs behind walls; nil for no walls.
	WithWalls func(process.Plan) (process.Plan, error)
	OwnPIDs   bool // the agent ends with us even if all our processes are killed at once, where the system allows that
	// Standby ends the agent's first process with us, if it was prepared; it may be nil.
	Standby *process.Standby
	// Register lists the agent while it runs, so that it can be ended after we have died; it may be nil.
	Register *process.Register
}

// Tap observes the processes of an agent. It gets their output before anything acts on it.
type Tap struct {
	Began          func(Beginning)
	Stdout, Stderr io.Writer
}

// Beginning is the start of a process of an agent.
type Beginning struct {
	PID           int
	Launch        Launch
	Protocol      bool     // its input carries a protocol of lines
	Plain         bool     // it prints text, and no records
	OwnPIDs       bool     // it has a PID namespace of its own
	RemoveIfEmpty []string // see Absent
}

// Hook lets the host intervene at a moment of the conversation, which waits for its answer.
type Hook func(context.Context, Moment) HookAnswer

// Moment is a point at which a host may intervene.
type Moment struct {
	Name   MomentName
	Parent string        // the call that started the sub-agent concerned; empty for the agent itself
	Call   *event.Call   // of a tool
	Result *event.Result // of that call
	Text   string        // the message, the answer, or why the conversation began or is shortened
	Again  bool          // for TurnEnds: a hook has already made the turn continue
}

// MomentName is the name of a moment.
type MomentName string

// The moments, by the names that Claude Code uses.
const (
	BeforeTool    MomentName = "PreToolUse"
	AfterTool     MomentName = "PostToolUse"
	AfterFailure  MomentName = "PostToolUseFailure"
	MessageComes  MomentName = "UserPromptSubmit"
	SessionBegins MomentName = "SessionStart"
	SessionEnds   MomentName = "SessionEnd"
	TurnEnds      MomentName = "Stop"
	HelperBegins  MomentName = "SubagentStart"
	HelperEnds    MomentName = "SubagentStop"
	Shortening    MomentName = "PreCompact"
)

// HookAnswer is a host's answer at a moment. The zero HookAnswer changes nothing.
type HookAnswer struct {
	// allow, ask or deny a call; deny also applies to a message, an answer, and the end of a turn, which then continues
	Decision string
	Reason   string          // of the decision; shown to the model, or to the person if a message is denied
	Input    json.RawMessage // replaces the input of the tool
	Context  string          // additional text for the model
	End      string          // if not empty, the turn ends now, for this reason
	Note     string          // for the person
}
