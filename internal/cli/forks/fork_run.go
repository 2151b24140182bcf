package forks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	"omniagent/internal/work/run"
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

func forkOpen() *contract.Command {
	return &contract.Command{
		Path: "fork open", Summary: "reach a port of a fork from outside, until interrupted", Class: contract.Stream,
		Prints: true, Danger: contract.Safe, Version: "1.0.0", Scopes: []string{}, LooseConfig: true,
		Params: []contract.Param{
			forkParam(),
			{
				Name: "port", Kind: contract.Text, Position: 2, Required: true, Pattern: `^:?[0-9]{1,5}$`, Like: "8080",
				Help: "such as :3000",
			},
			{Name: "cwd", Kind: contract.File, Help: "current directory of the call"},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it was interrupted"},
			{Code: contract.PreconditionFailed, When: "no home"},
			noFork(),
			{Code: contract.Conflict, When: "nothing runs in it, or it has the network of this machine"},
			{Code: contract.PermissionDenied, When: "no access"},
		},
		Examples: []contract.Example{{Description: "A server", Command: "omniagent fork open try :3000"}},
		Serve:    serveForkOpen,
	}
}

func serveForkOpen(_ context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	f, err := forkNamed(c)
	if err != nil {
		return 0, err
	}
	port, err := strconv.ParseUint(strings.TrimPrefix(c.String("port"), ":"), 10, 16)
	if err != nil || port == 0 {
		return 0, fault.New(fault.ArgError, "%s is not a port; ports are 1 to 65535", c.String("port")).
			Hint("omniagent fork open %s :3000", f.Name)
	}
	dialer, err := f.Dial(fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return 0, err
	}
	defer dialer.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fault.New(fault.PermissionDenied, "no port can be listened at").Because(err)
	}
	fmt.Fprintf(c.Host.Stdout, "http://%s\n", l.Addr())
	go func() {
		<-signals
		_ = l.Close()
	}()
	var mu sync.Mutex // guards dialer
	for {
		conn, err := l.Accept()
		if err != nil {
			return 0, nil
		}
		go func() {
			mu.Lock()
			inside, err := dialer.Connect()
			mu.Unlock()
			if err != nil {
				parts.LogLine(c, "the fork does not answer at :%d: %v", port, err)
				_ = conn.Close()
				return
			}
			relay(conn, inside)
		}()
	}
}

// relay copies between two connections, both ways, until both have ended.
func relay(a, b net.Conn) {
	var group sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		group.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	group.Wait()
	_, _ = a.Close(), b.Close()
}
