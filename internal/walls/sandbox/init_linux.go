package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch starts the command, waits for it, and returns its exit code. It is process 1 of the namespace, or without one
// the parent of the command. A shell as process 1 would ignore signals that it does not catch. When process 1 ends, the
// kernel kills everything in the namespace. It is in the group of the command, so a signal to the group reaches the
// command without its help.
//
// obey gets the words that the caller sends; nil: the caller sends none.
func watch(
	signals chan os.Signal, start func() (child int, err error), program string, obey func(word string),
) int {
	asked := false
	if os.Getpid() != 1 { // orphans become our children, so that the supervisor may inspect them
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	early := pending(signals)
	if len(early) > 0 { // the command has not started yet
		return died(early[0])
	}
	go dieWithCaller(obey)
	threads()
	child, err := start()
	if err != nil {
		return notFound(program, err)
	}
	for _, s := range pending(signals) { // it may have come before the fork
		asked = true
		_ = syscall.Kill(child, s)
	}
	status := await(child)
	if reapAll() && othersInGroup() {
		asked = asked || arrives(signals, status)
	}
	if asked { // the rest may outlast the patience of the caller, which then kills all
		tell("ended " + strconv.Itoa(int(status)))
	}
	// A shell dies of the signal long before a git that it started has removed its lock.
	for asked && reapAll() && othersInGroup() {
		time.Sleep(2 * time.Millisecond)
	}
	if status.Signaled() {
		return died(status.Signal())
	}
	return status.ExitStatus()
}

// threads starts the threads that the runtime may need later, when the command has used up its limit of processes.
func threads() {
	var ready, over sync.WaitGroup
	over.Add(1)
	for range spareThreads {
		ready.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			over.Wait()
		}()
	}
	ready.Wait()
	over.Done()
}

const spareThreads = 3

func pending(signals chan os.Signal) (list []syscall.Signal) {
	for {
		select {
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok {
				list = append(list, number)
			}
		default:
			return list
		}
	}
}

// arrives reports whether a signal to the group reaches this process. The command may get it earlier, so arrives waits
// a moment, and longer if such a signal ended the command.
func arrives(signals chan os.Signal, status syscall.WaitStatus) bool {
	patience := 10 * time.Millisecond
	switch status.Signal() {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM:
		patience = time.Second
	}
	select {
	case <-signals:
		return true
	case <-time.After(patience):
		return false
	}
}

// died tells the caller which signal ended the command, because process 1 cannot end by that signal.
func died(s syscall.Signal) int {
	tell("signal " + strconv.Itoa(int(s)))
	return 128 + int(s)
}

// dieWithCaller ends this process when the caller dies, and never returns. The kernel loses the parent-death signal if
// the caller dies before it is set.
func dieWithCaller(obey func(word string)) {
	for block := make([]byte, 16); ; {
		n, err := unix.Read(controlFile, block)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			if os.Getpid() != 1 { // no namespace ends with us
				_ = syscall.Kill(0, syscall.SIGKILL)
			}
			syscall.Exit(128 + int(syscall.SIGKILL))
		}
		if obey != nil && n > 0 {
			obey(string(block[:n]))
		}
	}
}

// await reaps children until the command has ended.
func await(child int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if pid == child && (status.Exited() || status.Signaled()) {
			return status
		}
		if err != nil && err != syscall.EINTR {
			fmt.Fprintln(os.Stderr, "omniagent: the end of the command could not be observed:", err)
			return syscall.WaitStatus(exitNoWalls << 8)
		}
	}
}

// reapAll reports whether any child is left.
func reapAll() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR || pid > 0 {
			continue
		}
		return err == nil
	}
}

// othersInGroup reports whether another process of our group runs. It returns true if /proc is not that of our
// namespace.
func othersInGroup() bool {
	own, _ := syscall.Getpgid(0)
	entries, err := os.ReadDir("/proc")
	us := strconv.Itoa(os.Getpid())
	if self, _ := os.Readlink("/proc/self"); err != nil || self != us {
		return true
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || entry.Name() == us {
			continue
		}
		if group, err := syscall.Getpgid(pid); err == nil && group == own {
			return true
		}
	}
	return false
}
