package runs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/work/review"
	"omniagent/internal/work/run"
)

func (p commands) runsRetry() *contract.Command {
	return p.runCommand(contract.Command{
		Path: "runs retry", Summary: "do a run's task again, or send comments on its changes",
		Detail: "The answers that were given count again. What the first run has changed stays as it is.",
		Params: append([]contract.Param{
			runParam(),
			{
				Name: "comment", Kind: contract.Text, Repeat: true,
				Help: "FILE:LINE=TEXT, of runs diff: goes on in that session",
			},
			{Name: "detach", Kind: contract.Bool, Help: "return at once; a process carries it out"},
			idleParam("longest silence of the agent; default: that of the run"),
		}, runStart()...),
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is done; with --detach, begun"},
			{Code: contract.NotFound, When: "no such run, or agent here"},
			{Code: contract.Unavailable, When: "the service does not answer", Changed: contract.Some},
		},
		Examples: []contract.Example{{Description: "One of them", Command: "omniagent runs retry run-1a2b3c4d"}},
		Validate: func(c *contract.Call) (problems []fault.Problem) {
			for _, text := range c.Strings("comment") {
				if _, ok := commentOf(text); !ok {
					problems = append(problems,
						contract.Wrong("comment", fault.ArgError, text, "--comment takes FILE:LINE=TEXT"))
				}
			}
			return problems
		},
		Instead: inForkOfRun,
		Run:     contract.WithStore(stores.Runs, p.retry),
	})
}

func (p commands) retry(ctx context.Context, c *contract.Call, store run.Store) (contract.Result, error) {
	old, err := store.Load(ctx, c.String("id"))
	if err != nil {
		return contract.Result{}, err
	}
	if !old.State.Terminal() {
		return contract.Result{}, fault.New(fault.Conflicting, "%s is not over: it is %s", old.ID, old.State).
			With("run_id", old.ID).Hint("omniagent runs cancel %s", old.ID)
	}
	task := old.Task
	task.Of, task.Detached, task.Comments, task.Session = old.ID, c.Bool("detach"), "", ""
	task.First = c.Config.Duration("run.first_output") // there is no flag, so the current setting applies
	keepFlags(c, &task)
	if c.Given("timeout") {
		task.Timeout = c.Duration("timeout")
	}
	if c.Given("idle-timeout") {
		task.Idle = c.Duration("idle-timeout")
	}
	if c.Given("comment") {
		if err := commented(ctx, c, store, old, &task); err != nil {
			return contract.Result{}, err
		}
	}
	if c.DryRun() {
		return dryRunResult(run.Record{Task: task, State: run.Queued, Created: time.Now()}, contract.Created), nil
	}
	r, err := store.Create(ctx, task)
	if err != nil {
		return contract.Result{}, err
	}
	if err := r.Inherit(old); err != nil {
		r.Abandon()
		return contract.Result{}, err
	}
	if task.Detached {
		return leave(ctx, c, store, r)
	}
	return p.carryOut(ctx, c, r)
}

// comment is a person's comment on a line of a diff.
type comment struct {
	file string
	line int
	text string
}

func commentOf(text string) (c comment, ok bool) {
	m := regexp.MustCompile(`(?s)^(.+?):([0-9]+)=(.*\S.*)$`).FindStringSubmatch(text)
	if m == nil {
		return c, false
	}
	line, err := strconv.Atoi(m[2])
	return comment{m[1], line, strings.TrimSpace(m[3])}, err == nil
}

// commented changes a task to the next message to the run's agent, in the same session: comments on its changes.
func commented(ctx context.Context, c *contract.Call, store run.Store, old run.Record, task *run.Task) error {
	var text strings.Builder
	if err := store.Diff(ctx, old.ID, &text); err != nil {
		return err
	}
	diff := review.ParseDiff(text.String())
	var b strings.Builder
	b.WriteString("Please do what these comments on your changes say.\n")
	for _, written := range c.Strings("comment") {
		k, _ := commentOf(written)
		k.file = strings.TrimPrefix(k.file, strings.TrimSuffix(old.Dir, "/")+"/") // data.changed has absolute paths
		line, shown := diff.Line(k.file, k.line)
		if !shown {
			return fault.New(fault.ArgError, "line %d of %s is not in the diff of %s", k.line, k.file, old.ID).
				With("files", slices.Sorted(maps.Keys(diff.Files))).Hint("omniagent runs diff %s", old.ID)
		}
		fmt.Fprintf(&b, "\n%s:%d\n> %s\n%s\n", k.file, k.line, line, k.text)
	}
	task.Comments = b.String()
	if len(old.Attempts) == 0 {
		return nil // there is no session to continue
	}
	last := old.Attempts[len(old.Attempts)-1]
	task.Agents = []string{last.Agent}
	if last.Resumes {
		task.Session = last.Session
	}
	return nil
}

// inForkOfRun runs a call that continues a run again in the fork of that run. done is false if there is nothing to do.
func inForkOfRun(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (status int, done bool, err error) {
	runs, err := stores.Runs(c)
	if err != nil || c.DryRun() {
		return 0, false, err
	}
	id, err := targetRun(ctx, c, runs)
	if err != nil {
		return 0, false, nil // the command reports the error
	}
	r, err := runs.Peek(id)
	if err != nil || r.Fork == "" {
		return 0, false, nil // the command reports an error
	}
	if _, alive := runs.Owner(r.ID); alive {
		return 0, false, nil
	}
	store, err := stores.Forks(c)
	if err != nil {
		return 0, false, err
	}
	if in := store.Around(r.Dir); in != nil {
		return 0, false, checkForkOf(in, r)
	}
	f, err := forkOf(c, r)
	if err != nil || detaches(c, r) {
		return 0, false, err
	}
	if c.Command.Path == "answer" && r.Dir != c.Dir() { // ask here: inside the fork the directories are the same
		if err := confirmRun(ctx, c, r); err != nil {
			return 0, false, err
		}
	}
	keepFlags(c, &r.Task) // NetworkIn needs the address of the model
	n, err := forks.NetworkIn(c, f, cmp.Or(r.Network, parts.Internet))
	if err != nil {
		return 0, false, err
	}
	status, err = forks.RerunIn(ctx, c, f, n, signals, r.Dir)
	return status, err == nil, err
}

// givesSecret reports whether the answer of a call is a secret, which is not recorded.
func givesSecret(c *contract.Call) bool {
	return c.Given("secret-from-env") || c.Given("secret-from-file")
}

// detaches reports whether a call hands a run over to a detached process, which enters the fork by itself. A call with
// a secret never does, because the secret stays in its process.
func detaches(c *contract.Call, r run.Record) bool {
	return !givesSecret(c) && (c.Bool("detach") || c.Command.Path == "answer" && r.Detached)
}
