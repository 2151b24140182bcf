package run

import (
	"encoding/json"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
	"omniagent/internal/tree"
)

// State says where a run is.
type State string

// The states. Those from Succeeded on are ends.
const (
	Queued         State = "queued"      // waits until fewer others run
	Starting       State = "starting"    // the agent has not taken up the task yet
	Running        State = "running"     // it works
	NeedsInput     State = "needs_input" // it waits for the answer of a person
	Succeeded      State = "succeeded"
	Failed         State = "failed"
	Blocked        State = "blocked"   // a tool was denied, or a question came again
	Stalled        State = "stalled"   // it was ended because it showed no sign of life
	TimedOut       State = "timed_out" // it was ended because it took too long
	Cancelled      State = "cancelled"
	UnknownOutcome State = "unknown_outcome" // nobody saw how its turn ended
)

// Terminal reports whether a run in this state is over.
func (s State) Terminal() bool {
	switch s {
	case Queued, Starting, Running, NeedsInput:
		return false
	}
	return true
}

// Task is what was asked for. It never changes.
type Task struct {
	Text      string           `json:"task"`
	Agents    []string         `json:"agents"` // the first that can work does; the others wait behind it
	Model     string           `json:"model,omitempty"`
	Approval  setting.Approval `json:"approval"`
	Sandbox   setting.Sandbox  `json:"sandbox,omitempty"`   // empty: the agent's default
	Transport string           `json:"transport,omitempty"` // acp, stream; empty: what suits the agent
	Dir       string           `json:"dir"`
	Timeout   time.Duration    `json:"timeout_ns"` // for the whole run; 0: none
	Idle      time.Duration    `json:"idle_timeout_ns"`
	First     time.Duration    `json:"first_output_ns"`
	Retries   int              `json:"retries"`
	WaitQuota bool             `json:"wait_quota,omitempty"` // a limit of the service is waited for
	Detached  bool             `json:"detached,omitempty"`
	Of        string           `json:"retry_of,omitempty"` // the run that this one repeats
	Fork      string           `json:"fork,omitempty"`     // in which it works; empty: in the workspace itself
	Network   string           `json:"network,omitempty"`  // of the fork, as --network says it; empty: as for all agents
	Check     string           `json:"check,omitempty"`    // a command of a shell that has to succeed afterwards
	CheckFor  time.Duration    `json:"check_timeout_ns,omitempty"`
	// what is said to the agent of the run that this one repeats, in the same session if that goes on
	Comments string `json:"comments,omitempty"`
	Session  string `json:"session,omitempty"`
}

// Record is a run as it is kept on disk.
type Record struct {
	Version int       `json:"v"`
	ID      string    `json:"run_id"`
	Created time.Time `json:"created"`
	Task
	State State     `json:"state"`
	Since time.Time `json:"since"` // of the state
	// how long it was in the state NeedsInput before; see Times
	Waited    time.Duration `json:"waited_ns,omitempty"`
	Until     time.Time     `json:"until,omitzero"` // it waits for a limit of the service
	Socket    string        `json:"socket,omitempty"`
	Attempts  []Attempt     `json:"attempts"`
	Questions []Question    `json:"questions"`
	Result    *Result       `json:"result,omitempty"` // of the last verdict; final if the state is an end
}

// Attempt is one conversation of a run.
type Attempt struct {
	Agent       string         `json:"agent"`
	Session     string         `json:"session,omitempty"` // empty: none was opened
	First       int64          `json:"first,omitempty"`   // record of the session with which it began
	Last        int64          `json:"last,omitempty"`    // and ended; 0: it runs
	Resumes     bool           `json:"resumes,omitempty"` // the agent can go on with the session
	Resumed     bool           `json:"resumed,omitempty"` // it was to go on with a session
	Turn        int64          `json:"turn,omitempty"`    // in which the task was given; 0: it was not
	Version     string         `json:"agent_version,omitempty"`
	Program     string         `json:"executable,omitempty"`
	Own         string         `json:"agent_session,omitempty"` // the agent's own id of the session
	Args        []string       `json:"args,omitempty"`          // of the program, without the prompt
	Apart       *bool          `json:"pid_namespace,omitempty"` // it had one of its own; nil: nothing was started
	Walls       *event.Walls   `json:"walls,omitempty"`         // what stood around it, or its commands; nil: not known
	EnvKeys     []string       `json:"env_keys,omitempty"`
	Policies    []agent.Policy `json:"policies,omitempty"` // what holds, and what was only asked for
	Fingerprint string         `json:"fingerprint,omitempty"`
	Worked      bool           `json:"worked,omitempty"` // it called a tool, or said something
	Began       time.Time      `json:"began"`
	Ended       time.Time      `json:"ended,omitzero"`
	FirstOutput time.Time      `json:"first_output,omitzero"`
	State       State          `json:"state,omitempty"` // its verdict
	Reason      Reason         `json:"reason,omitempty"`
	ExitCode    *int           `json:"exit_code,omitempty"` // of the agent's process
	Signal      string         `json:"signal,omitempty"`
}

// Question is a question to a person.
type Question struct {
	ID       string          `json:"id"`
	Text     string          `json:"text"`
	Options  []string        `json:"options,omitempty"`
	Tool     string          `json:"tool,omitempty"`  // the question is whether this tool may run
	Input    string          `json:"input,omitempty"` // with what
	Form     json.RawMessage `json:"form,omitempty"`  // it is this call of a tool, with the answer filled in
	Required bool            `json:"required,omitempty"`
	Attempt  int             `json:"attempt,omitempty"` // that asked; 0: nobody, it was asked before anything began
	Asked    time.Time       `json:"asked"`
	Answer   *Answer         `json:"answer,omitempty"`
}

// Answer is what a person said to a Question.
type Answer struct {
	Text   string    `json:"text,omitempty"` // not kept if it is secret
	Option string    `json:"option,omitempty"`
	Secret bool      `json:"secret,omitempty"`
	At     time.Time `json:"at"`
	By     int       `json:"by"` // the process that brought it
}

// Open returns the questions without an answer.
func (r *Record) Open() []Question {
	open := []Question{}
	for _, q := range r.Questions {
		if q.Answer == nil {
			open = append(open, q)
		}
	}
	return open
}

// Times returns how long a run has lasted up to now, and apart from that how long it has waited for a person.
func (r *Record) Times(now time.Time) (worked, waited time.Duration) {
	if waited = r.Waited; r.State == NeedsInput {
		waited += now.Sub(r.Since)
	}
	return now.Sub(r.Created) - waited, waited
}

// Result is what a run came to.
type Result struct {
	State      State        `json:"status"`
	Reason     Reason       `json:"reason"`
	Fault      *fault.Fault `json:"fault,omitempty"` // nil: it succeeded
	Text       string       `json:"text"`            // of the answer
	Changed    *Changes     `json:"changed"`         // nil: not known
	Denials    []Denial     `json:"denials"`
	Usage      *Usage       `json:"usage"`
	Evidence   []string     `json:"evidence"`                 // what the verdict is drawn from
	Asks       []string     `json:"open_questions,omitempty"` // with which the answer of a success ends
	Checks     []Check      `json:"checks,omitempty"`
	Tested     *Tested      `json:"check,omitempty"` // nil: the task names no check, or it was not reached
	Tools      []ToolUse    `json:"tools,omitempty"`
	Ended      time.Time    `json:"ended"`
	DurationMS int64        `json:"duration_ms"`         // without WaitedMS
	WaitedMS   int64        `json:"waited_ms,omitempty"` // for the answer of a person
}

// Check is a command that the agent ran, and how it ended.
type Check struct {
	Command  string `json:"command"`
	OK       bool   `json:"ok"`
	ExitCode *int   `json:"exit_code"` // nil: the agent does not tell it
}

// Tested is what came of the check of a task.
type Tested struct {
	Command    string `json:"command"`
	ExitCode   *int   `json:"exit_code"` // nil: it has none, because it was ended or could not begin
	Output     string `json:"output"`    // the end of it
	DurationMS int64  `json:"duration_ms"`
}

// Changes are the files that differ from before the run.
type Changes struct {
	Count   int           `json:"count"`
	Files   []tree.Change `json:"files"`
	Git     []string      `json:"git,omitempty"`     // what differs of the repository itself: HEAD, refs, hooks, …
	Ignored int           `json:"ignored,omitempty"` // files that the repository ignores
	Partial []string      `json:"partial,omitempty"` // what could not be looked at
}

// Denial is a tool that was not allowed to run.
type Denial struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// ToolUse counts the calls of a tool.
type ToolUse struct {
	Name   string `json:"name"`
	Calls  int    `json:"calls"`
	Failed int    `json:"failed,omitempty"`
}

// Usage is what the model was asked.
type Usage struct {
	Input   int64    `json:"input_tokens"`
	Output  int64    `json:"output_tokens"`
	CostUSD *float64 `json:"cost_usd"`
}
