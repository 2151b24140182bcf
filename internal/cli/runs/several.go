package runs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/fork"
	"omniagent/internal/sys/process"
	"omniagent/internal/work/run"
)

// notBegun is the error of a run without a record, if nothing else is known.
const notBegun = "it was not begun"

// mostEntries limits the contestants of a race, and the tasks that run at once.
const mostEntries = 64

// handedOver is the result of omniagent run: one run, or a race or a batch with all its runs.
type handedOver struct {
	runData
	Winner *string                       `json:"winner,omitempty" doc:"of a race; omniagent runs apply takes it"`
	Runs   contract.Foreigns[severalRow] `json:"runs,omitempty" doc:"of a race or a batch, in their order"`
}

// severalRow describes one run of a race or a batch.
type severalRow struct {
	ID       string   `json:"run_id" doc:"empty: none was begun"`
	Fork     *string  `json:"fork"`
	Agent    string   `json:"agent"`
	Task     string   `json:"task,omitempty" doc:"of a batch"`
	Status   string   `json:"status"`
	Reason   string   `json:"reason"`
	Check    *int     `json:"check" doc:"exit code; null: it did not run, or has none"`
	Passed   bool     `json:"passed" doc:"it is done, and its check succeeded"`
	Files    *int     `json:"files" doc:"changed; null: not known"`
	Added    int      `json:"added" doc:"lines"`
	Removed  int      `json:"removed"`
	CostUSD  *float64 `json:"cost_usd"`
	Duration int64    `json:"duration_ms"`
	Error    string   `json:"error" doc:"why it is not done"`
	Before   bool     `json:"before,omitempty" doc:"it was done by an earlier call"`

	code    fault.Code
	answers []string // the commands that answer its question
}

// PlainText returns the table of several runs, or the summary of the only one.
func (d handedOver) PlainText() string {
	if d.Runs == nil {
		return d.runData.PlainText()
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	title := "AGENT"
	batch := slices.ContainsFunc(d.Runs, func(r severalRow) bool { return r.Task != "" })
	if batch {
		title = "TASK\tAGENT"
	}
	fmt.Fprintf(w, "\t%s\tSTATUS\tCHECK\tFILES\tLINES\tCOST\tTIME\tRUN\n", title)
	for _, r := range d.Runs {
		mark, who := "", text.Visible(r.Agent)
		if d.Winner != nil && *d.Winner == r.ID {
			mark = "*"
		}
		if batch {
			who = text.OneLine(r.Task, 40) + "\t" + who
		}
		status := statusWords(r.Status)
		if r.Status != string(run.NeedsInput) {
			status = endWords(r.Status, r.Reason)
		}
		if r.Before {
			status += ", before"
		}
		check, files, lines, cost := "-", "-", "-", "-"
		if r.Check != nil {
			check = fmt.Sprint(*r.Check)
		}
		if r.Files != nil {
			files, lines = fmt.Sprint(*r.Files), fmt.Sprintf("+%d -%d", r.Added, r.Removed)
		}
		if r.CostUSD != nil {
			cost = fmt.Sprintf("%.4f USD", *r.CostUSD)
		}
		took := (time.Duration(r.Duration) * time.Millisecond).Round(100 * time.Millisecond)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, who, status, check, files, lines, cost, took, r.ID)
	}
	_ = w.Flush() // into memory
	for _, r := range d.Runs {
		if r.Error != "" {
			who := cmp.Or(r.ID, text.OneLine(r.Task, 40), text.Visible(r.Agent))
			fmt.Fprintf(&b, "%s: %s\n", who, text.OneLine(r.Error, 300))
		}
	}
	for _, step := range d.Summary.Next {
		fmt.Fprintf(&b, "Next: %s\n", step)
	}
	return b.String()
}

// oneRun is one of several runs: a task for an agent, in its own process.
type oneRun struct {
	name  string // for people
	agent string // empty: that of the flags
	task  string
	fork  *fork.Fork                 // nil: without make, it works in the workspace itself
	make  func() (*fork.Fork, error) // makes the fork when the run begins; may be nil
	begun func(run string)           // called when the run has a record; may be nil
}

// several carries out runs, each in a new process of this program.
type several struct {
	call     *contract.Call
	store    run.Store
	self     string
	parallel int
}

// outputLine is a line that a run prints: a state, an event, or at the end the envelope.
type outputLine struct {
	Run   string    `json:"run_id"`
	Agent string    `json:"agent"`
	State run.State `json:"state"`
	OK    *bool     `json:"ok"`
	Error *struct {
		Code    fault.Code `json:"code"`
		Message string     `json:"message"`
	} `json:"error"`
}

// passedOn returns the flags of a call for the processes of its runs: those of the command, and some of those that all
// commands have. It leaves out flags about several runs, and those that are passed in another form.
func passedOn(c *contract.Call) (args []string) {
	names := []string{
		"timeout", "config", "no-config", "context", "instance-id", "proxy", "no-proxy", "retries", "retry-delay",
		"connect-timeout",
	}
	apart := []string{"task", "answer-from", "detach", "fork", "race", "batch", "parallel", "network"}
	for _, p := range c.Command.Params {
		if !slices.Contains(apart, p.Name) && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	for _, name := range names {
		if !c.Given(name) {
			continue
		}
		for _, value := range c.Strings(name) {
			args = append(args, "--"+name+"="+value)
		}
	}
	for _, pair := range c.Strings("answer-from") {
		key, file, _ := strings.Cut(pair, "=")
		args = append(args, "--answer-from="+key+"="+c.Abs(file))
	}
	return args
}

// carryOut returns when all runs are over. A run that fails does not end the others.
func (s several) carryOut(ctx context.Context, entries []oneRun) []severalRow {
	rows := make([]severalRow, len(entries))
	free := make(chan struct{}, s.parallel)
	var all sync.WaitGroup
	for i, e := range entries {
		rows[i] = severalRow{Agent: e.agent, Status: string(run.Queued)}
		if e.fork != nil {
			rows[i].Fork = &e.fork.Name
		}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			rows[i].Error = notBegun
			continue
		}
		all.Go(func() {
			defer func() { <-free }()
			rows[i] = s.one(ctx, e)
		})
	}
	all.Wait()
	return rows
}

// one carries out one run.
func (s several) one(ctx context.Context, e oneRun) severalRow {
	if e.make != nil {
		var err error
		if e.fork, err = e.make(); err != nil {
			return severalRow{Status: string(run.Failed), Error: fault.Of(err).Message, code: fault.Of(err).Code}
		}
	}
	c, last := s.call, outputLine{}
	args := append([]string{s.self, "run", "--stream", "--output=json", "--quiet"}, passedOn(c)...)
	if e.agent != "" {
		args = append(args, "--agent="+e.agent)
	}
	if e.fork != nil && c.Given("network") {
		args = append(args, "--network="+c.String("network")) // the record keeps it for later calls in the fork
	}
	out := &lineWriter{to: func(line []byte) {
		var now outputLine
		if json.Unmarshal(line, &now) != nil {
			return
		}
		if now.OK != nil {
			last.Error = now.Error
			return
		}
		if last.Run != "" && now.Run == "" { // an event has no id of its run
			line = fmt.Appendf(nil, `{"run_id":%q,%s`, last.Run, line[1:])
		}
		c.Emit(append(bytes.Clone(line), '\n'))
		if now.Run != "" && last.Run == "" {
			last.Run = now.Run
			if e.begun != nil {
				e.begun(now.Run)
			}
		}
		if now.State != "" && c.Host.StderrTerminal && !c.Bool("quiet") {
			parts.LogLine(c, "%s: %s", e.name, statusWords(string(now.State)))
		}
	}}
	plan := process.Plan{
		Argv: args, Path: s.self, Dir: c.Dir(), Env: os.Environ(),
		Stdin: strings.NewReader(e.task), Stdout: out, Stderr: io.Discard, Grace: c.Config.Duration("grace"),
	}
	err := s.start(ctx, e, plan)
	row := s.row(ctx, e, last)
	if err != nil {
		row.Error, row.code = fault.Of(err).Message, fault.Of(err).Code
	}
	return row
}

// start starts the program and waits until it ends. If the call is cancelled, it ends the program.
func (s several) start(ctx context.Context, e oneRun, plan process.Plan) error {
	var child *process.Child
	var wait func()
	if e.fork == nil {
		started, err := process.Start(plan)
		if err != nil {
			return err
		}
		child, wait = started, func() { started.Wait() }
	} else {
		n, err := forks.NetworkIn(s.call, e.fork, cmp.Or(s.call.String("network"), parts.Internet))
		if err != nil {
			return err
		}
		// A cancelled contestant needs the state of the workspace too, to be merged.
		work, err := e.fork.Start(context.WithoutCancel(ctx), plan, n)
		if err != nil {
			return err
		}
		child, wait = work.Child, func() {
			if _, missing := work.Wait(); missing != nil {
				parts.LogLine(s.call, "%s: what the workspace was is not known, so less can be merged: %v", e.name,
					missing)
			}
		}
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-ctx.Done():
			child.End(os.Interrupt)
		case <-over:
		}
	}()
	wait()
	return nil
}

// row returns the row of a run, from its record if there is one.
func (s several) row(ctx context.Context, e oneRun, last outputLine) severalRow {
	row := severalRow{Agent: cmp.Or(e.agent, last.Agent), Status: string(run.Failed)}
	if e.fork != nil {
		row.Fork = &e.fork.Name
	}
	if last.Error != nil {
		row.Error, row.code = last.Error.Message, last.Error.Code
	}
	if last.Run == "" {
		row.Error = cmp.Or(row.Error, notBegun)
		return row
	}
	r, err := s.store.Load(context.WithoutCancel(ctx), last.Run)
	if err != nil {
		row.ID, row.Error = last.Run, fault.Of(err).Message
		return row
	}
	return severalRowOf(r)
}

func severalRowOf(r run.Record) severalRow {
	d := runDataOf(r)
	row := severalRow{
		ID: r.ID, Fork: d.Fork, Agent: d.Agent, Status: d.Status, Reason: d.Reason, Duration: d.DurationMS,
		Passed: r.State == run.Succeeded, answers: r.Answers(),
	}
	if d.Usage != nil {
		row.CostUSD = d.Usage.CostUSD
	}
	if d.Check != nil {
		row.Check = d.Check.ExitCode
	}
	if d.Changed != nil {
		row.Files = &d.Changed.Count
		row.Added, row.Removed = r.Result.Changed.Added, r.Result.Changed.Removed
	}
	if r.Result != nil && r.Result.Fault != nil {
		row.Error, row.code = r.Result.Fault.Message, r.Result.Fault.Code
	}
	return row
}

// nonePassed returns the fault of a race or a batch in which no run passed. Its code is that of all runs if they have
// the same.
func nonePassed(rows []severalRow, noun string) *fault.Fault {
	code := rows[0].code
	for _, r := range rows {
		if r.Status == string(run.NeedsInput) {
			return fault.New(fault.NeedsInput, "no %s passed, and %s asks something", noun, r.Agent).
				HintAny(r.answers)
		}
		if r.code != code {
			code = fault.AgentFailed
		}
	}
	return fault.New(cmp.Or(code, fault.AgentFailed), "no %s passed: %s", noun, cmp.Or(rows[0].Error, "see data.runs")).
		Hint("omniagent runs show %s", cmp.Or(rows[0].ID, "RUN"))
}

// statusOf returns the status of several runs that ended with a fault: the one that all begun runs have, or else
// failed.
func statusOf(rows []severalRow, f *fault.Fault) string {
	if f.Code == fault.NeedsInput {
		return string(run.NeedsInput)
	}
	status := ""
	for _, r := range rows {
		if r.ID != "" && status != "" && r.Status != status {
			return string(run.Failed)
		}
		if r.ID != "" {
			status = r.Status
		}
	}
	return cmp.Or(status, string(run.Failed))
}

// lineWriter calls to with each complete line, without the newline.
type lineWriter struct {
	to   func(line []byte)
	rest []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		w.to(line)
		w.rest = rest
	}
}
