package safety

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/shell"
)

func (p commands) sandboxRun() *contract.Command {
	return &contract.Command{
		Path: "sandbox run", Summary: "run a command behind the walls of the native agent",
		Here: true, Class: contract.Terminal,
		Danger: contract.Mutating,
		Detail: "The command can write beneath the working directory and to a temporary directory that ends with it, " +
			"sees nothing of the home directory but\n" +
			"toolchains, caches and what native.read names, and has no network. Its streams are those of this call, " +
			"and the exit status is its own, 128 and the " +
			"number for a signal. Where no walls can\n" +
			"be built it does not run; where only weaker ones can, a line says what they do not hold. A line on " +
			"standard error that begins with omniagent: is from here.",
		Scopes: []string{},
		Params: append([]contract.Param{
			{
				Name: "command", Kind: contract.Text, Position: 1, Variadic: true, Required: true,
				Help: "program and arguments, behind --",
			},
			{Name: "cwd", Kind: contract.File, Help: "where it runs and may write"},
			flags.Timeout("time limit"),
			{Name: "all-env", Kind: contract.Bool, Help: "hand on every variable, secrets too"},
		}, wallParams()...),
		Children: []contract.Subprocess{{Binary: "command", CallerArgs: []string{"command"}}},
		Files:    []contract.FileEffect{stores.WallsFile()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the command ended with 0; any other status is its own"},
			{Code: contract.NotFound, When: "no such program or directory"},
			{Code: contract.PermissionDenied, When: "no record can be kept"},
			{Code: contract.TimedOut, When: "the time limit passed", Changed: contract.Some},
			{Code: contract.Unavailable, When: "no walls can be built here"},
		},
		Examples: []contract.Example{
			{Description: "See which variables a command gets", Command: "omniagent sandbox run -- env"},
			{
				Description: "Run the tests of a project that nobody trusts",
				Command:     "omniagent sandbox run -- make test",
			},
			{
				Description: "Let it reach one host",
				Command:     "omniagent sandbox run --network proxy.golang.org -- go mod download",
			},
		},
		Serve: p.serveSandboxRun,
	}
}

// wallParams returns the flags of both sandbox commands.
func wallParams() []contract.Param {
	return []contract.Param{
		{Name: "network", Kind: contract.Name, Help: "what it reaches: off, on, packages, or hosts"},
		{Name: "write", Kind: contract.File, Repeat: true, Help: "a directory that it may write too"},
		{Name: "hide", Kind: contract.File, Repeat: true, Help: "what it may not read either"},
		{
			Name: "walls", Kind: contract.Enum, Enum: []string{"namespaces", "landlock", "seatbelt"},
			Help: "these, not the best that work here",
		},
	}
}

// sandboxOf returns the sandbox that a call asks for.
func (p commands) sandboxOf(c *contract.Call) (policy.Wanted, error) {
	w := p.Walls(c)
	w.Root, w.Network, w.Only = c.Dir(), cmp.Or(c.String("network"), w.Network), c.String("walls")
	for _, path := range c.Strings("write") {
		w.Roots = append(w.Roots, c.Abs(path))
	}
	for _, path := range c.Strings("hide") {
		w.Hide = append(w.Hide, c.Abs(path))
	}
	temp, err := c.Temp()
	if err != nil {
		return w, err
	}
	w.Temp = filepath.Join(temp, "walls")
	if err := os.Mkdir(w.Temp, 0o700); err != nil {
		return w, fault.New(fault.PermissionDenied, "no temporary directory can be made").Because(err)
	}
	return w, nil
}

func (p commands) serveSandboxRun(_ context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	w, err := p.sandboxOf(c)
	if err != nil {
		return 0, err
	}
	for _, path := range w.Hide {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return 0, fault.New(fault.FileMissing, "--hide: there is no %s", path).With("path", path).
				Hint("Each path has its own --hide, and a shell writes your home directory for ~ in --hide ~/x only.")
		}
	}
	w.Refused = parts.ReportRefusedHosts(c)
	walls, err := policy.Open(w)
	if err != nil {
		return 0, err
	}
	defer func() { _ = walls.Close() }()
	if why := walls.Weaker(); why != nil {
		told := walls.Enforced()
		parts.LogLine(c, "only the walls %s stand, since %v; they do not hold %s", told.Name, why,
			strings.Join(told.Holes, "; "))
	}
	env := os.Environ()
	if !c.Bool("all-env") {
		env = shell.Inheritance{Roots: []string{w.Root}, More: c.Config.List("native.env"), Opens: true}.Of(env)
	}
	program := policy.Program{
		Argv: c.Strings("command"), Dir: w.Root, Env: env,
		Streams: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, Signals: signals, Limit: flags.TurnOf(c),
	}
	if c.Host.StdinTerminal {
		program.Terminal = os.Stdin
	}
	exit, err := walls.Run(program)
	logLost(c, w, walls)
	return exit, err
}

// logLost logs which files are deleted because the walls kept them in temporary places.
func logLost(c *contract.Call, w policy.Wanted, walls *policy.Walls) {
	places := []string{pathname.Real(w.Root)}
	for _, path := range slices.Concat(w.Roots, w.Hide) {
		places = append(places, pathname.Real(path))
	}
	end := event.End{NotKept: policy.Left(w.Temp, walls.SeenTemp(w.Temp), places), KeptBy: "--write DIR"}
	if lost := end.Lost(); lost != "" {
		parts.LogLine(c, "%s", lost)
	}
}
