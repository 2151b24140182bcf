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

// watch is process 1 of the namespace, since a shell in its place would not hear a signal that it does not catch. With
// its end the kernel kills everything in the namespace. It is in the group of the command, so whoever signals the group
// reaches the command without it.
func watch(o order, env []string, signals chan os.Signal) int {
	asked := false
	early := pending(signals)
	if len(early) > 0 { // there is nobody yet who could hear it
		return died(early[0])
	}
	go dieWithCaller()
	threads()
	if o.Limits.Memory > 0 {
		limitMemory(o.Limits.Memory)
	}
	child, err := syscall.ForkExec(o.Program, os.Args[2:],
		&syscall.ProcAttr{Dir: o.Dir, Env: env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return notFound(o.Program, err)
	}
	for _, s := range pending(signals) { // it may have come before the fork
		asked = true
		_ = syscall.Kill(child, s)
	}
	status := await(child)
	if reapAll() && othersInGroup() {
		time.Sleep(2 * time.Millisecond) // what the group was asked may still be on its way to us
		asked = asked || len(pending(signals)) > 0
	}
	if asked { // who is left may outlast the patience of the caller, and this process with it
		tell("ended " + strconv.Itoa(int(status)))
	}
	// a shell dies of the signal long before the git beneath it has removed its lock
	for asked && reapAll() && othersInGroup() {
		time.Sleep(2 * time.Millisecond)
	}
	if status.Signaled() {
		return died(status.Signal())
	}
	return status.ExitStatus()
}

// threads makes those that the runtime may need later, when the command has used up what it may have.
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

// died tells the caller what ended the command, since this process cannot end in the same way.
func died(s syscall.Signal) int {
	tell("signal " + strconv.Itoa(int(s)))
	return 128 + int(s)
}

// dieWithCaller returns never: the caller has never a word for us. The parent-death signal is lost when the caller dies
// before it is set.
func dieWithCaller() {
	for block := make([]byte, 16); ; {
		n, err := unix.Read(controlFile, block)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			syscall.Exit(128 + int(syscall.SIGKILL))
		}
	}
}

// await reaps everybody until the command has ended.
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

// reapAll says whether anybody is left.
func reapAll() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR || pid > 0 {
			continue
		}
		return err == nil
	}
}

// othersInGroup needs a /proc of our own to look through; without one it says yes until nobody is left.
func othersInGroup() bool {
	own, _ := syscall.Getpgid(0)
	entries, err := os.ReadDir("/proc")
	if self, _ := os.Readlink("/proc/self"); err != nil || self != "1" {
		return true
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == 1 {
			continue
		}
		if group, err := syscall.Getpgid(pid); err == nil && group == own {
			return true
		}
	}
	return false
}
