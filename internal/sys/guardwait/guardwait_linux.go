// Package guardwait is where a guard waits, before almost everything else in the program is initialised. It is also
// where the process begins that puts a child into a PID namespace: see Starter.
//
// A guard is a second process of this program, and almost always ends without having done anything. Initialising the
// program's other packages would be half of the cost of starting it. So a process that was started as a guard waits
// here until the watched process has ended or dismissed it:
//
//	started as a guard ─▶ reading ─┬─ farewell ─────────────▶ exit 0
//	                               └─ the connection ended ─▶ main, where Message returns what was read
//
// The package imports only syscall and runtime: the linker initialises packages in the order of their paths as soon as
// their imports are ready, so this one comes before os, reflect and everything that needs them.
package guardwait

import (
	"syscall"
	"unsafe"
)

const (
	// Name is the name of a guard, and Variable is in its environment, so that neither alone starts a guard.
	Name     = "omniagent-guard"
	Variable = "OMNIAGENT_GUARD"
	// Socket is the descriptor of the connection to the watched process.
	Socket = 3

	farewell = "farewell\n"
	longest  = 4096 // bytes of a message
)

var message, waited = wait()

// Message returns what the watched process sent before the connection ended. isGuard is false in any other process.
func Message() (text string, isGuard bool) { return message, waited }

func wait() (text string, waited bool) {
	if !connected() { // the cheapest check first: it runs at every start
		return "", false
	}
	if value, _ := syscall.Getenv(Variable); value != "1" {
		return "", false
	}
	switch name, role := called(); {
	case name != Name:
		return "", false
	case role == Starter:
		start() // does not return
	}
	ignoreSignals()
	showName()
	block := make([]byte, 256)
	for len(text) < longest {
		n, err := syscall.Read(Socket, block)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		if text += string(block[:n]); len(text) >= len(farewell) && text[len(text)-len(farewell):] == farewell {
			syscall.Exit(0)
		}
	}
	return text, true
}

// called returns the name that the process was started with, and its first argument.
func called() (name, role string) {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", ""
	}
	defer func() { _ = syscall.Close(fd) }()
	text := make([]byte, 64)
	n, _ := syscall.Read(fd, text)
	words := split(text[:max(n, 0)])
	if len(words) < 2 {
		return "", ""
	}
	return words[0], words[1]
}

// split returns the texts that end with a zero byte.
func split(block []byte) (words []string) {
	begin := 0
	for i, c := range block {
		if c == 0 {
			words, begin = append(words, string(block[begin:i])), i+1
		}
	}
	return words
}

// showName makes the process show its name instead of "exe".
func showName() {
	if comm, err := syscall.Open("/proc/self/comm", syscall.O_WRONLY|syscall.O_CLOEXEC, 0); err == nil {
		_, _ = syscall.Write(comm, []byte(Name))
		_ = syscall.Close(comm)
	}
}

func connected() bool {
	var s syscall.Stat_t
	return syscall.Fstat(Socket, &s) == nil && s.Mode&syscall.S_IFMT == syscall.S_IFSOCK
}

// ignoreSignals calls the kernel directly, because os/signal is not ready yet. The runtime's handlers would end the
// process.
func ignoreSignals() {
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGPIPE,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
	} {
		ignore(s)
	}
}

func ignore(s syscall.Signal) {
	ignored := [16]uint64{1} // SIG_IGN; flags, restorer and mask follow, in an order that differs
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&ignored)), 0, 8, 0, 0)
}
