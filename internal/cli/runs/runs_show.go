package runs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/native"
	"omniagent/internal/repo/undo"
	"omniagent/internal/work/run"
)

// runShown is the whole record of a run.
type runShown struct {
	runData
	Schema         int                            `json:"schema_version" doc:"of the record"`
	Task           string                         `json:"task"`
	TaskID         string                         `json:"task_id" doc:"of the first run, where this one repeats another"`
	RetryOf        *string                        `json:"retry_of"`
	Attempt        int                            `json:"attempt"`
	AttemptList    []runAttempt                   `json:"attempt_list"`
	SessionKey     *string                        `json:"session_key" plain:"yes" doc:"session_id"`
	AgentID        string                         `json:"agent_id" doc:"who runs external agents: cli-runner"`
	Adapter        string                         `json:"adapter_id" doc:"the agent"`
	Version        *string                        `json:"cli_version"`
	Executable     *string                        `json:"executable"`
	Command        []string                       `json:"command_display" doc:"its arguments, without the prompt and secrets"`
	Cwd            string                         `json:"cwd"`
	Mode           string                         `json:"mode" enum:"subprocess,acp,native"`
	Node           *string                        `json:"node_id" doc:"null: this machine"`
	Approval       string                         `json:"approval"`
	Queued         time.Time                      `json:"queued_at"`
	Started        *time.Time                     `json:"started_at"`
	FirstOutput    *time.Time                     `json:"first_output_at"`
	Ended          *time.Time                     `json:"ended_at"`
	Signal         *string                        `json:"signal"`
	Namespace      *bool                          `json:"pid_namespace" doc:"the agent had one of its own, and nothing of it could outlive us; null: no program was started"`
	TimeoutReason  string                         `json:"timeout_reason" enum:"none,idle,no_output,max_duration,output_limit"`
	Retries        int                            `json:"retry_count"`
	Clarifications int                            `json:"clarification_count"`
	Answered       contract.Foreigns[runAnswered] `json:"answered"`
	Bytes          runBytes                       `json:"output_bytes"`
	Truncated      bool                           `json:"truncated" doc:"the output reached its limit, and the rest is not kept"`
	Denied         contract.Foreigns[runDenial]   `json:"permission_denials"`
	Policies       []agent.Policy                 `json:"policy_decisions"`
	Walls          *event.Walls                   `json:"walls" doc:"what stood around the agent, or its commands; null: not known"`
	EnvKeys        []string                       `json:"env_keys"`
	Tools          contract.Foreigns[run.ToolUse] `json:"tools"`
	Error          *runError                      `json:"error"`
	Path           string                         `json:"path" doc:"its directory"`
	Owner          *stores.Writer                 `json:"owner" doc:"the process that carries it out; null: none"`
	Turns          []runTurn                      `json:"turns" doc:"that undo knows, the newest first"`
}

// runTurn is a turn of a run, or one that brought its fork home.
type runTurn struct {
	ID      string  `json:"id"`
	Applied bool    `json:"applied" doc:"it brought the changes of the fork home"`
	Back    *string `json:"taken_back_by" doc:"the undo; null: it is not taken back"`
}

// PlainText returns a line for people, or "".
func (t runTurn) PlainText() string {
	switch {
	case t.Applied && t.Back != nil:
		return "It was applied, and taken back: omniagent undo " + *t.Back + " takes that back.\n"
	case t.Applied:
		return "It was applied: omniagent undo " + t.ID + " takes it back.\n"
	case t.Back != nil:
		return "It was taken back: omniagent undo " + *t.Back + " takes that back.\n"
	}
	return ""
}

// turnsOf returns the turns of a run, and those that brought its fork home.
func turnsOf(c *contract.Call, r run.Record) (all []runTurn) {
	store := stores.SnapshotsIn(c.Paths, c.Config, c.Host.Lookup)
	if store == nil {
		return nil
	}
	records, _ := store.List(r.Dir) // where they cannot be read, nothing is known
	q := undo.Request{Run: r.ID, Fork: r.ForkID}
	for _, t := range records {
		if t.Kind == undo.OfTurn && q.Fits(t) {
			all = append(all, runTurn{t.ID, t.Run != r.ID, contract.OrNil(t.UndoneBy)})
		}
	}
	return all
}

type runAttempt struct {
	Agent   string     `json:"agent"`
	Session *string    `json:"session_id"`
	First   int64      `json:"first_record"`
	Last    int64      `json:"last_record"`
	Status  string     `json:"status"`
	Reason  string     `json:"reason"`
	Began   time.Time  `json:"began"`
	Ended   *time.Time `json:"ended"`
}

type runAnswered struct {
	ID       string    `json:"id"`
	Question string    `json:"question"`
	Answer   string    `json:"answer" doc:"empty: it is secret"`
	At       time.Time `json:"at"`
	By       int       `json:"by" doc:"process"`
}

type runBytes struct {
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
}

type runError struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Hint       string `json:"hint"`
	Retryable  bool   `json:"retryable"`
	RetryAfter int64  `json:"retry_after_ms"`
}

// PlainText returns the summary for people, preceded by the task and its answered questions.
func (d runShown) PlainText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Task: %s\n", text.OneLine(d.Task, 300))
	for _, q := range d.Answered {
		answer := q.Answer
		if answer == "" {
			answer = "(secret)"
		}
		fmt.Fprintf(&b, "Asked: %s Answered: %s\n", text.OneLine(q.Question, 200), text.OneLine(answer, 200))
	}
	d.where = d.Cwd
	b.WriteString("\n" + d.runData.PlainText())
	for _, t := range d.Turns {
		b.WriteString(t.PlainText())
	}
	return b.String()
}

func runsShow() *contract.Command {
	return runsCommand(contract.Command{
		Path: "runs show", Summary: "show the whole record of a run", Danger: contract.Safe,
		Output: contract.TypeOf[runShown](), Volatile: []string{"duration_ms", "waited_ms"},
		Params:     []contract.Param{runParam()},
		Job:        &contract.Job{Descriptor: contract.TypeOf[runData]()},
		Background: background(),
		Exits:      []contract.Exit{{Code: contract.Success, When: "it is shown, whatever came of it"}},
		Examples:   []contract.Example{{Description: "One of them", Command: "omniagent runs show run-1a2b3c4d"}},
		Run: contract.WithStore(stores.Runs, func(
			ctx context.Context, c *contract.Call, store run.Store,
		) (contract.Result, error) {
			r, err := store.Load(ctx, c.String("id"))
			if err != nil {
				return contract.Result{}, err
			}
			d := runShownOf(store, r)
			d.Turns = turnsOf(c, r)
			return contract.Result{Data: d}, nil
		}),
	})
}

func runShownOf(store run.Store, r run.Record) runShown {
	d := runShown{
		runData: runDataOf(r), Schema: r.Version, Task: r.Text, TaskID: cmp.Or(r.Of, r.ID),
		RetryOf: contract.OrNil(r.Of),
		Attempt: len(r.Attempts), AgentID: "cli-runner", Cwd: r.Dir, Mode: "subprocess",
		Approval: string(r.Approval), Queued: r.Created, TimeoutReason: "none", Path: store.Path(r.ID),
	}
	d.Waits = waitsFor(store, r)
	if r.Detached {
		d.runData = jobOf(store, r)
	}
	d.addBeside(store, r)
	d.Adapter, d.SessionKey, d.Denied = d.runData.Agent, d.runData.Session, d.runData.Denials
	if d.Adapter == native.Name {
		d.Mode = native.Name
	}
	for _, a := range r.Attempts {
		row := runAttempt{
			a.Agent, contract.OrNil(a.Session), a.First, a.Last, string(a.State), string(a.Reason), a.Began, nil,
		}
		if !a.Ended.IsZero() {
			row.Ended = &a.Ended
		}
		d.AttemptList = append(d.AttemptList, row)
	}
	d.last(r)
	for _, q := range r.Questions {
		if a := q.Answer; a != nil {
			d.Clarifications++
			d.Answered = append(d.Answered, runAnswered{q.ID, q.Text, cmp.Or(a.Text, a.Option), a.At, a.By})
		}
	}
	for name, n := range map[string]*int64{"stdout": &d.Bytes.Stdout, "stderr": &d.Bytes.Stderr} {
		if info, err := os.Stat(filepath.Join(d.Path, name)); err == nil {
			*n = info.Size()
		}
	}
	if by, alive := store.Owner(r.ID); alive {
		d.Owner = &stores.Writer{PID: by.PID, Since: by.Since}
	}
	return d
}

// last adds the fields of the last attempt and of the result.
func (d *runShown) last(r run.Record) {
	if n := len(r.Attempts); n > 0 {
		d.Started = &r.Attempts[0].Began
		for _, before := range r.Attempts[:n-1] {
			if before.Reason != run.Asked { // an attempt after an answer is not a retry
				d.Retries++
			}
		}
		a := r.Attempts[n-1]
		d.Version, d.Executable = contract.OrNil(a.Version), contract.OrNil(a.Program)
		d.Signal = contract.OrNil(a.Signal)
		d.Command, d.EnvKeys, d.Policies = a.Args, a.EnvKeys, a.Policies
		d.Namespace, d.Walls = a.OwnPIDs, a.Walls
		if !a.FirstOutput.IsZero() {
			d.FirstOutput = &a.FirstOutput
		}
	}
	out := r.Result
	if out == nil {
		return
	}
	if r.State.Terminal() {
		d.Ended = &out.Ended
	}
	switch out.Reason {
	case run.Idle, run.NoOutput, run.TooLong, run.TooMuch:
		d.TimeoutReason = string(out.Reason)
		d.Truncated = out.Reason == run.TooMuch
	}
	d.Tools = out.Tools
	if f := cmp.Or(r.Advised(), out.Fault); f != nil {
		d.Error = &runError{
			string(f.Code), f.Message, f.Suggestion, f.Code.Entry().Retryable, f.RetryAfter.Milliseconds(),
		}
	}
}
