//go:build unix

package process

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lent is the terminal that a child works on in our place. A shell that runs us sees one job: what happens to the child
// is done to us too.
type lent struct {
	file  *os.File
	fd    int
	own   int // our process group
	child int // its group

	mu     sync.Mutex
	before *unix.Termios // as it was when it was first lent; nil: it never was
	during *unix.Termios // as the child had it when it was stopped
}

func lend(f *os.File) *lent { return &lent{file: f, fd: int(f.Fd()), own: syscall.Getpgrp()} }

// foreground is the group that the terminal listens to, 0 when there is none to be known: it is not our controlling
// terminal, or is gone.
func (l *lent) foreground() int {
	id, err := unix.IoctlGetInt(l.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return id
}

// ours says whether it is ours to give.
func (l *lent) ours() bool { return l.foreground() == l.own }

// save keeps the modes, if the terminal is lent for the first time. Not earlier: in the background they are those of
// the shell's editor.
func (l *lent) save() {
	if l.before == nil {
		l.before, _ = unix.IoctlGetTermios(l.fd, getModes)
	}
}

func (l *lent) give(group int) {
	withoutTTOU(func() { _ = unix.IoctlSetPointerInt(l.fd, unix.TIOCSPGRP, group) })
}

// takeBack makes us the foreground, if the child has it. What anybody else has stays theirs: when we are in the
// background, the shell.
func (l *lent) takeBack() {
	at := l.foreground()
	if at == 0 || at == l.own || l.before == nil {
		return
	}
	if at == l.child || syscall.Kill(-at, 0) == syscall.ESRCH {
		l.give(l.own)
	}
}

func (l *lent) set(modes *unix.Termios) {
	now, err := unix.IoctlGetTermios(l.fd, getModes)
	if err == nil && modes != nil && *now != *modes {
		withoutTTOU(func() { _ = unix.IoctlSetTermios(l.fd, setModes, modes) })
	}
}

// stopped stops us as the child was stopped, and lets it go on when we go on. hangs says that the child waits for the
// terminal and that there is no shell to give it.
func (l *lent) stopped() (hangs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	by, is := takeStop(l.child)
	if !is { // continued has been quicker
		return false
	}
	// A shell that brings a running job to the front does not tell it. The child had to ask for the terminal to be
	// noticed.
	if l.ours() {
		l.resume()
		return false
	}
	l.during = nil
	if at := l.foreground(); at != 0 && at == l.child {
		l.during, _ = unix.IoctlGetTermios(l.fd, getModes)
	}
	l.takeBack()
	if l.ours() {
		l.set(l.before)
	}
	if by == syscall.SIGSTOP {
		by = syscall.SIGTSTP // in an orphaned group nobody would continue us; this one does nothing there
	}
	stopSelf(by)
	at := l.foreground()
	l.resume()
	return by != syscall.SIGTSTP && at != l.own && orphaned()
}

// resume lets the child go on, in front if we are in front.
func (l *lent) resume() {
	if l.ours() {
		l.save()
		l.set(l.during)
		l.during = nil
		l.give(l.child)
	}
	_ = syscall.Kill(-l.child, syscall.SIGCONT)
}

// continued is for when we were stopped by something that could not be handled. A shell that brought us back gave us
// the terminal.
func (l *lent) continued() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ours() {
		l.resume()
	}
}

// giveBack leaves the terminal as it was, when the child is dead. A child that was killed could not tidy up, so that is
// done for it.
func (l *lent) giveBack(killed bool, env []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeBack()
	if !l.ours() || l.before == nil {
		return
	}
	l.set(l.before)
	if kind, _ := Value(env, "TERM"); killed && kind != "dumb" {
		l.write(resetSequences)
	}
}

// write gives up on a terminal that takes nothing, such as one that was paused with Ctrl-S.
func (l *lent) write(text string) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = syscall.Write(l.fd, []byte(text))
	}()
	over := time.NewTimer(200 * time.Millisecond)
	defer over.Stop()
	select {
	case <-written:
	case <-over.C:
	}
}

// resetSequences turn off what a program may have turned on. The cursor is saved before the alternate screen is left,
// because leaving restores it even where that screen was not used. The keyboard mode is taken off the stack of either
// screen.
const resetSequences = "\x1b[<u" + "\x1b7\x1b[?1049l" + "\x1b[<u" + // kitty keyboard, alternate screen
	"\x1b[>4;0m" + // modifyOtherKeys
	"\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l" + // mouse
	"\x1b[?1004l\x1b[?2004l\x1b[?2026l" + // focus, bracketed paste, held output
	"\x1b[?1l\x1b>" + // application keys
	"\x1b[m\x1b[?25h" // colours, cursor

// orphaned says whether our group has nobody to continue it: nobody in it has a parent in another group of the session.
// Only we and our ancestors in the group are looked at; the others of a pipeline have the same parent as we.
func orphaned() bool {
	session, err := unix.Getsid(0)
	if err != nil {
		return false
	}
	own := syscall.Getpgrp()
	for parent := syscall.Getppid(); parent > 1; parent = parentOf(parent) {
		if at, err := unix.Getsid(parent); err != nil || at != session {
			return true
		}
		if group, err := syscall.Getpgid(parent); err != nil || group != own {
			return err != nil
		}
	}
	return true
}
