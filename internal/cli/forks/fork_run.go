package forks

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/fork"
	"omniagent/internal/sys/process"
	"omniagent/internal/walls/policy"
)

func forkRun() *contract.Command {
	return &contract.Command{
		Path: "fork run", Summary: "run a command in a private copy of the workspace",
		Here: true, Class: contract.Terminal,
		Danger: contract.Mutating,
		Detail: "Streams and exit status are the command's. It has its own loopback network. It cannot change your " +
			"workspace, but it can change anything else. See docs/forks.md.",
		Scopes: []string{},
		Params: []contract.Param{
			{
				Name: "command", Kind: contract.Text, Position: 1, Variadic: true, Required: true,
				Help: "program and arguments, behind --",
			},
			{Name: "name", Kind: contract.ID, MaxLen: 64, Help: "its name; made if it does not exist"},
			{Name: "network", Kind: contract.Name, Help: "what it reaches: off, internet, packages, hosts, or on"},
			{
				Name: "tier", Kind: contract.Enum, Enum: text.Words(fork.Tiers()),
				Help: "this one, not the best that works",
			},
			{Name: "cwd", Kind: contract.File, Help: "in the workspace"},
			flags.Timeout("time limit"),
		},
		Children: []contract.Subprocess{{Binary: "command", CallerArgs: []string{"command"}}},
		Files:    []contract.FileEffect{Files()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the command ended with 0; any other status is its own"},
			{Code: contract.NotFound, When: "no such program or directory"},
			{Code: contract.PreconditionFailed, When: "no home"},
			{Code: contract.TimedOut, When: "the time limit passed", Changed: contract.Some},
			{Code: contract.Conflict, When: "the name is that of another workspace's fork, or this is a fork"},
			{Code: contract.PermissionDenied, When: "no access"},
			{Code: contract.Unavailable, When: "no tier works here; the message says why"},
		},
		Examples: []contract.Example{{
			Description: "Try an upgrade", Command: "omniagent fork run --name try -- make test",
		}},
		Serve: serveForkRun,
	}
}

func serveForkRun(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	if _, err := chosenNetwork(c, c.String("network")); err != nil { // before a fork is made
		return 0, err
	}
	standby := process.Prepare(false)
	defer standby.Dismiss()
	f, fresh, err := forkFor(ctx, c, c.String("name"))
	if err != nil {
		return 0, err
	}
	n, err := NetworkIn(c, f, c.String("network"))
	if err != nil {
		if fresh {
			_, _ = f.Delete(context.WithoutCancel(ctx)) // nothing ran in it
		}
		return 0, err
	}
	w := work{call: c, fork: f, net: n, signals: signals, limit: flags.TurnOf(c), standby: standby, fresh: fresh}
	ending, err := w.carryOut(ctx, c.Strings("command"))
	return policy.Status(ending), err
}

// forkFor returns the fork of that name, or makes one. It makes none if the program to run does not exist.
func forkFor(ctx context.Context, c *contract.Call, name string) (f *fork.Fork, fresh bool, err error) {
	store, err := stores.Forks(c)
	if err != nil {
		return nil, false, err
	}
	tier := fork.Tier(c.String("tier"))
	if name != "" {
		f, err := store.Open(name)
		if err == nil {
			return f, false, sameFork(c, store, f, tier)
		}
		if fault.Of(err).Code != fault.NotFoundCode {
			return nil, false, err
		}
	}
	if _, err := process.Locate(c.Strings("command"), c.Dir(), os.Environ()); err != nil {
		return nil, false, err
	}
	f, err = store.Make(ctx, fork.Wanted{Dir: c.Dir(), Name: name, Tier: tier})
	return f, true, err
}

// sameFork refuses an existing fork that does not fit the call: one of another workspace or tier, or the one around it.
func sameFork(c *contract.Call, store fork.Store, f *fork.Fork, tier fork.Tier) error {
	if in := store.Around(c.Dir()); in != nil {
		return fault.New(fault.Conflicting, "this is the fork %s already", in.Name).
			Hint("run it outside of the fork, in %s", in.Workspace)
	}
	root, err := store.Root(c.Dir())
	if err != nil || root != f.Workspace {
		return fault.New(fault.Conflicting, "%s is a fork of %s", f.Name, f.Workspace).
			Hint("another --name, or: omniagent fork run --name %s --cwd %s -- COMMAND", f.Name, f.Workspace)
	}
	if tier != "" && tier != f.Tier {
		return fault.New(fault.Conflicting, "the fork %s is there, in the tier %s", f.Name, f.Tier)
	}
	return nil
}

// work runs a program in a fork, with the streams of the call.
type work struct {
	call    *contract.Call
	fork    *fork.Fork
	net     fork.Net
	signals <-chan os.Signal
	limit   time.Duration    // 0: none
	standby *process.Standby // nil: none was prepared
	fresh   bool             // the fork was just made, so its name is printed
	dir     string           // directory to start in; empty: that of the call
}

func (w work) carryOut(ctx context.Context, argv []string) (ending process.Ending, err error) {
	c, f := w.call, w.fork
	dir := cmp.Or(w.dir, c.Dir())
	plan := process.Plan{
		Argv: argv, Path: argv[0], Dir: dir, Env: os.Environ(), Stdin: os.Stdin, Standby: w.standby,
	}
	if !strings.Contains(argv[0], "/") {
		plan.Path, err = process.Locate(argv, c.Dir(), plan.Env)
	} else if file := f.Real(c.Abs(argv[0])); file == "" || !process.Runs(file) {
		err = fault.New(fault.FileMissing, "%s is not an executable file in the fork %s", argv[0], f.Name).
			Hint("Give the path of an executable file.")
	}
	if err != nil {
		return ending, err
	}
	plan.Stdout, plan.Stderr = c.Host.Stdout, io.Writer(os.Stderr)
	if c.Host.StdinTerminal {
		plan.Terminal = os.Stdin
	}
	if w.fresh {
		network := "a loopback of its own"
		switch {
		case w.net.Open:
			network = "the network of this machine"
		case w.net.Word == parts.Internet:
			network += ", and the internet through a proxy"
		}
		parts.LogLine(c, "working in the fork %[1]s of %[2]s (%[3]s, with %[4]s); afterwards: "+
			"omniagent fork diff %[1]s, fork apply %[1]s or fork delete %[1]s --confirm-destructive",
			f.Name, f.Workspace, f.Tier, network)
	}
	running, err := f.Start(ctx, plan, w.net)
	if err != nil {
		return ending, err
	}
	stop := policy.Forward(w.signals, w.limit, running.Child)
	ending, missing := running.Wait()
	if missing != nil {
		parts.LogLine(c, "what the workspace was is not known, so less can be merged: %v", missing)
	}
	return ending, stop()
}
