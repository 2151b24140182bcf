package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes of a stage whose command did not run, as in shells.
const (
	exitNoWalls  = 126
	exitNotThere = 127
)

// Stage builds the sandbox around this process and starts the command, whose exit code it returns. If one part of the
// sandbox fails, the command is not started.
func Stage() int {
	// Landlock, the filter and the capabilities belong to the thread, which passes them to its children.
	runtime.LockOSThread()
	if os.Getenv(confinedMark) != "" {
		return confined()
	}
	signals := listen()
	var o order
	if err := receive(&o); err != nil {
		fmt.Fprintln(os.Stderr, "omniagent: the walls were not told what to hold:", err)
		return exitNoWalls
	}
	switch {
	case o.Hold:
		return hold(&o)
	case len(os.Args) > 2 && os.Args[2] == toDial && o.Call != "":
		return dial(&o)
	case o.To == toLayer:
		return enter(&o, signals)
	case o.To == toJoin:
		return join(&o, signals)
	case o.To == toAgent:
		return agentStage(&o, signals)
	}
	env, err := build(&o)
	if err != nil {
		return fail(err)
	}
	if o.Tier == Landlock {
		return superviseOutside(o, env, signals)
	}
	return behind(o, env, signals)
}

// behind puts this thread behind the walls, and starts the command there.
func behind(o order, env []string, signals chan os.Signal) int {
	if err := confine(&o); err != nil {
		return fail(err)
	}
	if o.Trial {
		return report(o)
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail(fmt.Errorf("descriptors could stay open: %w", err))
	}
	if o.Tier == Namespaces {
		defer o.end()
		return watch(signals, func() (int, error) {
			if o.Limits.Memory > 0 {
				limitMemory(o.Limits.Memory)
			}
			return syscall.ForkExec(o.Program, os.Args[2:],
				&syscall.ProcAttr{Dir: o.Dir, Env: env, Files: []uintptr{0, 1, 2}})
		}, o.Program, nil)
	}
	if o.Limits.Memory > 0 {
		limitMemory(o.Limits.Memory)
	}
	return notFound(o.Program, syscall.Exec(o.Program, os.Args[2:], env))
}

// ending are the signals that ask a program to end.
func ending() [4]syscall.Signal {
	return [...]syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
}

// listen catches the signals that ask the group to end, from the beginning. A signal that the caller ignores stays
// ignored.
func listen() chan os.Signal {
	signals := make(chan os.Signal, 16)
	for _, s := range ending() {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	// A command could end process 1 by these signals. The handler ignores them if a process sent them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL,
		syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGSYS, syscall.SIGSTKFLT)
	return signals
}

func receive(o *order) error {
	var s unix.Stat_t
	if err := unix.Fstat(orderFile, &s); err != nil {
		return err
	}
	text := make([]byte, s.Size)
	if _, err := unix.Pread(orderFile, text, 0); err != nil {
		return err
	}
	return json.Unmarshal(text, o)
}

// build builds one part of the sandbox after the other, and returns the environment of the command.
func build(o *order) (env []string, err error) {
	env = o.marked()
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("800"), 0) // the kernel kills commands first
	if o.Tier == Namespaces {
		if err := mounts(o); err != nil {
			return nil, err
		}
		port, err := network(o)
		if err != nil {
			return nil, fmt.Errorf("the network: %w", err)
		}
		if port != 0 {
			env = append(env, proxies(port, "")...)
		}
		o.ProxyPort = port
	}
	if err := o.everyPath(); err != nil {
		return nil, err
	}
	if err := limit(o); err != nil {
		return nil, fmt.Errorf("the limits: %w", err)
	}
	if o.Dir == "" {
		if o.Dir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("the directory of the command: %w", err)
		}
	}
	return env, privileges()
}

func privileges() error {
	if err := dropPrivileges(); err != nil {
		return fmt.Errorf("the privileges cannot be given up: %w", err)
	}
	return nil
}

// confine restricts this thread by capabilities, seccomp and Landlock.
func confine(o *order) error {
	if err := privileges(); err != nil { // the thread may be older than that of build
		return err
	}
	rules, err := newRules(o) // the filter refuses this call
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if err := filtered(o); err != nil {
		return fmt.Errorf("the filter of system calls: %w", err)
	}
	if err := landlock(o, rules); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

// filtered installs the filter of system calls, and starts the supervisor of those that it holds. A process can have
// only one: if there is one around us already, it protects its own workspace, and with Landlock alone we do without.
func filtered(o *order) error {
	inet := o.Network != "off"
	if len(systemCalls(o.Tier, inet, holdsNothing)) == 0 {
		return errors.New("none is known for this machine")
	}
	if o.Tier == Landlock && !observable("/proc/sys/kernel/yama/ptrace_scope") {
		return install(systemCalls(o.Tier, inet, holdsNothing))
	}
	umask := ownUmask() // asking for it later would wait for a supervisor that does not run yet
	held := holdsNames
	switch { // with namespaces mounts hold attributes
	case o.Tier == Landlock:
		held = holdsAttributes
	case o.Ledger > 0:
		held = holdsModes
	}
	listener, err := listenTo(systemCalls(o.Tier, inet, held))
	switch {
	case err == nil && o.Tier == Landlock:
		o.Supervised = true
		return handOver(listener)
	case err == nil:
		o.Supervised = true
		return supervise(listener, umask, o)
	case o.Tier == Landlock && (errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINVAL)):
		return install(systemCalls(o.Tier, inet, holdsNothing))
	}
	return err
}

// observable reports whether a parent may read the memory of its children: with Yama above 1 only the superuser outside
// may, and a supervisor would see no path.
func observable(scope string) bool {
	text, err := os.ReadFile(scope)
	return err != nil || strings.TrimSpace(string(text)) < "2"
}

// tell sends a word to the caller. The buffer of the socket is large enough, so this never blocks.
func tell(text string) {
	_ = unix.Sendmsg(controlFile, []byte(text), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func fail(err error) int {
	tell("failed " + err.Error())
	fmt.Fprintln(os.Stderr, "omniagent: the command was not started, because its walls do not stand:", err)
	return exitNoWalls
}

func notFound(program string, err error) int {
	fmt.Fprintf(os.Stderr, "omniagent: %s cannot be started behind the walls: %v\n", program, err)
	if errors.Is(err, unix.ENOENT) {
		return exitNotThere
	}
	return exitNoWalls
}

// ownLoopback lists the hosts that programs of a fork reach without the proxy: each other's servers.
const ownLoopback = "localhost,127.0.0.1,::1"

// proxies returns the variables that make programs use the proxy at a port, except for the hosts in directly.
func proxies(port int, directly string) []string {
	var env []string
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy"} {
		value := fmt.Sprintf("=http://127.0.0.1:%d", port)
		env = append(env, name+value, strings.ToUpper(name)+value)
	}
	return append(env, "no_proxy="+directly, "NO_PROXY="+directly)
}
