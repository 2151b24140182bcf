package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Without a namespace, a command could signal every thread in its Landlock domain, and if one thread of the supervisor
// were in it, such a signal could stop all of them. So the supervisor is a process that is not confined, and the
// command is one that confines itself, hands over the listener of its filter, and executes the program.
const (
	// confinedMark is in the environment of that command until it executes the program, which does not get it.
	confinedMark = "OMNIAGENT_STAGE_CONFINED"
	listenerFile = 5 // where that process hands it over
)

// superviseOutside starts the process of the command, and supervises it from outside.
func superviseOutside(o order, env []string, signals chan os.Signal) int {
	o.Env = env
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	order, err := o.file()
	if err != nil {
		return fail(err)
	}
	defer func() {
		if o.end != nil {
			o.end()
		}
	}()
	return watch(signals, func() (int, error) {
		child, err := syscall.ForkExec("/proc/self/exe", append([]string{stageName, stageArgument}, os.Args[2:]...),
			&syscall.ProcAttr{
				Env:   append(stageEnvironment(env), confinedMark+"=1"),
				Files: []uintptr{0, 1, 2, uintptr(order), controlFile, uintptr(pair[1])},
			})
		_, _ = unix.Close(order), unix.Close(pair[1])
		if err != nil {
			return 0, err
		}
		_, listener, err := withRights(pair[0], 1)
		_ = unix.Close(pair[0])
		if err == nil && len(listener) == 1 {
			err = supervise(listener[0], ownUmask(), &o)
		} else {
			o.openLedger().add(entryUnseen, time.Time{}, unseenReason, "", &unix.Stat_t{}, &unix.Stat_t{})
		}
		if err != nil {
			_ = syscall.Kill(child, syscall.SIGKILL)
			_ = fail(err)
		}
		return child, nil
	}, o.Program, nil)
}

// handOver gives the listener to the supervisor.
func handOver(listener int) error {
	defer unix.Close(listener)
	return unix.Sendmsg(listenerFile, []byte("listener"), unix.UnixRights(listener), nil, unix.MSG_NOSIGNAL)
}

// confined is the process of the command. A signal ends it, as it would the program.
func confined() int {
	var o order
	if err := receive(&o); err != nil {
		fmt.Fprintln(os.Stderr, "omniagent: the walls were not told what to hold:", err)
		return exitNoWalls
	}
	return behind(o, o.Env, nil)
}

// file writes an order for a stage.
func (o order) file() (fd int, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.MemfdCreate("omniagent-order", unix.MFD_CLOEXEC); err != nil {
		return -1, err
	}
	for err == nil && len(text) > 0 {
		var n int
		n, err = unix.Write(fd, text)
		text = text[max(n, 0):]
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, err
}

// ownUmask returns the umask of this process.
func ownUmask() uint32 {
	umask := unix.Umask(0)
	unix.Umask(umask)
	return uint32(umask)
}
