package command

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/agents/custom"
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/demo"
	"omniagent/internal/host/shim"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/native"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/touch"
	"omniagent/internal/term/terminal"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
	"omniagent/internal/wire/claude"
)

// Main runs the process and returns its exit code. The arguments decide what the process is: a helper that this program
// starts for itself (a guard, a stage of the sandbox, or the demo's stand-in), a direct call of an agent, or a command.
func Main() int { return Ours().Main() }

// Main runs the process with these parts.
func (p Parts) Main() int {
	if process.IsGuard(os.Args) {
		return process.Guard()
	}
	if sandbox.IsStage(os.Args) {
		return sandbox.Stage()
	}
	saveMemory()
	log.SetOutput(io.Discard) // net/http logs unsolicited responses of a server, which may contain the key
	if demo.IsStandIn(os.Args, os.LookupEnv) {
		return demo.StandIn(os.Args, os.LookupEnv, os.Stdin, os.Stdout, os.Stderr)
	}
	args, eidolon := asEidolon(os.Args)
	if contract.PlainVersion(args, Version) {
		return 0
	}
	if host := contract.Process(); host.StdinTerminal {
		// a conversation that was killed may have left the terminal in raw mode
		terminal.Recover(host.UserState("omniagent"), os.Stdin, os.Stdout)
	}
	process.Conceal(func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return redact.Name(name) || len(redact.Secrets([]string{entry})) > 0
	})
	if p.Eidolon = eidolon; eidolon {
		args = eidolonArgs(args, contract.Process().StdinTerminal)
	}
	program := p.Program()
	if len(args) > 0 && args[0] == "start" && claude.Speaks(args) {
		translated, code := claudeArgs(program, args)
		if translated == nil {
			return code
		}
		args = translated
	}
	if !direct(program, args) {
		return program.Main(args)
	}
	signals := make(chan os.Signal, 8)
	process.NotifyOfEnd(signals)
	dir, _ := os.Getwd()
	host := shim.Host{
		Args: args, Env: os.Environ(), Dir: dir, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Signals: signals,
	}
	return p.newShim(program).Main(host)
}

// claudeArgs translates Claude Code's flags to those of start. It warns of ignored flags. For an unsupported flag it
// returns nil and an exit code, after it has printed the error, which a stream of JSON gets too.
func claudeArgs(program *contract.Program, args []string) (translated []string, code int) {
	start, _ := program.Find("start")
	translated, ignored, err := claude.Args(args[1:], func(flag string) (known, value bool) {
		name := strings.TrimLeft(flag, "-")
		for _, one := range start.Params {
			if one.Name == name || one.Short != "" && one.Short == name {
				return true, one.Kind != contract.Bool
			}
		}
		return program.Shared(name)
	})
	if err != nil {
		f := fault.New(fault.ArgError, "%v", err).Hint("leave it out; the flags that count here: omniagent help start")
		fmt.Fprintln(os.Stderr, "omniagent: "+f.Sentence())
		// only the JSON forms of output have a line for an error
		if slices.ContainsFunc(args, func(arg string) bool { return strings.HasSuffix(arg, "json") }) {
			encoder := claude.Encoder{UUID: ident.UUID}
			for _, line := range encoder.Refuse(f) {
				_, _ = os.Stdout.Write(append(line, '\n'))
			}
		}
		return nil, 2
	}
	for _, name := range ignored {
		fmt.Fprintln(os.Stderr, "omniagent: "+name+" is ignored: it changes nothing here")
	}
	return append([]string{"start"}, translated...), 0
}

// direct reports whether a call starts an agent directly: it is empty or begins with a flag, and is not a question
// about the program, such as --schema.
func direct(program *contract.Program, args []string) bool {
	if len(args) == 0 {
		return true
	}
	if !strings.HasPrefix(args[0], "-") {
		return false
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	if _, err := shim.Parse(args); err == nil {
		return true
	}
	// If all flags are those of commands, the call may be a question about the program or have its flags before the
	// command. The commands explain that better.
	for _, arg := range args {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "-") &&
			!program.Shares(strings.TrimLeft(name, "-")) {
			return true
		}
	}
	about := slices.ContainsFunc(args, func(a string) bool {
		return slices.Contains([]string{
			"-h", "--help", "-V", "--version", "--schema", "--print-schema",
			"--show-config",
		}, a)
	})
	return !about && !program.CommandBehind(args)
}

// ownAgents returns the agents that the user's own file defines.
func (p Parts) ownAgents(paths contract.Paths) ([]agent.Driver, error) {
	file, err := parts.OwnFile(paths)
	if err != nil || file == nil {
		return nil, err
	}
	return custom.New(file, p.Agents)
}

// newShim returns the shim, which carries out direct calls, with the functions that it needs of the commands.
func (p Parts) newShim(program *contract.Program) *shim.Shim {
	host := contract.Process()
	return &shim.Shim{
		Name: program.Name, Version: program.Version, Drivers: p.Agents,
		Root: func(args []string) int { return program.Main(args) },
		Settings: func(dir string) shim.Settings {
			set, paths, err := program.Settings(host, dir)
			settings := shim.Settings{
				Set: set, Err: err, Trust: program.Trusted(host), State: paths.State, Temp: paths.Temp,
				RecordedVersion: stores.Versions(paths).Of,
				Targets:         func(f *agentsfile.File) ([]agent.Driver, error) { return custom.New(f, p.Agents) },
			}
			settings.OpenWalls = func(d agent.Driver, s agent.Spec, touched *touch.Log) (shim.Walls, error) {
				return p.around(program, host, set, paths, d, s, touched)
			}
			if err == nil {
				settings.Custom, settings.Err = p.ownAgents(paths)
				if stores.ForksIn(paths, host.Lookup).Around(dir) == nil {
					settings.Undo = stores.SnapshotsIn(paths, set, host.Lookup)
				}
			}
			return settings
		},
		Events: func(args []string, prompted bool, plain shim.Plain, signals <-chan os.Signal) int {
			parts := p
			parts.Plain = &plain
			host := contract.Process()
			host.Args = append([]string{"start"}, args...)
			if prompted {
				host.Stdin, host.StdinTerminal, host.StdinPiped = nil, false, false
			}
			return parts.Program().Run(context.Background(), host, signals)
		},
		Remember: func(name string) int {
			host := contract.Process()
			host.Args, host.Stdout = []string{"config", "set", "agent", name, "--global"}, io.Discard
			return program.Run(context.Background(), host, nil)
		},
		Rehearse: func(script, home string) (agent.Rehearsal, func(), error) {
			return parts.Rehearse(script, "", home, 0, 0)
		},
	}
}

// around builds the walls around an agent of a direct call, which a person asked for. It fails if none can be built.
func (p Parts) around(
	program *contract.Program, host contract.Host, set *config.Set, paths contract.Paths, d agent.Driver, s agent.Spec,
	touched *touch.Log,
) (shim.Walls, error) {
	why := fault.New(fault.ServiceDown, "no walls can be built around %s here", d.Describe().Title).
		Hint("Run: omniagent doctor")
	s.Shared.Sandbox = setting.Chosen[setting.Sandbox]{} // the walls take the place of the agent's own sandbox
	around, err := launch.Env{
		Home: host.Home(), Temp: paths.Temp, Lookup: host.Lookup,
		Native: launch.NativeSettings{Settings: native.Settings{Walls: policy.Wanted{
			Agents: p.GuardAgents(paths, host.Lookup), Read: set.List("native.read"), State: paths.State,
		}}},
		Owns: set.List("agents.own"), Trust: program.Trusted(host),
		Log: func(format string, args ...any) {
			why = fault.New(fault.ServiceDown, format, args...).Hint("Run: omniagent doctor")
		},
	}.OpenWalls(d, s, touched)
	switch {
	case err != nil:
		return nil, err
	case !around.Exist():
		return nil, why
	}
	return around, nil
}
