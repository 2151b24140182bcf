package forks

import (
	"cmp"
	"context"
	"os"
	"slices"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
	"omniagent/internal/walls/policy"
	"omniagent/internal/work/run"
)

// Flag returns --fork of the commands that run an agent.
func Flag() contract.Param {
	return contract.Param{Name: "fork", Kind: contract.Bool, Help: "work in a fork: docs/forks.md"}
}

// RerunInNew makes a fork for a call with --fork and runs the call again inside it, in a new process of this program.
// done is false if there is nothing to do: without --fork, or inside a fork. It first calls refuses, and makes no fork
// if that returns an error.
func RerunInNew(
	ctx context.Context, c *contract.Call, signals <-chan os.Signal, network string,
	refuses func(context.Context, *contract.Call) error,
) (status int, done bool, err error) {
	if !c.Bool("fork") || stores.ForkAround(c) != nil {
		return 0, false, nil
	}
	if err := refuses(ctx, c); err != nil {
		return 0, false, err
	}
	f, err := New(ctx, c, c.Dir())
	if err != nil {
		return 0, false, err
	}
	n, err := NetworkIn(c, f, cmp.Or(network, parts.Internet))
	if err != nil {
		_, _ = f.Delete(context.WithoutCancel(ctx)) // nothing ran in it
		return 0, false, err
	}
	status, err = work{call: c, fork: f, net: n, signals: signals, fresh: true}.rerun(ctx)
	if repeats := c.Command.Again != nil && c.Given("idempotency-key"); status != 0 || err != nil || repeats {
		deleteUnused(context.WithoutCancel(ctx), c, f)
	}
	return status, err == nil, err
}

// deleteUnused deletes a fork if nothing was changed in it and no run refers to it.
func deleteUnused(ctx context.Context, c *contract.Call, f *fork.Fork) {
	store, err := stores.Runs(c)
	if err != nil {
		return
	}
	runs, skipped, err := store.List(ctx)
	named := slices.ContainsFunc(runs, func(r run.Record) bool { return r.ForkID == f.ID })
	if err != nil || len(skipped) > 0 || named {
		return
	}
	changes, err := f.Changes(ctx)
	if err != nil || len(changes) > 0 {
		return
	}
	if own, err := f.Owns(ctx); err != nil || len(own) > 0 {
		return
	}
	if _, err := f.Delete(ctx); err == nil {
		parts.LogLine(c, "the fork %s is deleted again: nothing was changed in it", f.Name)
	}
}

// RerunIn runs a call again in a fork, in a new process of this program that starts in dir. If a signal ends that
// process, the returned fault says so.
func RerunIn(
	ctx context.Context, c *contract.Call, f *fork.Fork, n fork.Net, signals <-chan os.Signal, dir string,
) (int, error) {
	return work{call: c, fork: f, net: n, signals: signals, dir: dir}.rerun(ctx)
}

// rerun runs the call again in the fork, in a new process of this program.
func (w work) rerun(ctx context.Context) (int, error) {
	self, err := parts.Executable()
	if err != nil {
		return 0, err
	}
	ending, err := w.carryOut(ctx, append([]string{self}, withCwd(w.call.Host.Args)...))
	// A signal that comes before the new process handles signals ends it without an answer.
	if slices.Contains([]string{"SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"}, ending.Signal) {
		return 0, fault.New(fault.Interrupted, "%s was ended by %s", w.call.Command.Path, ending.Signal).
			With("signal", ending.Signal)
	}
	return policy.Status(ending), err
}

// withCwd adds --cwd=. to the flags, because the new process starts in the right directory and the arguments may name
// another one.
func withCwd(args []string) []string {
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	return slices.Insert(slices.Clone(args), end, "--cwd=.") // the last one counts
}
