// Package sandbox builds walls around commands, and says what this kernel can enforce against a program that is run
// here.
//
// It promises facts that were tried and not guessed: a namespace counts when a process was started in one, Landlock
// when it refused a write, seccomp when a filter refused a system call; and walls count when they refused what was
// tried from behind them. Version numbers decide nothing. A command whose walls do not stand is not started. What the
// walls of a system cannot hold is named.
//
// It refuses to change this process: what it tries happens in child processes, or on a thread that restricts itself and
// then ends. It refuses to judge commands, and to leave anything of its own in a workspace: what has to be there while
// a command runs is on record before it is made, and is taken away by us or, after a kill, by the next of us.
package sandbox

import (
	"context"
	"runtime"
	"time"
)

// Tier says which walls can be built. Of the two on Linux the lower is the stronger.
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

// Options are what Probe needs from the program it is part of.
type Options struct {
	// Self is a command that ends at once with exit code 0 and does nothing, such as /proc/self/exe --version. It is
	// started some five times. Without it, what needs a child process counts as not available.
	Self []string

	// Stage says that the program asks IsStage. Probe then builds the walls and tries them, and so knows of every tier
	// whether it holds.
	Stage bool

	// Tier is what Open shall build, where it is weaker than what the report offers. None: what the report offers.
	Tier Tier

	// State is the user's directory in which Open keeps on record what it makes. One that cannot be written is replaced
	// by a directory of the user's beneath the temporary one.
	State string
}

// Report is what was found out.
type Report struct {
	OS     string
	Kernel string // its release; empty when unknown

	// Privileged says that this process is root, or has capabilities: what works for it need not work for others.
	Privileged bool

	Tier  Tier
	Facts []Fact   // in a fixed order for each OS
	Holes []string // what the walls of Tier do not stop, each as a phrase
}

// Fact is one thing that works here or does not.
type Fact struct {
	Name   string
	OK     bool
	Detail string // what was seen, or why not
	Fix    string // when not OK: what would make it so, if anything is known
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
	FactWallsHold        = "walls-hold"        // walls were built, and refused what was tried from behind them
	FactSeatbelt         = "seatbelt"          // sandbox-exec started a process
	FactWalls            = "operating-system"  // this product knows walls for it
)

// noWall is the only hole where nothing can be enforced.
const noWall = "everything: no wall can be built here"

// patience bounds a whole probe when ctx does not: a host that only wants to know must never hang.
const patience = 10 * time.Second

// Probe finds out what can be enforced here. It takes some tens of milliseconds, most of them to start Self. When ctx
// ends, what was not tried yet counts as not available, with that reason.
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
