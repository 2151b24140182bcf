package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// wallsOf is the part of Walls for Linux.
type wallsOf struct {
	homes *homes   // nil: home directories are not covered
	lives bool     // an agent runs in them, and writes there
	files []string // single files there that belong to it

	state string // see Options
	tried triedWalls
}

// Descriptors of the stage.
const (
	orderFile   = 3 // its order
	controlFile = 4 // a socket: the stage reports on it; its end is the end of the caller
	homeFile    = 5 // where it receives home directories, if there are any
)

const (
	childMark = "OMNIAGENT_CHILD_MARK" // how the guard of package process finds its processes
	trialTime = 10 * time.Second
)

// order is what the caller sends to a stage.
type order struct {
	Tier    Tier
	Root    string
	Write   exact
	Read    exact
	All     bool  // everything is readable except Hidden
	Kept    exact // names that commands cannot change
	Covers  exact // those of them that exist
	Configs exact // those that git may change in part
	Hooks   exact // those that git may make
	Locks   exact // those that git replaces over a lock
	Stay    exact // names that cannot be moved
	GitDirs exact // git directories
	Named   exact // names that commands cannot change wherever they are, see Policy.KeptNames
	Hidden  exact
	Fresh   []exact // what new names are refused, see autorun.Policy

	Homes      exact  // home directories, empty but for what follows
	Seen       exact  // pairs: what is seen, and where
	Own        exact  // pairs: a directory of the command's own, and where
	Layers     exact  // threes: a directory, and those of an overlay over it
	Copies     exact  // threes: the directory of a layer, what is seen below it, and where
	Identity   exact  // the git configuration in the first, if any
	Hold       bool   // only home directories are built, see homeServer
	Lives      bool   // they stay writable, for an agent
	Files      exact  // single files there that belong to it, see fileSync
	LinkedHome string // the home directory where nothing can be mounted, see linkedHome

	Mine        exact // directories that belong to an agent
	Shown       exact // what it reads, wherever that lies
	Veiled      exact // names that its program does not find, but for Reviewed
	OwnSettings exact
	Reviewed    map[string]string
	Readers     exact // files and directories of its program
	Shells      exact // see AgentNeeds
	ReadOnly    bool  // the workspace cannot be written at first

	Temp    string
	Network string
	Limits  Limits
	Env     exact
	Program string
	Trial   bool
	Tells   bool  // refused paths are reported, see Options.Refused
	Outside exact // where a trial tries to write

	Ledger int // the descriptor on which the stage reports what is written; 0: there is none

	To    string // what else the stage is for, see Private; "": walls
	Names exact  // of Layers, in mount tables
	Call  string // the address to connect to

	// Filled in by the stage.
	Dir          string
	OldProcesses bool
	ABI          int // of Landlock
	ProxyPort    int
	Supervised   bool
	end          func() // ends the supervisor; nil: there is none
	Watched      exact  // directories that commands write by way of the supervisor alone, see everyPath
}

func private(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

func (w *Walls) open(r Report, o Options) error {
	if walled() {
		return fault.New(fault.ServiceDown, "no walls can be built here: %s", withinWalls).
			Hint("Run it outside of them.")
	}
	if w.tier == Landlock && w.policy.Network.Serve != nil {
		return fault.New(fault.ServiceDown, "a list of hosts cannot be held without a network namespace").With("tier",
			w.tier.String()).
			Hint("Leave the network off, or open it.")
	}
	for _, path := range realPaths(w.policy.Hidden) { // a command could remove a link before the next command starts
		if !slices.Contains(w.policy.Hidden, path) {
			w.policy.Hidden = append(slices.Clone(w.policy.Hidden), path)
		}
	}
	w.system.state = o.State
	later := o.Later && w.tier == Namespaces // for the other tier this one was tried before, in vain
	if later {
		w.system.tried = heldAround(o.State, w.tier, w.policy)
		if holes, ok := w.system.tried.found(); ok {
			w.holes = holes
			w.planned.Store(true)
			return nil
		}
	}
	holes, err := w.build(context.Background())
	if w.holes = holes; err == nil && later {
		w.system.tried.remember(holes)
	}
	return err
}

// build builds the walls and tries them. It returns what they do not stop.
func (w *Walls) build(ctx context.Context) ([]string, error) {
	if err := w.openHomes(ctx, w.system.state); err != nil {
		return nil, err
	}
	found, err := w.try(ctx)
	if err != nil {
		return nil, err
	}
	return found.holes(w.policy, w.tier, os.Geteuid() == 0), nil
}

// stand builds walls that are only planned. The end of ctx says nothing about them: they can be built later.
func (w *Walls) stand(ctx context.Context) (err error) {
	hidden, scratch := w.policy.Hidden, w.policy.Scratch
	before := below(w.policy.Temp)
	for range 2 { // an editor or git may have moved a protected file meanwhile
		var holes []string
		if holes, err = w.build(ctx); err == nil {
			more := slices.DeleteFunc(holes, func(hole string) bool { return slices.Contains(w.holes, hole) })
			if len(more) == 0 {
				return nil
			}
			err = fault.New(fault.ServiceDown, "the walls do not stop what they stopped before: %s",
				strings.Join(more, "; "))
		}
		_ = w.release()
		for _, path := range slices.Backward(below(w.policy.Temp)) { // a place of one kind takes no mount of the other
			if !slices.Contains(before, path) {
				_ = os.Remove(path)
			}
		}
		w.policy.Hidden, w.policy.Scratch, w.system.homes = hidden, scratch, nil
		if ctx.Err() != nil {
			return fault.New(fault.Interrupted, "the command was not started: its walls were still being built").
				Because(context.Cause(ctx))
		}
	}
	w.system.tried.forget()
	failed := fault.Of(err)
	f := fault.New(failed.Code, "the command was not started: %s", failed.Message).Because(failed.Cause)
	f.Detail = failed.Detail
	return f.Hint("%s", strings.TrimSpace("Begin a new conversation, which tries the walls first. "+failed.Suggestion))
}

// below returns what lies below a directory, parents first.
func below(dir string) (paths []string) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != dir {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

// recordDir is where the record is kept: in the user's directory for state, or where that cannot be written in a
// directory of the user's below the temporary one, so that every process of the user still finds it.
func recordDir(state string) (string, error) {
	dirs := recordDirs(state)
	dir, own := dirs[0], filepath.Dir(dirs[1])
	if filepath.IsAbs(state) && os.MkdirAll(dir, 0o700) == nil && unix.Access(dir, unix.W_OK) == nil {
		return dir, nil
	}
	if err := os.Mkdir(own, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fault.New(fault.PermissionDenied, "the walls cannot keep a record in %s, nor in %s", dir, own).
			With("path", dir).Because(err)
	}
	if info, err := os.Lstat(own); err != nil || !info.IsDir() || !private(info) {
		return "", fault.New(fault.Unsafe, "%s must be a directory that you alone can use", own).With("path", own)
	}
	return dirs[1], nil
}

// recordDirs are where the record may be: below our state, and where that cannot be used.
func recordDirs(state string) [2]string {
	own := filepath.Join(os.TempDir(), fmt.Sprintf("omniagent-state-%d", os.Geteuid()))
	return [2]string{filepath.Join(state, "walls"), filepath.Join(own, "walls")}
}

// try runs a stage that builds the sandbox and tries to break out of it.
func (w *Walls) try(ctx context.Context) (trial, error) {
	var result trial
	said := ""
	plan, err := w.wrap(process.Plan{
		Argv: []string{"trial"}, Path: "/", Dir: w.policy.Root, Env: []string{}, Name: "the trial of the walls",
	}, w.policy.Network, true, func(text string) {
		said = text
	})
	if err != nil {
		return result, err
	}
	child, err := process.Start(plan)
	if err != nil {
		if passing(err) {
			return result, fault.New(fault.Internal, "the walls could not be tried").Because(err)
		}
		why := "" // the fault says it, except for a limit, which the kernel reports as a full disk
		if w.tier == Namespaces && (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS)) {
			why = ": " + refusal(err)
		}
		return result, fault.New(fault.ServiceDown, "the walls cannot be built%s", why).
			Hint("Run: omniagent doctor").Because(err)
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { child.End(os.Kill) })()
	ending := child.Wait()
	if text, ok := strings.CutPrefix(said, "trial "); ok && json.Unmarshal([]byte(text), &result) == nil &&
		ending.ExitCode == 0 {
		return result, nil
	}
	reason, ok := strings.CutPrefix(said, "failed ")
	if !ok && ending.Signal == "SIGKILL" { // our time limit, or the machine is out of memory
		return result, fault.New(fault.TimedOut, "the walls could not be tried within %s", trialTime).
			Hint("The machine may be busy; try again.")
	}
	if !ok {
		reason = fmt.Sprintf("they were not tried to the end (exit %d %s)", ending.ExitCode, ending.Signal)
	}
	return result, fault.New(fault.ServiceDown, "the walls do not hold: %s", reason).With("tier", w.tier.String()).
		Hint("Run: omniagent doctor")
}

// passing reports whether an error only says that the machine is short of something now.
func passing(err error) bool {
	return slices.ContainsFunc([]error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EINTR},
		func(e error) bool {
			return errors.Is(err, e)
		})
}

func (w *Walls) plan(p process.Plan, network Network) (process.Plan, error) {
	return w.wrap(p, network, false, func(text string) {
		if path, found := strings.CutPrefix(text, refusedWord); found && w.refused != nil {
			w.refused(path)
		}
	})
}

// wrap returns the plan of a stage that starts the program. say gets each report of the stage when it has ended.
func (w *Walls) wrap(
	p process.Plan, network Network, trial bool, say func(string),
) (wrapped process.Plan, err error) {
	if len(p.Argv) == 0 || p.Path == "" {
		return p, fault.New(fault.MissingArgument, "no program was given")
	}
	if p.Env == nil {
		p.Env = os.Environ()
	}
	o := w.order(p, network)
	o.Tells = w.refused != nil && !trial
	if o.Trial = trial; trial {
		home, _ := os.UserHomeDir()
		o.Outside = []string{filepath.Dir(w.policy.Root), home, "/", "/etc", "/var/lib"}
	}
	run := &running{say: say, network: network}
	defer func() {
		if err != nil {
			run.end(nil)
		}
	}()
	if run.home, err = w.addHomes(&o, trial); err != nil {
		return p, err
	}
	if err := w.policy.protect(&o); err != nil {
		return p, err
	}
	if err := w.hideNames(&o); err != nil {
		return p, err
	}
	if err = run.watch(&o, w.watcher(trial)); err == nil {
		err = run.prepare(o)
	}
	if err != nil {
		return p, fault.New(fault.Internal, "the walls cannot be prepared").Because(err)
	}
	wrapped = run.stage(p, run.end)
	wrapped.Shape, wrapped.Bound = shape(w.tier, !network.Open), w.tier == Namespaces
	run.serve()
	return wrapped, nil
}

// shape starts the stage in namespaces of its own, with the privileges that it needs in them.
func shape(t Tier, alone bool) func(*syscall.SysProcAttr) {
	if t != Namespaces {
		return nil
	}
	return func(attr *syscall.SysProcAttr) {
		attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS
		if alone {
			attr.Cloneflags |= unix.CLONE_NEWNET
		}
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE}
	}
}

// stageEnvironment returns an environment without the command's variables, which could change what the stage does. It
// keeps the marks by which the processes that run us recognise the stage.
func stageEnvironment(env []string) []string {
	own := []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	for _, entry := range env {
		if strings.HasPrefix(entry, childMark+"=") {
			own = append(own, entry)
		}
	}
	return own
}

func (w *Walls) order(p process.Plan, network Network) order {
	o := order{
		Tier: w.tier, Root: w.policy.Root, Write: w.policy.Write, Read: w.policy.Read, All: w.policy.Read == nil,
		Hidden: w.policy.Hidden, Temp: w.policy.Temp, Network: network.name(), Limits: w.policy.Limits, Program: p.Path,
		Named: w.policy.KeptNames,
	}
	temp := w.policy.Temp
	if w.tier == Namespaces {
		temp = "/tmp"
	}
	o.Env = slices.DeleteFunc(slices.Clone(p.Env), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"TMPDIR", "TMP", "TEMP", childMark}, name) || o.Network == "hosts" &&
			isProxy(name) || name == "XDG_RUNTIME_DIR" && first(runDirs(), value) != ""
	})
	o.Env = append(o.Env, "TMPDIR="+temp)
	if o.Tier == Landlock { // Java takes /tmp whatever TMPDIR says
		const java = "JAVA_TOOL_OPTIONS"
		options, _ := process.Value(o.Env, java)
		o.Env = slices.DeleteFunc(o.Env, func(entry string) bool { return strings.HasPrefix(entry, java+"=") })
		o.Env = append(o.Env, java+"="+strings.TrimSpace(options+" '-Djava.io.tmpdir="+temp+"'"))
	}
	return o
}

func isProxy(name string) bool { return strings.HasSuffix(strings.ToLower(name), "_proxy") }

func (w *Walls) release() error { return w.system.homes.close(w.policy.Scratch) }
