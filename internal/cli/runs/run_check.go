package runs

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/redact"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/shell"
	"omniagent/internal/work/run"
)

const checkOutside = "check-outside"

// checkUnwalled returns the error with which --check would fail because no walls can be built here. It is called before
// the run begins, so that the agent does not work in vain.
func (p commands) checkUnwalled(c *contract.Call) error {
	if !c.Given("check") || c.Bool(checkOutside) || stores.ForkAround(c) != nil {
		return nil
	}
	temp, err := c.Temp()
	if err != nil {
		return err
	}
	walls, err := checkWalls(p.QuietOpener(c), c.Dir(), "", filepath.Join(temp, "walls"))
	if walls != nil {
		_ = walls.Close() // the next walls remove what this could not
	}
	return err
}

// checkWalls builds walls around a check, as around commands of the native agent. It refuses walls that are incomplete.
func checkWalls(o parts.Opener, dir, network, temp string) (*policy.Walls, error) {
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return nil, fault.New(fault.PermissionDenied, "no temporary directory can be made").Because(err)
	}
	e, hide := o.Env(), []string(nil)
	if private := filepath.Dir(temp); pathname.Within(pathname.Real(dir), pathname.Real(private)) {
		hide = []string{pathname.Real(private)} // this process writes there without walls
	}
	w := e.Native.Walls
	w.Root, w.Temp, w.Hide, w.Network = dir, temp, hide, cmp.Or(network, w.Network)
	w.DeniedPaths = e.Native.Rules.Barred(guard.Place{Root: dir, Dir: dir, Home: w.Home})
	w.Refused = parts.ReportRefusedHosts(o.Call)
	walls, err := policy.Open(w)
	if err == nil && !walls.Whole() {
		err = fault.New(fault.Unsupported, "the walls %s do not hold all", walls.Enforced().Name)
		if why := walls.Weaker(); why != nil {
			err = errors.Join(err, why)
		}
		_ = walls.Close()
		walls = nil
	}
	if err != nil {
		return nil, fault.New(fault.Unsupported,
			"the check runs what the agent wrote, and cannot be kept behind walls here: %s",
			fault.Of(err).Message).Because(err).
			Hint("--check-outside runs it as you would, with your home directory and network")
	}
	return walls, nil
}

// runCheck runs the check of a run: behind walls, or with --check-outside without.
func runCheck(ctx context.Context, o parts.Opener, t run.Task, grace time.Duration) (shell.Outcome, error) {
	private, err := os.MkdirTemp(o.Call.Paths.Temp, "omniagent-check-")
	if err != nil {
		return shell.Outcome{}, fault.New(fault.PermissionDenied, "no temporary directory can be made").Because(err)
	}
	defer os.RemoveAll(private)
	with := shell.Options{
		Root: t.Dir, Private: private, Grace: grace, Secrets: redact.Known(redact.Secrets(os.Environ())...),
		Env: process.Environment(os.Environ(), process.EnvOptions{NoColor: true}),
	}
	if !t.CheckOutside {
		walls, err := checkWalls(o, t.Dir, checkNetwork(t), filepath.Join(private, "tmp"))
		if err != nil {
			return shell.Outcome{}, err
		}
		defer func() { _ = walls.Close() }() // the next walls remove what this could not
		with.Starter = walls.Starter()
		within := parts.WorkspaceOf(o.Call)
		within.Roots, within.More = append(within.Roots, t.Dir), o.Call.Config.List("native.env")
		with.Env = within.Commands(os.Environ())
	}
	in, err := shell.New(with)
	if err != nil {
		return shell.Outcome{}, err
	}
	defer in.Close()
	out, err := in.Run(ctx, shell.Command{Line: t.Check, Timeout: t.CheckFor})
	out.Stdout, out.Stderr = redact.String(out.Stdout), redact.String(out.Stderr)
	return out, err
}

// checkNetwork returns the network of a check, or "" for that of the native agent's commands. In a fork with a network
// it is on, because the network of the fork is the limit there.
func checkNetwork(t run.Task) string {
	if t.Fork == "" || t.Network == "" || strings.EqualFold(t.Network, "off") {
		return t.Network
	}
	return "on"
}
