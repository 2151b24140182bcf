package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/fork"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/work/run"
)

// item is a task in a Markdown list.
type item struct {
	text   string
	ticked bool
	line   int // number of its first line in the file, from 0
}

// left returns the tasks that are not ticked, with their keys in the ledger. Equal tasks are numbered, and ticked ones
// count, so that the key of a task stays the same when another one is ticked.
func left(items []item) (tasks, keys []string) {
	seen := map[string]int{}
	for _, i := range items {
		key := keyOf(i.text, seen)
		if !i.ticked {
			tasks, keys = append(tasks, i.text), append(keys, key)
		}
	}
	return tasks, keys
}

// listed returns the tasks of a Markdown list, and which of them are ticked. Indented lines below an item are part of
// it.
func listed(text string) (tasks []item) {
	begin := regexp.MustCompile(`^ ?(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]+(?:\[([ xX])\](?:[ \t]+|$))?(.*))?$`)
	rule := regexp.MustCompile(`^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$`)
	var now []string // the lines of the current item
	open, done, fence, comment, at, number := false, false, false, false, 0, -1
	end := func() {
		if task := strings.TrimSpace(strings.Join(now, "\n")); task != "" {
			tasks = append(tasks, item{task, done, at})
		}
		now, open, done = nil, false, false
	}
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		number++
		line = strings.TrimRight(line, " \t\r\n")
		indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		begins := begin.FindStringSubmatch(line)
		switch {
		case comment, !fence && !indented && strings.HasPrefix(line, "<!--"):
			if !comment {
				end()
			}
			comment = !strings.Contains(line, "-->")
		case !indented && strings.HasPrefix(line, "```"), !indented && strings.HasPrefix(line, "~~~"):
			fence = !fence
			end()
		case fence:
		case rule.MatchString(line):
			end()
		case begins != nil:
			end()
			open, done, at = true, strings.EqualFold(begins[1], "x"), number
			now = append(now, begins[2])
		case !open:
		case indented && strings.HasPrefix(line, "\t"):
			now = append(now, line[1:])
		case indented:
			now = append(now, line[2:])
		case line == "":
			now = append(now, "")
		case now[len(now)-1] == "" || strings.HasPrefix(line, "#"): // not part of the item
			end()
		default:
			now = append(now, line)
		}
	}
	end()
	return tasks
}

// ledger records the runs of the tasks in a file, so that a later call continues where this one ended.
type ledger struct {
	File  string            `json:"file"`
	Dir   string            `json:"dir"`
	Tasks map[string]booked `json:"tasks"` // by keyOf

	path string
	mu   sync.Mutex
}

// booked is the last run of a task.
type booked struct {
	Run  string      `json:"run_id"`
	Done *severalRow `json:"done,omitempty"` // nil unless it has succeeded
}

// ledgerOf returns the ledger for a file of tasks and a directory. It resolves links, and does not read the ledger yet.
func ledgerOf(store run.Store, file, dir string) *ledger {
	file, dir = pathname.Real(file), pathname.Real(dir)
	sum := sha256.Sum256([]byte(file + "\x00" + dir))
	return &ledger{
		File: file, Dir: dir, Tasks: map[string]booked{},
		path: filepath.Join(store.Dir, ".batches", hex.EncodeToString(sum[:12])+".json"),
	}
}

// open locks and reads the ledger. It fails if another call has it.
func (l *ledger) open(ctx context.Context) (release func(), err error) {
	if err := workspace.MkdirAll(filepath.Dir(l.path)); err != nil {
		return nil, err
	}
	held, err := workspace.Lock(ctx, l.path+".lock", 0)
	if errors.Is(err, fault.LockHeld) {
		return nil, fault.New(fault.Conflicting, "another call works on the tasks of %s", l.File).Because(err)
	}
	if err != nil {
		return nil, err
	}
	release = func() { _ = held.Unlock() }
	if err := l.read(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// read reads the ledger. A missing one has no tasks.
func (l *ledger) read() error {
	data, err := os.ReadFile(l.path)
	if err != nil {
		return nil // no task was begun
	}
	if err := json.Unmarshal(data, l); err != nil {
		return fault.New(fault.Unsafe, "%s is damaged", l.path).Because(err).
			Hint("remove it, and all tasks of %s are done again", l.File)
	}
	if l.Tasks == nil {
		l.Tasks = map[string]booked{}
	}
	return nil
}

// book records the run of a task.
func (l *ledger) book(key string, b booked) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Tasks[key] = b
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return workspace.WriteFile(l.path, append(data, '\n'), 0o600)
}

// known returns the result of a task's earlier run if the task must not be done again: the run has succeeded, is under
// way, or waits for an answer. It cancels a queued run whose process was killed.
func (l *ledger) known(ctx context.Context, store run.Store, key string) (severalRow, bool) {
	b := l.Tasks[key]
	if b.Done != nil {
		return *b.Done, true
	}
	r, open := l.last(ctx, store, key)
	if open && r.State == run.Queued {
		_, _, err := store.End(ctx, b.Run)
		open = err == nil
	}
	if open {
		return severalRow{}, false
	}
	row := severalRowOf(r)
	if row.Passed {
		_ = l.book(key, booked{b.Run, &row}) // the record may be gone the next time
	}
	return row, true
}

// last returns the last run of a task. open reports whether the task is still to be done.
func (l *ledger) last(ctx context.Context, store run.Store, key string) (r run.Record, open bool) {
	b, begun := l.Tasks[key]
	if !begun || b.Done != nil {
		return run.Record{}, !begun
	}
	r, err := store.Load(ctx, b.Run)
	_, alive := store.Owner(b.Run)
	return r, err != nil || r.State.Terminal() && r.State != run.Succeeded ||
		r.State == run.Queued && !alive // its process was killed before it began
}

// keyOf returns the key of a task: a hash of its text, and of how many equal tasks stand before it.
func keyOf(task string, seen map[string]int) string {
	seen[task]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", seen[task], task))
	return hex.EncodeToString(sum[:])
}

// batch does the tasks of a file that have not succeeded yet.
func (p commands) batch(ctx context.Context, c *contract.Call) (contract.Result, error) {
	task, err := p.baseTask(c)
	if err != nil {
		return contract.Result{}, err
	}
	file := c.Abs(c.String("batch"))
	list, err := workspace.ReadFile(file, maxTask)
	if err != nil {
		return contract.Result{}, err
	}
	items := listed(string(list))
	tasks, keys := left(items)
	if n := len(items); n > 0 && len(tasks) == 0 {
		return nothingLeft(run.Record{Task: task, State: run.Succeeded, Created: time.Now()}, file, n), nil
	}
	if len(tasks) == 0 {
		return contract.Result{}, fault.New(fault.ArgError, "%s has no list with tasks that are open", file).
			Hint("a line for each: - What to do")
	}
	store, err := stores.Runs(c)
	if err != nil {
		return contract.Result{}, err
	}
	l := ledgerOf(store, file, c.Dir())
	if c.DryRun() {
		return l.plan(ctx, store, task, tasks, keys)
	}
	began := time.Now()
	release, err := l.open(ctx)
	if err != nil {
		return contract.Result{}, err
	}
	defer release()
	rows, err := l.runTasks(ctx, c, store, tasks, keys)
	if err != nil {
		return contract.Result{}, err
	}
	done := map[string]bool{}
	for i, row := range rows {
		done[keys[i]] = row.Passed
	}
	if err := tick(file, done); err != nil {
		c.Warn("BATCH", "%s is not ticked: %v", file, err)
	}
	return batched(run.Record{Task: task, State: run.Succeeded, Created: began}, rows)
}

// plan returns the result of a dry run: the tasks that would be done.
func (l *ledger) plan(
	ctx context.Context, store run.Store, task run.Task, tasks, keys []string,
) (contract.Result, error) {
	if err := l.read(); err != nil {
		return contract.Result{}, err
	}
	var open []string
	for i, one := range tasks {
		if _, is := l.last(ctx, store, keys[i]); is {
			open = append(open, one)
		}
	}
	out := dryRunResult(run.Record{Task: task, State: run.Queued, Created: time.Now()}, contract.Created)
	out.Target["tasks"] = open
	d := out.Data.(runData)
	d.would += text.Plural(len(open), "task")
	if len(open) < len(tasks) {
		d.would += fmt.Sprintf(" of %d, since the others are done, under way, or wait for an answer", len(tasks))
	}
	d.would += ":\n"
	for _, one := range open {
		d.would += "  " + text.OneLine(one, 70) + "\n"
	}
	out.Data = d
	return out, nil
}

// runTasks does the tasks that are left, and returns a row for each task.
func (l *ledger) runTasks(
	ctx context.Context, c *contract.Call, store run.Store, tasks, keys []string,
) ([]severalRow, error) {
	self, err := parts.Executable()
	if err != nil {
		return nil, err
	}
	rows := make([]severalRow, len(tasks))
	var entries []oneRun
	var at []int
	for i, task := range tasks {
		key := keys[i]
		if row, known := l.known(ctx, store, key); known {
			row.Before = row.Passed
			rows[i] = row
			continue
		}
		if r, err := store.Load(ctx, l.Tasks[key].Run); err == nil && r.State == run.UnknownOutcome {
			c.Warn("BATCH", "task %d is done again: nobody saw how %s ended, and it may have done the task", i+1, r.ID)
		}
		e := oneRun{name: fmt.Sprintf("task %d", i+1), task: task, begun: func(id string) {
			if err := l.book(key, booked{Run: id}); err != nil {
				c.Warn("BATCH", "task %d will be done again: %v", i+1, err)
			}
		}}
		if c.Bool("fork") {
			e.make = func() (*fork.Fork, error) { return forks.New(ctx, c, c.Dir()) }
		}
		entries, at = append(entries, e), append(at, i)
	}
	parallel := max(1, c.Int("parallel"))
	for n, row := range (several{c, store, self, parallel}).carryOut(ctx, entries) {
		rows[at[n]] = row
		if row.Passed {
			if err := l.book(keys[at[n]], booked{row.ID, &row}); err != nil {
				c.Warn("BATCH", "task %d will be done again: %v", at[n]+1, err)
			}
		}
	}
	for i := range rows {
		rows[i].Task = tasks[i]
	}
	return rows, nil
}

// nothingLeft returns the result of a batch whose tasks are all ticked.
func nothingLeft(whole run.Record, file string, n int) contract.Result {
	d := handedOver{runData: runDataOf(whole)}
	d.would = fmt.Sprintf("Nothing is left to do: of %s in %s, all are ticked.\n", text.Plural(n, "task"),
		text.Name(file))
	return contract.Result{Data: d, Effect: contract.Noop}
}

// tick ticks the tasks of a file whose keys are in done. It reads the file again, because a person may have edited it
// meanwhile. A task with another text is another task, so it is not ticked.
func tick(file string, done map[string]bool) error {
	list, err := workspace.ReadFile(file, maxTask)
	if err != nil {
		return err
	}
	box := regexp.MustCompile(`^(\x{FEFF}? ?(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[) (\])`)
	lines, seen, changed := slices.Collect(strings.Lines(string(list))), map[string]int{}, false
	for _, i := range listed(string(list)) {
		if key := keyOf(i.text, seen); i.ticked || !done[key] {
			continue
		}
		now := box.ReplaceAllString(lines[i.line], "${1}x${2}")
		changed, lines[i.line] = changed || now != lines[i.line], now
	}
	if !changed {
		return nil
	}
	return workspace.WriteFile(file, []byte(strings.Join(lines, "")), 0o644)
}

// batched returns the result of a batch.
func batched(whole run.Record, rows []severalRow) (contract.Result, error) {
	d := handedOver{runData: runDataOf(whole), Runs: rows}
	var left []severalRow
	for _, r := range rows {
		if !r.Passed {
			left = append(left, r)
		} else if r.Fork != nil {
			d.Summary.Next = append(d.Summary.Next, "omniagent runs apply "+r.ID)
		}
	}
	out := contract.Result{Data: d, Effect: contract.Created}
	if len(left) == 0 {
		return out, nil
	}
	f := fault.New(fault.PartialFailure, "not done: %d of %s", len(left), text.Plural(len(rows), "task")).
		Hint("the same call again does those that are left")
	if len(left) == len(rows) {
		f = nonePassed(rows, "task")
	}
	d.Status = statusOf(left, f)
	out.Data = d
	return out, f
}
