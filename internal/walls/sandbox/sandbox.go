// Package sandbox runs commands in a sandbox, its walls, and reports what this kernel can enforce.
//
//	caller ── order ──▶ stage: this program again, in new namespaces
//	                    mounts ─▶ network ─▶ limits ─▶ capabilities ─▶ Landlock ─▶ seccomp ─▶ command
//	caller ◀─ control ─ what happened, and how the command ended
//
// It promises facts that were tried: a namespace counts if a process was started in one, Landlock if it refused a
// write, seccomp if a filter refused a system call, and a sandbox if it refused the attempts to break out. Version
// numbers decide nothing. A command whose sandbox cannot be built is not started. What a sandbox cannot enforce is
// listed.
//
// It never changes this process: attempts run in child processes, or on a thread that restricts itself and then ends.
// It judges no commands, and creates nothing in a workspace. A command changes its workspace through a supervisor,
// which refuses protected names.
package sandbox

import (
	"context"
	"runtime"
	"time"
)

// Tier is a kind of sandbox. Of the two on Linux the lower is the stronger.
type Tier int

const (
	None       Tier = 0 // nothing can be enforced
	Namespaces Tier = 1 // Linux: user and mount namespaces, Landlock and seccomp
	Landlock   Tier = 2 // Linux: Landlock and seccomp alone
	Seatbelt   Tier = 3 // macOS: sandbox-exec
)

func (t Tier) String() string {
	switch t {
	case Namespaces:
		return "namespaces"
	case Landlock:
		return "landlock"
	case Seatbelt:
		return "seatbelt"
	}
	return "none"
}

// Options are what Probe and Open need from the program that they are part of.
type Options struct {
	// Self is a command that exits at once with code 0 and does nothing, such as /proc/self/exe --version. It is
	// started about five times. Without it, what needs a child process counts as not available.
	Self []string

	// Stage says that the program calls IsStage. Probe then builds a sandbox of each tier and tries to break out of it.
	Stage bool

	// Tier is a weaker tier for Open than the report offers. None: what the report offers.
	Tier Tier

	// State is the user's directory in which Open records what it creates. If it cannot be written, Open uses a
	// directory of the user's below the temporary one.
	State string

	// Refused is called, when a command has ended, with each path that it could not write because the path is
	// protected, as the command gave it, up to a few; nil: it is not called.
	Refused func(path string)

	// Watcher receives what programs behind the walls write; it may be nil.
	Watcher Watcher

	// Later has Open believe the record of an earlier trial of the same walls by this program since the machine was
	// started. They are built and tried before the first command, which is refused if they do not hold.
	Later bool
}

// Report is the result of Probe.
type Report struct {
	OS string

	// Privileged says that this process is root or has capabilities: what works for it need not work for others.
	Privileged bool

	Tier  Tier
	Facts []Fact   // in a fixed order for each OS
	Holes []string // what a sandbox of Tier does not stop, each as a phrase
}

// Fact is one thing that works here or does not.
type Fact struct {
	Name   string
	OK     bool
	Detail string // what was observed, or why it does not work
	Fix    string // if not OK: what would help, if known
}

// Names of facts.
const (
	FactLandlock         = "landlock"          // the kernel has it; Detail has its ABI
	FactLandlockEnforced = "landlock-enforced" // a restricted thread was refused
	FactSeccomp          = "seccomp"           // the kernel has filters and the actions we need
	FactSeccompEnforced  = "seccomp-enforced"  // a filtered thread was refused
	FactUserNamespace    = "user-namespace"    // a process was started in a new one
	FactMountNamespace   = "mount-namespace"   // and could mount in it
	FactNetworkNamespace = "network-namespace" // and had a network of its own
	FactWallsHold        = "walls-hold"        // a sandbox was built and refused the attempts to break out
	FactSeatbelt         = "seatbelt"          // sandbox-exec started a process
	FactWalls            = "operating-system"  // there is a sandbox for this system
)

// noWall is the only hole if nothing can be enforced.
const noWall = "everything: no wall can be built here"

// patience bounds a probe whose ctx has no deadline: a host must never hang on it.
const patience = 10 * time.Second

// Probe finds out what can be enforced here. It takes some tens of milliseconds, most of them to start Self. When ctx
// ends, what was not tried counts as not available, with that reason.
func Probe(ctx context.Context, o Options) Report {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := Report{OS: runtime.GOOS}
	probe(ctx, o, &r)
	return r
}

func (r *Report) add(f Fact) {
	if f.OK {
		f.Fix = ""
	}
	r.Facts = append(r.Facts, f)
}
