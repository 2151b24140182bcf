package agent

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"omniagent/internal/event"
	"omniagent/internal/setting"
)

// DepthVariable counts in the environment how many agents have asked each other, one the other. Servers of an agent
// that is asked get it; not every agent hands its own environment on.
const DepthVariable = "OMNIAGENT_DEPTH"

// Change is what a host wants to be different. What is empty stays as it is.
type Change struct {
	Mode  setting.Approval
	Model string
}

// Outcome is how a session went.
type Outcome struct {
	Exit     Exit
	Evidence Evidence
}

// Services is what a Mind needs of its conversation, and through it of the host.
type Services struct {
	// Tell takes what happens, in order. It may wait, but never for a host. Event.Raw need be valid during the call
	// only.
	Tell func(event.Event)

	Grace   time.Duration // from the request to end to the kill
	Connect time.Duration // from the start of the agent to the first sign of life; 0: any time
	Timeout time.Duration // for a turn; 0: any time
	CanAsk  bool          // somebody answers questions
	Hook    Hook          // nil: nobody has a word
	// Serve carries a message to an MCP server that lives in the host, and its answer back; nil: there is none.
	Serve func(ctx context.Context, server string, message []byte) ([]byte, error)
	Tap   *Tap // nil: nobody looks
	Apart bool // the agent ends with us even if all of our processes are killed at once, where the system allows that
}

// Tap is told of the processes of an agent. What they write reaches it before anything acts on it.
type Tap struct {
	// a process began; protocol: it is talked to, line by line
	Began          func(pid int, l Launch, protocol bool)
	Stdout, Stderr io.Writer
}

// Hook is the host's word at a moment of the conversation, which waits for it.
type Hook func(context.Context, Moment) Word

// Moment is where a host may have a word.
type Moment struct {
	Name   MomentName
	Parent string        // the call whose sub-agent this happens to; empty: the agent itself
	Call   *event.Call   // of a tool
	Result *event.Result // of that call
	Text   string        // the message, the answer, why a conversation began or is shortened
	Again  bool          // with TurnEnds: the turn goes on already because of such a word
}

// MomentName says which it is.
type MomentName string

// The moments, by the names under which people know them.
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

// Word is what a host says to a moment. The zero Word is nothing.
type Word struct {
	// allow, ask or deny, of a call; deny also of a message, an answer and a turn's end, which then is none
	Decision string
	Reason   string          // of the decision: for the model, and of a message for the person
	Input    json.RawMessage // what the tool is called with instead
	Context  string          // what the model is told beside
	End      string          // not empty: the turn ends here, for this reason
	Note     string          // for the person
}
