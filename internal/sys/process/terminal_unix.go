//go:build unix

package process

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lentTerminal is the terminal that a child uses in our place. A shell that runs us sees one job: when the child stops,
// we stop too.
type lentTerminal struct {
	file  *os.File
	fd    int
	own   int // our process group
	child int // its group

	mu     sync.Mutex
	before *unix.Termios // as it was when it was first lent; nil: it never was
	during *unix.Termios // as the child had it when it was stopped
}

func lendTerminal(f *os.File) *lentTerminal {
	return &lentTerminal{file: f, fd: int(f.Fd()), own: syscall.Getpgrp()}
}

// foreground returns the foreground group of the terminal, or 0 if it is not known: the terminal does not control us,
// or is gone.
func (l *lentTerminal) foreground() int {
	id, err := unix.IoctlGetInt(l.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return id
}

// ours reports whether we may pass the terminal on.
func (l *lentTerminal) ours() bool { return l.foreground() == l.own }

// save stores the modes, when the terminal is lent for the first time. Not earlier: in the background they are the
// modes of the shell's line editor.
func (l *lentTerminal) save() {
	if l.before == nil {
		l.before, _ = unix.IoctlGetTermios(l.fd, getModes)
	}
}

func (l *lentTerminal) give(group int) {
	withoutTTOU(func() { _ = unix.IoctlSetPointerInt(l.fd, unix.TIOCSPGRP, group) })
}

// takeBack makes us the foreground group if the child is it. It takes the terminal from no other group: while we are in
// the background, it is the shell's.
func (l *lentTerminal) takeBack() {
	at := l.foreground()
	if at == 0 || at == l.own || l.before == nil {
		return
	}
	if at == l.child || syscall.Kill(-at, 0) == syscall.ESRCH {
		l.give(l.own)
	}
}

func (l *lentTerminal) set(modes *unix.Termios) {
	now, err := unix.IoctlGetTermios(l.fd, getModes)
	if err == nil && modes != nil && *now != *modes {
		withoutTTOU(func() { _ = unix.IoctlSetTermios(l.fd, setModes, modes) })
	}
}

// stopped stops us as the child was stopped, and continues the child when we are continued. hangs means that the child
// waits for the terminal and there is no shell to give it.
func (l *lentTerminal) stopped() (hangs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	by, is := takeStop(l.child)
	if !is { // continued was quicker
		return false
	}
	// A shell does not signal a running job that it brings to the foreground. We only notice when the child asks
	// for the terminal.
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
		by = syscall.SIGTSTP // nobody would continue an orphaned group; SIGTSTP does nothing there
	}
	stopSelf(by)
	at := l.foreground()
	l.resume()
	return by != syscall.SIGTSTP && at != l.own && orphaned()
}

// resume continues the child, in the foreground if we are.
func (l *lentTerminal) resume() {
	if l.ours() {
		l.save()
		l.set(l.during)
		l.during = nil
		l.give(l.child)
	}
	_ = syscall.Kill(-l.child, syscall.SIGCONT)
}

// continued handles a stop that we could not catch. A shell that brought us to the foreground gave us the terminal.
func (l *lentTerminal) continued() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ours() {
		l.resume()
	}
}

// giveBack restores the terminal when the child is dead. A child that was killed could not reset it, so giveBack does.
func (l *lentTerminal) giveBack(killed bool, env []string) {
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

// write gives up on a terminal that accepts nothing, such as one that was paused with Ctrl-S.
func (l *lentTerminal) write(text string) {
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
// because leaving restores it even if that screen was not used. The keyboard mode is popped from the stack of either
// screen.
const resetSequences = "\x1b[<u" + "\x1b7\x1b[?1049l" + "\x1b[<u" + // kitty keyboard, alternate screen
	"\x1b[>4;0m" + // modifyOtherKeys
	"\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l" + // mouse
	"\x1b[?1004l\x1b[?2004l\x1b[?2026l" + // focus, bracketed paste, held output
	"\x1b[?1l\x1b>" + // application keys
	"\x1b[m\x1b[?25h" // colours, cursor

// orphaned reports whether our group is orphaned: no member has a parent in another group of the session. It looks only
// at us and our ancestors in the group; the other members of a pipeline have our parent.
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
