package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/tool"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/touch"
)

// Runner is the sub-agent cli-runner: it carries out each piece of work that the native agent delegates as a run.
type Runner struct {
	Store  Store
	Agents func() []string // agents that may be started, the preferred one first
	Limits Task            // of every run: Timeout, Idle, First, Retries
	// Owner returns the owner for a run. This package adds the caller's part.
	Owner func(*Run) Owner
}

var _ tool.Agents = Runner{}

// Names returns the agents that may be started.
func (d Runner) Names() []string { return d.Agents() }

// Report is the model's report of a piece of work. Files, Validation and RunID are observed; Summary and Acceptance are
// the agent's own claims.
type Report struct {
	Chunk      string            `json:"chunk_id,omitempty"`
	Goal       string            `json:"goal"`
	Agent      string            `json:"agent"`
	Status     string            `json:"status"` // Done, or Blocked(why)
	Files      []snapshot.Change `json:"files_changed"`
	More       int               `json:"further_files,omitempty"` // number of files that Files leaves out
	Partial    []string          `json:"not_looked_at,omitempty"` // places in which files may have changed
	Validation []Check           `json:"validation"`
	Acceptance []Criterion       `json:"acceptance"`
	Summary    string            `json:"summary"`
	Questions  []string          `json:"questions"`
	Next       string            `json:"next_step,omitempty"`
	RunID      string            `json:"run_id,omitempty"`
}

// Criterion is a criterion for the work, and the agent's claim about it.
type Criterion struct {
	Criterion string `json:"criterion"`
	Status    string `json:"status"` // pass, blocked, not reported
	Reason    string `json:"reason,omitempty"`
}

const (
	mostReported   = 100  // files
	longestSummary = 8000 // bytes
)

// Carry carries out a piece of work in the caller's mode. A question of the agent becomes a question in the caller's
// conversation. If nobody answers it, it is in the report.
func (d Runner) Carry(ctx context.Context, p tool.Packet, by tool.Caller) (report any, done bool) {
	task := d.Limits
	task.Text, task.Agents, task.Dir, task.Approval = p.Prompt(), []string{p.Agent}, p.Dir, by.Mode()
	out := Report{
		Chunk: p.Chunk, Goal: p.Goal, Agent: p.Agent, Validation: []Check{}, Acceptance: []Criterion{},
		Questions: []string{},
	}
	r, err := d.Store.Create(ctx, task)
	if err != nil {
		out.Status = blocked(fault.Of(err).Message)
		return out, false
	}
	defer func() { _ = r.Release() }()
	o := d.Owner(r)
	r.sight.log = touch.Under(by.Touched())
	told := false
	o.Tell = func(now Progress) {
		if e := now.Event; e != nil {
			if e.Kind == event.Ended && e.End.Usage != nil {
				told = true
				by.Spend(e.End.Usage)
			}
			by.Tell(*e)
		}
	}
	nobody := !by.CanAsk()
	if !nobody {
		o.Patience = answerClock
		o.Person = func(ctx context.Context, ask event.Ask) (event.Reply, bool) {
			ask.Text = p.Agent + " asks: " + ask.Text
			reply, ok := by.Ask(ctx, ask)
			nobody = nobody || !ok && ctx.Err() == nil
			return reply, ok
		}
	}
	for {
		if err = o.Work(ctx); err != nil || r.State != NeedsInput || nobody || !r.clarify(ctx, p.Agent, by) {
			break
		}
	}
	if !told && len(r.Attempts) > 0 {
		by.Spend(r.used())
	}
	out.fill(ctx, r, p)
	if err != nil {
		out.Status = blocked(fault.Of(err).Message)
	}
	return out, out.Status == doneStatus
}

// answerClock is how long a question may wait, unless the caller's conversation ends it before.
const answerClock = 24 * time.Hour

// clarify asks a person the questions that ended the run. It reports whether the run can continue.
func (r *Run) clarify(ctx context.Context, agent string, by tool.Caller) bool {
	for _, q := range r.Open() {
		reply, ok := by.Ask(ctx, event.Ask{ID: q.ID, Text: agent + " asks: " + q.Text, Options: q.Options})
		if !ok || q.Tool != "" {
			return false
		}
		if r.Answer(q.ID, Answer{Text: reply.Text, At: time.Now().UTC(), By: os.Getpid()}) != nil {
			return false
		}
	}
	return ctx.Err() == nil
}

// used returns the usage in the agent's records, or nil.
func (r *Run) used() *event.Usage {
	if r.Result == nil || r.Result.Usage == nil {
		return nil
	}
	u := r.Result.Usage
	return &event.Usage{Input: u.Input, Output: u.Output, CostUSD: u.CostUSD}
}

// ReadReport reads the report in the result of a call.
func ReadReport(r *event.Result) (out Report, ok bool) {
	ok = r.Name == tool.DelegateName && json.Unmarshal([]byte(r.Output), &out) == nil && out.Status != ""
	return out, ok
}

// mostLines limits the files in the lines of a report.
const mostLines = 20

// Lines returns the report for a person: the agent, how it ended, and what changed.
func (out Report) Lines() []string {
	lines := []string{out.Agent + ": " + out.Status}
	for i, f := range out.Files {
		if i == mostLines {
			lines = append(lines, fmt.Sprintf("and %d more", len(out.Files)-i+out.More))
			break
		}
		line := string(f.Status) + " " + f.Path
		if f.Added != nil && f.Removed != nil {
			line += fmt.Sprintf(" +%d -%d", *f.Added, *f.Removed)
		}
		lines = append(lines, line)
	}
	if out.Next != "" {
		lines = append(lines, out.Next)
	}
	return lines
}

// doneStatus is the status of a report that is not blocked.
const doneStatus = "Done"

func blocked(why string) string { return "Blocked(" + text.OneLine(why, 500) + ")" }

// fill adds the facts about a run.
func (out *Report) fill(ctx context.Context, r *Run, p tool.Packet) {
	out.RunID = r.ID
	if r.Result == nil {
		out.Status = blocked("nobody saw how it ended")
		return
	}
	out.Summary, _ = text.Clean(strings.ToValidUTF8(text.Cut(r.Result.Text, longestSummary), "\uFFFD"))
	out.Validation = append(out.Validation, r.Result.Checks...)
	out.Acceptance = criteria(p.Criteria, r.Result.Text)
	out.Questions = append(out.Questions, r.Result.Asks...)
	changed := r.Result.Changed
	if changed == nil { // an interrupted run may have changed files too
		changed = r.changed(context.WithoutCancel(ctx))
	}
	if changed != nil {
		out.Files = changed.Files[:min(len(changed.Files), mostReported)]
		out.More, out.Partial = changed.Count-len(out.Files), changed.Partial
		if changed.Count > 0 {
			out.Next = "omniagent runs diff " + r.ID
		}
	}
	out.Status = doneStatus
	for _, c := range out.Acceptance {
		if c.Status == criterionBlocked {
			out.Status = blocked(c.Criterion + ": " + c.Reason)
		}
	}
	if f := r.Result.Fault; f != nil {
		out.Status = blocked(f.Message)
		if f := r.Advised(); f != nil {
			out.Next = f.Suggestion
		}
	}
	for _, q := range r.Open() {
		out.Questions = append(out.Questions, q.Text)
	}
	if len(r.Open()) > 0 {
		out.Next = "a person has to answer: " + strings.Join(r.Answers(), " or ")
	}
}

// The statuses of a criterion.
const (
	criterionPass    = "pass"
	criterionBlocked = "blocked"
	notReported      = "not reported"
)

// criteria reads the answer's claim about each criterion.
func criteria(all []string, answer string) []Criterion {
	out := []Criterion{}
	for _, c := range all {
		out = append(out, Criterion{Criterion: c, Status: notReported})
	}
	line := regexp.MustCompile(`(?m)^[\s*-]*(PASS|BLOCKED)\W{1,4}(\d+)\b[\s:.*-]*(.*)$`)
	for _, m := range line.FindAllStringSubmatch(answer, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil || n < 1 || n > len(out) {
			continue
		}
		c := &out[n-1]
		if c.Status = criterionPass; m[1] == "BLOCKED" {
			c.Status, c.Reason = criterionBlocked, text.OneLine(m[3], 300)
		}
	}
	return out
}
