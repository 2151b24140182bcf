// Package vigil is where a guard waits: in front of the initialisation of nearly everything else in the program.
//
// A guard is a second process of this program, and almost always ends without having done anything. What the program's
// other packages do before main would be half of the price of starting it. It promises that a process which was started
// as a guard, and only that, is held here until the process that it watches over has ended or dismissed it; what it was
// told is returned by Heard, and the program then goes on to main. It refuses to depend on more than syscall: the
// linker initialises packages in the order of their paths as soon as what they import is ready, so that this one comes
// before os, reflect and all that need them.
package vigil

import (
	"syscall"
	"unsafe"
)

const (
	// Name is what a guard is called, and Variable what is in its environment, so that neither alone holds anybody
	// here.
	Name     = "omniagent-guard"
	Variable = "OMNIAGENT_GUARD"
	// Socket is the descriptor of the connection to the process that it watches over.
	Socket = 3

	farewell = "farewell\n"
	most     = 4096 // bytes that are kept
)

var heard = wait()

// Heard returns what the guard was told until the connection ended. waited is false where nothing was waited for.
func Heard() (text string, waited bool) { return heard.text, heard.waited }

type told struct {
	text   string
	waited bool
}

func wait() told {
	if !connected() { // the cheapest question first: it is asked at every start
		return told{}
	}
	if value, _ := syscall.Getenv(Variable); value != "1" || !calledSo() {
		return told{}
	}
	ignoreSignals()
	if comm, err := syscall.Open("/proc/self/comm", syscall.O_WRONLY|syscall.O_CLOEXEC, 0); err == nil {
		_, _ = syscall.Write(comm, []byte(Name)) // instead of "exe"
		_ = syscall.Close(comm)
	}
	block, text := make([]byte, 256), ""
	for len(text) < most {
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
	return told{text, true}
}

// calledSo compares the name that the process was started with.
func calledSo() bool {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(fd) }()
	name := make([]byte, len(Name)+1)
	n, err := syscall.Read(fd, name)
	return err == nil && n == len(name) && string(name) == Name+"\x00"
}

func connected() bool {
	var s syscall.Stat_t
	return syscall.Fstat(Socket, &s) == nil && s.Mode&syscall.S_IFMT == syscall.S_IFSOCK
}

// ignoreSignals asks the kernel itself, since os/signal is not there yet. The runtime's handlers would end the process.
func ignoreSignals() {
	ignored := [16]uint64{1} // SIG_IGN; flags, restorer and mask follow, in an order that differs
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGPIPE,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
	} {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&ignored)), 0, 8, 0,
			0)
	}
}
