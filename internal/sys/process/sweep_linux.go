package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// We adopt what a dead process leaves behind. So after the program has exited, each living descendant is a child of
// ours, or below one: if all our children are processes that we started, nothing is left.

// betweenTakes is how long a process in the middle of an exec is awaited, to see whose it is.
const betweenTakes = 100 * time.Millisecond

// sweep kills what is left of the child. detached means that processes which left its session may live.
func (c *Child) sweep(detached bool) {
	session := c.pid
	if c.terminal != nil {
		session, _ = unix.Getsid(0)
	}
	over := time.Now().Add(deathTakes)
	for time.Now().Before(over) {
		var left []int
		for _, pid := range c.adopted() {
			if at, err := unix.Getsid(pid); detached && err == nil && at != session {
				continue
			}
			left = append(left, pid)
		}
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			if at, err := syscall.Getpgid(pid); err == nil && at == pid {
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for _, pid := range left {
			awaitDeath(pid, over)
		}
	}
	killMarked(c.mark) // too many to follow, or one that cannot die
}

// awaitDeath waits for a child of ours to die and reaps it.
func awaitDeath(pid int, over time.Time) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		time.Sleep(time.Millisecond)
	} else {
		defer unix.Close(fd)
		for {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}},
				int(max(0, time.Until(over)/time.Millisecond)))
			if err != unix.EINTR {
				break
			}
		}
	}
	_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
}

// groupLeft reports whether any process of the group runs.
func (c *Child) groupLeft() bool {
	if c.guard == nil {
		return groupRuns(c.pid)
	}
	return slices.ContainsFunc(c.adopted(), c.inGroup)
}

func (c *Child) reapAdopted() { c.adopted() }

// adopted returns the living processes that we adopted from this child. It reaps dead ones, whichever child they came
// from: nobody else waits for them. What a dead one had started became ours when it died, so it looks again.
func (c *Child) adopted() []int {
	for {
		found, reaped := c.adoptedNow()
		if len(found) > 0 || !reaped {
			return found
		}
	}
}

func (c *Child) adoptedNow() (found []int, reaped bool) {
	guard := c.guard.process()
	syscall.ForkLock.Lock() // what a starter makes cannot be told from an adopted process before it has a pidfd
	kept := slices.DeleteFunc(ourChildren(), func(pid int) bool { return pid == c.pid || pid == guard })
	var held map[int]bool
	if len(kept) > 0 {
		held = heldByPidfd()
	}
	syscall.ForkLock.Unlock()
	c.mu.Lock()
	tracked := c.tracked
	c.mu.Unlock()
	if len(kept) == 0 || tracked < 0 {
		return c.onlyMarked(kept), false // without pidfds a child that other code waits for looks like an adopted one
	}
	for _, pid := range kept {
		ours := c.inGroup(pid)
		if held[pid] && !ours {
			continue
		}
		if dead, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); dead == pid || err != nil {
			reaped = reaped || dead == pid
			continue
		}
		if ours || c.owns(pid, held) {
			found = append(found, pid)
		} else if syscall.Kill(pid, 0) == syscall.ESRCH { // it was reaped there
			reaped = true
		}
	}
	return found, reaped
}

// inGroup reports whether a process is in the child's group. It works even for a dying process without an environment.
// The number of the group is not reused while it has a member.
func (c *Child) inGroup(pid int) bool {
	at, err := syscall.Getpgid(pid)
	return err == nil && at == c.pid
}

func (c *Child) onlyMarked(pids []int) []int {
	var found []int
	for _, pid := range pids {
		if marked, _ := lookForMark(pid, c.mark); marked {
			found = append(found, pid)
		}
	}
	return found
}

// owns distinguishes the processes of this child from those of another one. A process that has cleared its environment
// belongs to the only child, or to the last of several. The guard of a killed program belongs to no child: it has work
// to do, and ends by itself.
func (c *Child) owns(pid int, held map[int]bool) bool {
	marked, between := lookForMark(pid, c.mark)
	for over := time.Now().Add(betweenTakes); between && time.Now().Before(over); marked, between = lookForMark(pid,
		c.mark) {
		if reaped, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); reaped == pid {
			return false
		}
		time.Sleep(time.Millisecond / 4)
	}
	if marked {
		return true
	}
	if others, _ := lookForMark(pid, markVariable+"="); others || isGuard(pid) {
		return false
	}
	leader, leaderKnown := statOf(c.pid)
	if s, ok := statOf(pid); !ok || !leaderKnown || s.before(leader) {
		return false
	}
	guard := c.guard.process()
	for other := range held {
		if other != guard && isGuard(other) {
			return false
		}
	}
	return true
}

func isGuard(pid int) bool {
	name, err := readWhole("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return err == nil && bytes.HasPrefix(name, []byte(guardName+"\x00"))
}

// ourChildren returns the children of the first thread, which adopts orphans. If the kernel does not list them, it
// searches all processes.
func ourChildren() []int {
	pid := strconv.Itoa(os.Getpid())
	text, err := readWhole("/proc/self/task/" + pid + "/children")
	if err == nil {
		return numbers(text)
	}
	var children []int
	for _, other := range everyProcess() {
		if s, ok := statOf(other); ok && s.parent == os.Getpid() {
			children = append(children, other)
		}
	}
	return children
}

func numbers(text []byte) []int {
	var all []int
	for word := range strings.FieldsSeq(string(text)) {
		if n, err := strconv.Atoi(word); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// heldByPidfd returns the processes that code in this process waits for: os.StartProcess holds a pidfd of each, and so
// do we.
func heldByPidfd() map[int]bool {
	held := map[int]bool{}
	names, _ := os.ReadDir("/proc/self/fdinfo")
	for _, name := range names {
		text, err := readWhole("/proc/self/fdinfo/" + name.Name())
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			if number, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
				if pid, err := strconv.Atoi(string(bytes.TrimSpace(number))); err == nil {
					held[pid] = true
				}
			}
		}
	}
	return held
}

// killMarked kills the processes with the mark, repeatedly, because one may fork meanwhile.
func killMarked(mark string) {
	over := time.NewTimer(deathTakes)
	defer over.Stop()
	pollUntil(func() bool {
		found := withMark(mark)
		for _, p := range found {
			_ = p.Kill()
			_ = p.Release()
		}
		return len(found) == 0
	}, over.C)
}
