package command

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
)

type cleanedFile struct {
	Path  string `json:"path"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes_freed"`
}

type endedProcess struct {
	Program string    `json:"program"`
	Started time.Time `json:"started"`
	PIDs    []int     `json:"pids" doc:"the program, if it runs, and what it started"`
}

type closedRun struct {
	ID     string `json:"run_id"`
	Status string `json:"status"`
}

type cleanupData struct {
	Scope   string         `json:"scope"`
	MinAge  int            `json:"min_age_seconds"`
	Ended   []endedProcess `json:"ended" doc:"agents whose owner, a process of ours, has died"`
	Closed  []closedRun    `json:"closed" doc:"runs whose owner has died; one that only waits for an answer waits on"`
	Cleaned []cleanedFile  `json:"cleaned"`
	Total   int64          `json:"total_bytes_freed"`
}

func cleanup() *contract.Command {
	return &contract.Command{
		Path: "cleanup", Summary: "end and delete what earlier calls left behind", Class: contract.Envelope,
		Danger: contract.Destructive, Version: "1.0.0",
		Detail: "Shows what it would do; --live does it. Only what this program made is ever touched: agents that it " +
			"started and whose\n" +
			"owner has died, runs without their owner, its own temporary directories, results kept for idempotency " +
			"keys, records of\n" +
			"ended children, homes of rehearsals, caches, rotated audit logs, and snapshots beyond\nundo.age and " +
			"undo.budget.",
		DryRun: true, SafeDefault: true, LooseConfig: true, Recursive: true,
		Steps: cleanupSteps(), LongRunning: true,
		Scopes: []string{}, Output: contract.TypeOf[cleanupData](),
		Volatile: []string{"ended", "closed", "cleaned", "total_bytes_freed"},
		Params: []contract.Param{
			{
				Name: "scope", Kind: contract.Enum, Enum: append([]string{"all"}, cleanupSteps()...), Default: "all",
				Help: "what to end or delete",
			},
			{
				Name: "min-age", Kind: contract.Int, Max: 1 << 32, Default: "3600",
				Help: "seconds that a file must not have been touched",
			},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is ended and deleted, or shown without --live"},
			{Code: contract.PartialFailure, When: "some of it could not be; resume_from names the step"},
		},
		Examples: []contract.Example{
			{Description: "What could go", Command: "omniagent cleanup"},
			{
				Description: "End agents that outlived their owner",
				Command:     "omniagent cleanup --scope processes --live",
			},
			{Description: "Delete temporary files over an hour old", Command: "omniagent cleanup --scope temp --live"},
		},
		Run: runCleanup,
	}
}

func cleanupSteps() []string { return []string{stepProcesses, "temp", "cache", "logs", stepUndo} }

const (
	stepProcesses = "processes"
	stepUndo      = "undo"
)

func runCleanup(ctx context.Context, c *contract.Call) (contract.Result, error) {
	data := cleanupData{Scope: c.String("scope"), MinAge: c.Int("min-age")}
	found := cleanupTarget{}
	var failed error
	for _, step := range c.Command.Steps {
		if data.Scope != "all" && data.Scope != step {
			c.SkipStep(step)
			continue
		}
		err := c.Step(ctx, step, func(ctx context.Context) error {
			switch step {
			case stepProcesses:
				return endOrphans(ctx, c, &data, &found)
			case stepUndo:
				return forgetTurns(ctx, c, &data, &found)
			}
			return removeLeftovers(ctx, c, step, &data, &found)
		})
		if err != nil {
			failed = err
			break
		}
	}
	result := contract.Result{Data: data, Effect: contract.Deleted, Target: found.data()}
	if found.count() == 0 {
		result.Effect = contract.Noop
	}
	if failed != nil {
		return result, fault.New(fault.PartialFailure, "not everything could be ended or deleted").Because(failed).
			With("cause_code", string(fault.Of(failed).Code)).Hint(
			"put right what the cause names, then give --resume-from the failed step")
	}
	return result, nil
}

// cleanupTarget is what a cleanup ends or deletes, or would.
type cleanupTarget struct {
	paths, runs []string
	pids        []int
}

func (t cleanupTarget) count() int { return len(t.paths) + len(t.runs) + len(t.pids) }

func (t cleanupTarget) data() map[string]any {
	all := map[string]any{"paths": t.paths, "count": t.count()}
	if len(t.pids) > 0 {
		all["pids"] = t.pids
	}
	if len(t.runs) > 0 {
		all["runs"] = t.runs
	}
	return all
}

// endOrphans ends programs that outlived the process that started them, and then closes the runs whose owner died.
func endOrphans(ctx context.Context, c *contract.Call, data *cleanupData, found *cleanupTarget) error {
	if c.Paths.State == "" {
		return nil
	}
	orphans, err := process.Orphans(filepath.Join(c.Paths.State, stores.ProcessesDir))
	if err != nil {
		return err
	}
	for _, o := range orphans {
		found.pids = append(found.pids, o.PIDs...)
		if c.DryRun() {
			continue
		}
		if err := o.End(); err != nil {
			return err
		}
		data.Ended = append(data.Ended, endedProcess{o.Argv0, o.Started, o.PIDs})
	}
	if !c.DryRun() {
		process.Tidy(filepath.Join(c.Paths.State, stores.ProcessesDir))
	}
	store, err := stores.Runs(c)
	if err != nil {
		return err
	}
	for _, lost := range store.Lost() {
		found.runs = append(found.runs, lost.ID)
		if c.DryRun() {
			continue
		}
		r, err := store.Load(ctx, lost.ID)
		if err != nil {
			return err
		}
		data.Closed = append(data.Closed, closedRun{r.ID, string(r.State)})
	}
	return nil
}

// forgetTurns deletes the snapshots of turns that are older than undo.age or exceed undo.budget.
func forgetTurns(ctx context.Context, c *contract.Call, data *cleanupData, found *cleanupTarget) error {
	if c.Paths.State == "" {
		return nil
	}
	store, err := stores.Snapshots(c)
	if err != nil {
		return err
	}
	surplus, err := store.Surplus(c.Config.Duration("undo.age"), c.Config.Int("undo.budget"))
	if err != nil {
		return err
	}
	ids := map[string]bool{}
	for _, r := range surplus {
		ids[r.ID] = true
	}
	gone, freed := surplus, int64(0)
	if !c.DryRun() && len(ids) > 0 { // another process may have deleted some
		gone, freed, err = store.Delete(ctx, func(r undo.Record) bool { return ids[r.ID] })
	}
	for _, r := range gone {
		found.paths = append(found.paths, filepath.Join(store.Dir, r.ID))
	}
	if len(gone) > 0 && !c.DryRun() {
		data.Cleaned = append(data.Cleaned, cleanedFile{store.Dir, stepUndo, freed})
		data.Total += freed
	}
	if errors.Is(err, fault.Conflicting) { // all others are deleted
		c.Warn("UNDO_INTERRUPTED", "%v", err)
		return nil
	}
	return err
}

// removeLeftovers deletes the files of a step.
func removeLeftovers(ctx context.Context, c *contract.Call, step string, data *cleanupData,
	found *cleanupTarget,
) error {
	for _, old := range leftovers(c, step) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.DryRun() {
			found.paths = append(found.paths, old.path)
			continue
		}
		removed, err := removeLeftover(c, step, old)
		if errors.Is(err, fs.ErrNotExist) { // another process has deleted it
			continue
		}
		found.paths = append(found.paths, old.path)
		if err != nil {
			return err
		}
		data.Cleaned = append(data.Cleaned, cleanedFile{old.path, step, removed})
		data.Total += removed
	}
	return nil
}

// removeLeftover deletes a file or directory and returns its size. A file of the audit log is removed by the log
// itself, which records that.
func removeLeftover(c *contract.Call, step string, found leftover) (bytes int64, err error) {
	if step == "logs" {
		info, err := os.Lstat(found.path)
		if err == nil {
			bytes, err = info.Size(), c.AuditLog().Remove(found.path)
		}
		return bytes, err
	}
	return workspace.RemoveTree(found.root, found.path,
		workspace.Walk{MaxDepth: c.Int("max-depth"), NoFollow: c.Bool("no-follow-symlinks")})
}

type leftover struct{ root, path string }

// leftovers returns what a step deletes: only files of this program, and none that changed recently.
func leftovers(c *contract.Call, step string) []leftover {
	young := time.Now().Add(-time.Duration(c.Int("min-age")) * time.Second)
	switch step {
	case "temp":
		list := oldIn(c.Paths.Temp, young, func(path string) bool { return c.Program.OwnsTemp(path) })
		if c.Paths.State == "" {
			return list
		}
		list = append(list, oldIn(demoBase(c), young, func(string) bool { return true })...)
		kept := time.Now().Add(-contract.ResultLifetime)
		if young.Before(kept) {
			kept = young
		}
		list = append(list, oldIn(filepath.Join(c.Paths.State, "idempotency"), kept,
			func(path string) bool { return strings.HasSuffix(path, ".json") })...)
		// the homes of rehearsals that were killed
		list = append(list, oldIn(filepath.Join(c.Paths.State, "rehearsal"), young,
			func(string) bool { return true })...)
		return append(list, endedChildren(filepath.Join(c.Paths.State, stores.ProcessesDir), young)...)
	case "cache":
		return oldIn(c.Paths.Cache, young, func(string) bool { return true })
	case "logs":
		var list []leftover
		for _, file := range c.AuditLog().Files() {
			if file == c.AuditPath() || !olderThan(file, young) {
				break // the following files are newer
			}
			list = append(list, leftover{filepath.Dir(file), file})
		}
		return list
	}
	return nil
}

// oldIn lists the entries of a directory for which ours returns true and that have not changed since before.
func oldIn(dir string, before time.Time, ours func(path string) bool) (list []leftover) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); ours(path) && olderThan(path, before) {
			list = append(list, leftover{dir, path})
		}
	}
	return list
}

func olderThan(path string, before time.Time) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.ModTime().After(before)
}

// endedChildren returns the records in which all children have ended.
func endedChildren(dir string, before time.Time) []leftover {
	alive := map[string]bool{}
	children, err := process.Registers(dir)
	if err != nil {
		return nil
	}
	for _, child := range children {
		alive[child.File] = alive[child.File] || child.Alive
	}
	if orphans, err := process.Orphans(dir); err == nil { // process.Orphans needs their records
		for _, o := range orphans {
			alive[o.File] = true
		}
	}
	return oldIn(dir, before, func(path string) bool { return strings.HasSuffix(path, ".jsonl") && !alive[path] })
}
