package agent

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"omniagent/internal/event"
	"omniagent/internal/process"
	"omniagent/internal/setting"
)

// DepthVariable is the environment variable that counts how many agents have asked one another in a row. The MCP
// servers of an agent get it too, because not every agent passes its own environment on.
const DepthVariable = "OMNIAGENT_DEPTH"

// Change is what a host wants to change. Empty members stay as they are.
type Change struct {
	Mode  setting.Approval
	Model string
}

// Outcome is how a conversation with an agent ended.
type Outcome struct {
	Exit     Exit
	Evidence Evidence
}

// Services is what a Mind needs of its conversation, and through it of the host.
type Services struct {
	// Tell takes the events, in order. It may block, but never for a host. Event.Raw need only be valid during the
	// call.
	Tell func(event.Event)

	Grace   time.Duration // from the request to exit to the kill
	Connect time.Duration // from the start of the agent to its first output; 0: no limit
	Timeout time.Duration // for a turn; 0: no limit
	CanAsk  bool          // somebody answers questions
	Hook    Hook          // nil: the host does not intervene
	// Cover returns what can be taken back of the workspace in the turn that runs; nil: nothing.
	Cover func() event.Cover
	// Serve passes a message to an MCP server that lives in the host, and returns its answer; nil: there is none.
	Serve func(ctx context.Context, server string, message []byte) ([]byte, error)
	// Chore carries out what an agent over the Agent Client Protocol asks of its client; nil: nothing.
	Chore func(ctx context.Context, method string, params []byte) (any, error)
	Tap   *Tap // nil: nobody looks
	// Around changes the plan of a process of the agent so that it runs behind walls; nil: no walls.
	Around func(process.Plan) (process.Plan, error)
	Apart  bool // the agent ends with us even if all of our processes are killed at once, where the system allows that
	// Standby is what ends its first process with us, where that was prepared; nil: it was not.
	Standby *process.Standby
	// Register lists the agent while it runs, so that it can be ended when nothing of ours lives; nil: nothing does.
	Register *process.Register
}

// Tap is told of the processes of an agent. What they write reaches it before anything acts on it.
type Tap struct {
	Began          func(Beginning)
	Stdout, Stderr io.Writer
}

// Beginning is the start of a process of an agent.
type Beginning struct {
	PID      int
	Launch   Launch
	Protocol bool // it is talked to, line by line
	Apart    bool // it has a PID namespace of its own
}

// Hook lets the host intervene at a moment of the conversation, which waits for its answer.
type Hook func(context.Context, Moment) Word

// Moment is a point at which a host may intervene.
type Moment struct {
	Name   MomentName
	Parent string        // the call whose sub-agent this is about; empty: the agent itself
	Call   *event.Call   // of a tool
	Result *event.Result // of that call
	Text   string        // the message, the answer, or why a conversation began or is shortened
	Again  bool          // with TurnEnds: the turn already continues because of a hook
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

// Word is a host's answer at a moment. The zero Word changes nothing.
type Word struct {
	// allow, ask or deny, for a call; deny also for a message, for an answer, and for the end of a turn, which then
	// continues
	Decision string
	Reason   string          // of the decision: for the model, and of a message for the person
	Input    json.RawMessage // replaces the input of the tool
	Context  string          // additional text for the model
	End      string          // not empty: the turn ends now, for this reason
	Note     string          // for the person
}
