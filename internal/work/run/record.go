package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/snapshot"
)

// State is the state of a run.
type State string

// The states. Those from Succeeded on are final.
const (
	Queued         State = "queued"      // it waits until fewer others run
	Starting       State = "starting"    // the agent has not begun the task
	Running        State = "running"     // the agent works
	NeedsInput     State = "needs_input" // it waits for the answer of a person
	Succeeded      State = "succeeded"
	Failed         State = "failed"
	Blocked        State = "blocked"   // a tool was denied, or a question was repeated
	Stalled        State = "stalled"   // it was ended because the agent was silent
	TimedOut       State = "timed_out" // it was ended because it took too long
	Cancelled      State = "cancelled"
	UnknownOutcome State = "unknown_outcome" // the end of its turn was not observed
)

// States returns the words of all states.
func States() []string {
	return text.Words([]State{
		Queued, Starting, Running, NeedsInput, Succeeded, Failed, Blocked, Stalled, TimedOut, Cancelled, UnknownOutcome,
	})
}

// Terminal reports whether a run in this state is over.
func (s State) Terminal() bool {
	switch s {
	case Queued, Starting, Running, NeedsInput:
		return false
	}
	return true
}

// Task is the request. It never changes.
type Task struct {
	Text      string           `json:"task"`
	Agents    []string         `json:"agents"` // the first one that can start is used
	Model     string           `json:"model,omitempty"`
	Approval  setting.Approval `json:"approval"`
	Sandbox   setting.Sandbox  `json:"sandbox,omitempty"`  // empty for the agent's default
	Provider  string           `json:"provider,omitempty"` // of the native agent's model, and its address
	Base      string           `json:"api_base,omitempty"`
	Undo      string           `json:"undo,omitempty"`      // as in --undo; empty for the default
	Transport string           `json:"transport,omitempty"` // acp, stream, or empty for the agent's default
	Dir       string           `json:"dir"`
	Dirs      []string         `json:"add_dirs,omitempty"` // further directories to work in, absolute
	Timeout   time.Duration    `json:"timeout_ns"`         // for the whole run; 0 for none
	Idle      time.Duration    `json:"idle_timeout_ns"`
	First     time.Duration    `json:"first_output_ns"`
	Retries   int              `json:"retries"`
	WaitQuota bool             `json:"wait_quota,omitempty"` // wait for a limit of the service
	Detached  bool             `json:"detached,omitempty"`
	Of        string           `json:"retry_of,omitempty"` // the run that this one retries
	Fork      string           `json:"fork,omitempty"`     // the fork it works in; empty for the workspace itself
	ForkID    string           `json:"fork_id,omitempty"`  // id of that fork, whose name may be used again later
	Network   string           `json:"network,omitempty"`  // of the fork, as in --network; empty for the default
	Check     string           `json:"check,omitempty"`    // a shell command that must succeed afterwards
	CheckFor  time.Duration    `json:"check_timeout_ns,omitempty"`
	// without walls, as the person would run it
	CheckOutside bool `json:"check_outside,omitempty"`
	// comments for the agent of the retried run, in the same session if possible
	Comments string `json:"comments,omitempty"`
	Session  string `json:"session,omitempty"`
	// A script answers in place of a model, that of a file or the usual one: the run is a rehearsal.
	Rehearse bool   `json:"rehearse,omitempty"`
	Script   string `json:"script,omitempty"`
}

// Record is the stored description of a run.
type Record struct {
	Version int       `json:"v"`
	ID      string    `json:"run_id"`
	Created time.Time `json:"created"`
	Task
	State State     `json:"state"`
	Since time.Time `json:"since"` // when it entered the state
	// time spent in NeedsInput before; see Times
	Waited    time.Duration `json:"waited_ns,omitempty"`
	Until     time.Time     `json:"until,omitzero"` // the end of a limit of the service that it waits for
	Socket    string        `json:"socket,omitempty"`
	Attempts  []Attempt     `json:"attempts"`
	Questions []Question    `json:"questions"`
	Doubts    []Doubt       `json:"doubts,omitempty"` // changed by it, and by others while it waited
	Result    *Result       `json:"result,omitempty"` // of the last verdict; final if the state is
	NotOnDisk bool          `json:"-"`                // no record is on disk, so no command finds it
}

// Attempt is one conversation of a run.
type Attempt struct {
	Agent          string         `json:"agent"`
	Session        string         `json:"session,omitempty"` // empty if none was opened
	First          int64          `json:"first,omitempty"`   // record of the session at its beginning
	Last           int64          `json:"last,omitempty"`    // and at its end; 0 while it runs
	Resumes        bool           `json:"resumes,omitempty"` // the agent can resume the session
	Resumed        bool           `json:"resumed,omitempty"` // it was asked to resume a session
	Turn           int64          `json:"turn,omitempty"`    // the turn with the task; 0 if it was not sent
	Version        string         `json:"agent_version,omitempty"`
	Program        string         `json:"executable,omitempty"`
	AgentSessionID string         `json:"agent_session,omitempty"` // the agent's own id of the session
	Records        []string       `json:"agent_records,omitempty"` // files in which the agent keeps its session
	Args           []string       `json:"args,omitempty"`          // of the program, without the prompt
	OwnPIDs        *bool          `json:"pid_namespace,omitempty"` // whether it had its own; nil if nothing was started
	Walls          *event.Walls   `json:"walls,omitempty"`         // of the agent, or of its commands; nil if unknown
	EnvKeys        []string       `json:"env_keys,omitempty"`
	Policies       []agent.Policy `json:"policies,omitempty"` // what is enforced, and what was only requested
	Fingerprint    string         `json:"fingerprint,omitempty"`
	Worked         bool           `json:"worked,omitempty"` // it called a tool, or wrote text
	Usage          *Usage         `json:"usage,omitempty"`  // nil if the agent does not report it
	Began          time.Time      `json:"began"`
	Ended          time.Time      `json:"ended,omitzero"`
	FirstOutput    time.Time      `json:"first_output,omitzero"`
	State          State          `json:"state,omitempty"` // its verdict
	Reason         Reason         `json:"reason,omitempty"`
	ExitCode       *int           `json:"exit_code,omitempty"` // exit code of the agent's process
	Signal         string         `json:"signal,omitempty"`
	RemoveIfEmpty  []string       `json:"leaves,omitempty"` // directories that it leaves behind if it is killed
}

// Question is a question to a person.
type Question struct {
	ID       string          `json:"id"`
	Text     string          `json:"text"`
	Options  []string        `json:"options,omitempty"`
	Tool     string          `json:"tool,omitempty"`    // set if the question is whether this tool may run
	Input    string          `json:"input,omitempty"`   // input of that tool
	Call     string          `json:"call,omitempty"`    // identifies the call of that tool
	File     string          `json:"file,omitempty"`    // what was at the paths that the call would change
	Stale    bool            `json:"stale,omitempty"`   // it was approved, but the file changed before it was made
	Made     bool            `json:"made,omitempty"`    // it was approved, and the agent made it
	Failure  string          `json:"failure,omitempty"` // output of that call, if it failed each time it was made
	Form     json.RawMessage `json:"form,omitempty"`    // input of a tool call that the answer completes
	Required bool            `json:"required,omitempty"`
	Attempt  int             `json:"attempt,omitempty"` // the asking attempt; 0 if it was asked before the first
	Asked    time.Time       `json:"asked"`
	Answer   *Answer         `json:"answer,omitempty"`

	whole bool // Input is a command, and the call has nothing else that matters
}

// Answer is a person's answer to a Question.
type Answer struct {
	Text   string    `json:"text,omitempty"` // not stored if it is secret
	Option string    `json:"option,omitempty"`
	Secret bool      `json:"secret,omitempty"`
	At     time.Time `json:"at"`
	By     int       `json:"by"` // the process that sent it

	parts map[string]string // the text, by the parts of the question; nil if it was given as a whole
}

// NeverBegan reports whether a run is over and no agent got its task, as when it was cancelled while it was queued.
func (r *Record) NeverBegan() bool { return r.State.Terminal() && len(r.Attempts) == 0 }

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

// Times returns how long a run has worked up to now, and how long it has waited for a person. Neither is negative, even
// if the clock was set back.
func (r *Record) Times(now time.Time) (worked, waited time.Duration) {
	if waited = r.Waited; r.State == NeedsInput {
		waited += max(0, now.Sub(r.Since))
	}
	return max(0, now.Sub(r.Created)-waited), waited
}

// Result is the result of a run.
type Result struct {
	State        State        `json:"status"`
	Reason       Reason       `json:"reason"`
	Fault        *fault.Fault `json:"fault,omitempty"` // nil if it succeeded
	Text         string       `json:"text"`            // of the answer
	Changed      *Changes     `json:"changed"`         // nil if unknown
	Denials      []Denial     `json:"denials"`
	Usage        *Usage       `json:"usage"`                    // of all attempts; nil if no agent reports it
	Evidence     []string     `json:"evidence"`                 // the basis of the verdict
	Asks         []string     `json:"open_questions,omitempty"` // questions at the end of a successful answer
	DeletedPaths []string     `json:"not_kept,omitempty"`       // see event.End
	Unfinished   []string     `json:"unfinished,omitempty"`     // commands that ran when the turn ended, and were ended
	Checks       []Check      `json:"checks,omitempty"`
	Tested       *Tested      `json:"check,omitempty"` // nil if the task has no check, or it was not reached
	Tools        []ToolUse    `json:"tools,omitempty"`
	Ended        time.Time    `json:"ended"`
	DurationMS   int64        `json:"duration_ms"`         // without WaitedMS
	WaitedMS     int64        `json:"waited_ms,omitempty"` // for the answer of a person
}

// Check is a command that the agent ran, and how it ended.
type Check struct {
	Command  string `json:"command"`
	OK       bool   `json:"ok"`
	ExitCode *int   `json:"exit_code"` // nil if the agent does not report it
}

// Tested is the outcome of a task's check.
type Tested struct {
	Command    string `json:"command"`
	ExitCode   *int   `json:"exit_code"` // nil if it was ended or could not begin
	Output     string `json:"output"`    // the end of the output
	DurationMS int64  `json:"duration_ms"`
}

// Changes describes the files that the run has changed.
type Changes struct {
	Count   int               `json:"count"`
	Files   []snapshot.Change `json:"files"`                // at most mostFiles
	Added   int               `json:"added,omitempty"`      // lines, of all files
	Removed int               `json:"removed,omitempty"`    // the same
	Git     []string          `json:"git,omitempty"`        // changes of the repository itself: HEAD, refs, hooks, …
	Gone    []Gone            `json:"gone,omitempty"`       // those of Git that are gone although git needs them
	Ignored int               `json:"ignored,omitempty"`    // number of ignored files
	Later   []string          `json:"runs_later,omitempty"` // those of Files, Git and Perhaps that are run later
	Partial []string          `json:"partial,omitempty"`    // paths that could not be read
	// Perhaps lists files that the run may have changed, at most mostFiles. Doubtful counts all of them.
	Perhaps  []Doubt `json:"perhaps,omitempty"`
	Doubtful int     `json:"doubtful,omitempty"`
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

// Usage is the usage of the model.
type Usage struct {
	Input   int64    `json:"input_tokens"`
	Output  int64    `json:"output_tokens"`
	CostUSD *float64 `json:"cost_usd"`
}

// plus returns the sum of two usages. nil means unknown, and adds nothing.
func (u *Usage) plus(o *Usage) *Usage {
	if u == nil || o == nil {
		return cmp.Or(u, o)
	}
	sum := &Usage{u.Input + o.Input, u.Output + o.Output, cmp.Or(u.CostUSD, o.CostUSD)}
	if u.CostUSD != nil && o.CostUSD != nil {
		sum.CostUSD = new(*u.CostUSD + *o.CostUSD)
	}
	return sum
}

// fingerprint returns a hash of the agent, its program and version, the terms of the task, and the names of the
// environment variables.
func fingerprint(r *Run, a Attempt) string {
	h := sha256.New()
	parts := []string{a.Agent, a.Program, a.Version, r.Model, string(r.Approval), r.Transport, r.Dir, r.Text}
	if r.Comments != "" {
		parts = append(parts, r.Comments)
	}
	for _, part := range slices.Concat(parts, a.EnvKeys) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
