package process

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"omniagent/internal/testkit/hermetic"
)

// screen is a program for a terminal. It says what happens to it and does what the lines say that it reads.
func screen([]string) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGWINCH)
	front, _ := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	_, notTerminal := unix.IoctlGetTermios(1, unix.TCGETS)
	fmt.Printf("<front %v, terminal %v>\r\n", front == syscall.Getpgrp(), notTerminal == nil)
	go func() {
		for s := range signals {
			size, _ := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
			fmt.Printf("<%v %dx%d>\r\n", s, size.Row, size.Col)
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "quit":
			os.Exit(6)
		case "stop":
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
		case "die":
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		case "raw":
			modes, err := unix.IoctlGetTermios(0, unix.TCGETS)
			if err != nil {
				return err
			}
			modes.Lflag &^= unix.ECHO | unix.ISIG
			modes.Oflag &^= unix.OPOST
			if err := unix.IoctlSetTermios(0, unix.TCSETS, modes); err != nil {
				return err
			}
			fmt.Print("<raw>\r\n")
		default:
			fmt.Printf("<read %s>\r\n", lines.Text())
		}
	}
	return nil
}

// console is a person at a pseudo terminal.
type console struct {
	t      *testing.T
	file   *os.File
	cmd    *exec.Cmd
	cookie string

	mu   sync.Mutex
	all  string
	read int // what was expected so far
}

// sit starts a program at a new terminal. In its environment $run starts a screen.
func sit(t *testing.T, argv ...string) *console {
	t.Helper()
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("there is no /bin/bash here")
	}
	exe, err := os.Executable()
	check(t, err)
	c := &console{t: t, cookie: newCookie()}
	text, err := json.Marshal(started{
		Argv: []string{exe, "screen"}, Env: []string{roleVariable + "=screen", c.cookie}, Terminal: true,
		Grace: 100 * time.Millisecond,
	})
	check(t, err)
	run := filepath.Join(t.TempDir(), "run")
	script := fmt.Sprintf("#!/bin/sh\nexport %s=starter GORACE=atexit_sleep_ms=0\nexec '%s' '%s'\n", roleVariable, exe,
		text)
	check(t, hermetic.WriteProgram(run, []byte(script), 0o700))
	if len(argv) == 0 {
		argv = []string{run}
	}
	c.cmd = exec.Command(argv[0], argv[1:]...)
	c.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "TERM=xterm", "PS1=ready> ", "run=" + run,
		"HISTFILE=",
	}
	master, err := pty.StartWithSize(c.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	check(t, err)
	// Asked for its descriptor, as pty does, a file blocks, and Close then waits for the reader below.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	check(t, err)
	check(t, master.Close())
	check(t, unix.SetNonblock(fd, true))
	c.file = os.NewFile(uintptr(fd), "terminal")
	go func() {
		block := make([]byte, 4096)
		for {
			n, err := c.file.Read(block)
			c.mu.Lock()
			c.all += string(block[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.file.Close()
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		eventually(t, c.cookie)
	})
	return c
}

func bash(t *testing.T) *console {
	t.Helper()
	c := sit(t, "/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
	c.expect("ready> ")
	return c
}

func (c *console) types(text string) {
	c.t.Helper()
	_, err := c.file.WriteString(text)
	check(c.t, err)
}

func (c *console) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// hasNoticed makes the shell print prompts until it has said that the job has stopped, which it does before one.
func (c *console) hasNoticed() {
	c.t.Helper()
	since := c.read
	for end := time.Now().Add(hermetic.Patience); time.Now().Before(end); {
		c.types("echo shell $((40+2))\n")
		c.expect("shell 42")
		c.expect("ready> ")
		if strings.Contains(c.text()[since:c.read], "Stopped") {
			return
		}
	}
	c.t.Fatalf("the shell did not notice: %q", c.text()[since:])
}

// expect waits for a text after the last one that was expected.
func (c *console) expect(want string) {
	c.t.Helper()
	over := time.NewTimer(15 * time.Second)
	defer over.Stop()
	at := -1
	pollUntil(func() bool { at = strings.Index(c.text()[c.read:], want); return at >= 0 }, over.C)
	if at < 0 {
		c.t.Fatalf("no %q in %q", want, c.text()[c.read:])
	}
	c.read += at + len(want)
}

func (c *console) lacks(text string) {
	c.t.Helper()
	if strings.Contains(c.text(), text) {
		c.t.Errorf("%q is in %q", text, c.text())
	}
}

func (c *console) modes() unix.Termios {
	c.t.Helper()
	var modes *unix.Termios
	c.control(func(fd int) (err error) { modes, err = unix.IoctlGetTermios(fd, unix.TCGETS); return err })
	return *modes
}

func (c *console) resize(rows, columns uint16) {
	c.t.Helper()
	c.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	})
}

func (c *console) control(do func(fd int) error) {
	c.t.Helper()
	raw, err := c.file.SyscallConn()
	check(c.t, err)
	var failed error
	check(c.t, raw.Control(func(fd uintptr) { failed = do(int(fd)) }))
	check(c.t, failed)
}

// parts are the numbers of the process that runs the child, and of the child.
func (c *console) parts() (parent, child int) {
	c.t.Helper()
	for _, p := range withMark(c.cookie) {
		if s, ok := statOf(p.Pid); ok && s.runs() {
			parent, child = s.parent, p.Pid
		}
		_ = p.Release()
	}
	if child == 0 {
		c.t.Fatal("there is no child")
	}
	return parent, child
}

const leaveScreen = "\x1b[?1049l"

func TestTerminalIsTheChilds(t *testing.T) {
	t.Parallel()
	c := bash(t)
	c.types("$run\n")
	c.expect("<front true, terminal true>")
	c.resize(40, 100)
	c.expect("<window changed 40x100>")
	c.types("\x03")
	c.expect("<interrupt ")
	c.types("hello\n") // it is there: the parent, which ends it on an interrupt, got none
	c.expect("<read hello>")
	c.types("quit\n")
	c.expect("ready> ")
	c.types("echo code $?\n")
	c.expect("\ncode 6")
	c.lacks(leaveScreen)
}

func TestJobControl(t *testing.T) {
	t.Parallel()
	c := bash(t)
	c.types("$run\n")
	c.expect("<front true")
	for _, how := range []string{"\x1a", "stop\n", "\x1a"} {
		c.types(how)
		c.expect("Stopped")
		c.expect("ready> ")
		c.types("echo shell $((40+2))\n")
		c.expect("shell 42")
		c.expect("ready> ")
		c.types("fg\n")
		c.expect("fg")
		c.types("again\n")
		c.expect("<read again>")
	}
	c.types("\x1a")
	c.expect("ready> ")
	c.types("bg\n")
	c.expect("bg")
	parent, child := c.parts()
	wantState(t, child, true) // it wanted to read
	wantState(t, parent, true)
	c.hasNoticed()
	c.types("fg\n")
	c.expect("fg")
	c.types("more\n")
	c.expect("<read more>")
	c.types("quit\n")
	c.expect("ready> ")
	c.lacks(leaveScreen)
}

func TestStartedInTheBackground(t *testing.T) {
	t.Parallel()
	c := bash(t)
	c.types("$run &\n")
	c.expect("<front false")
	parent, child := c.parts()
	wantState(t, child, true)
	wantState(t, parent, true)
	c.hasNoticed()
	c.types("fg\n")
	c.expect("run")
	c.types("now\n")
	c.expect("<read now>")
	c.types("quit\n")
	c.expect("ready> ")
	c.lacks(leaveScreen)
}

func TestContinuedByAnother(t *testing.T) {
	t.Parallel()
	c := bash(t)
	c.types("$run\n")
	c.expect("<front true")
	parent, child := c.parts()
	check(t, syscall.Kill(parent, syscall.SIGSTOP)) // nobody can handle it: the child is not told
	check(t, syscall.Kill(child, syscall.SIGSTOP))
	wantState(t, parent, true)
	wantState(t, child, true) // before that it still gets what is typed, since it waited for a line in front
	c.expect("Stopped")
	c.expect("ready> ")
	c.types("fg\n")
	c.expect("fg")
	c.types("back\n")
	c.expect("<read back>")
	check(t, syscall.Kill(child, syscall.SIGSTOP))
	c.expect("Stopped")
	c.expect("ready> ")
	check(t, syscall.Kill(child, syscall.SIGCONT)) // it wants to read, and may not
	wantState(t, child, true)
	c.types("fg\n")
	c.expect("fg")
	c.types("quit\n")
	c.expect("ready> ")
}

func TestKilledParentLeavesAUsableShell(t *testing.T) {
	t.Parallel()
	c := bash(t)
	for n := range 3 {
		c.types("$run\n")
		c.expect("<front true")
		c.types("raw\n")
		c.expect("<raw>")
		parent, _ := c.parts()
		check(t, syscall.Kill(parent, syscall.SIGKILL))
		c.expect("ready> ")
		eventually(t, c.cookie) // what waits for a line since it was in front would still get it
		c.types(fmt.Sprintf("echo usable $((40+%d))\n", n))
		c.expect(fmt.Sprintf("usable %d", 40+n))
	}
}

func TestTerminalIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, end string
		reset     bool
	}{{"normal", "quit\n", false}, {"dies", "die\n", true}, {"ended", "", true}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			// A shell that is not interactive leaves the terminal alone.
			c := sit(t, "/bin/sh", "-c", `"$run"; echo "<code $?>"; read line; echo "<shell $line>"`)
			before := c.modes()
			c.expect("<front true")
			c.types("raw\n")
			c.expect("<raw>")
			if c.modes() == before {
				t.Fatal("the child changed nothing")
			}
			if parent, _ := c.parts(); row.end == "" {
				check(t, syscall.Kill(parent, syscall.SIGTERM))
			} else {
				c.types(row.end)
			}
			c.expect("<code ")
			if c.modes() != before {
				t.Error("the modes are not what they were")
			}
			if strings.Contains(c.text(), leaveScreen) != row.reset {
				t.Errorf("got %q", c.text())
			}
			c.types("reads\n") // the terminal is the shell's
			c.expect("<shell reads>")
		})
	}
}

func TestOrphanedGroupGoesOn(t *testing.T) {
	t.Parallel()
	c := sit(t) // the parent is the leader of the session: nobody could continue it
	c.expect("<front true")
	for _, how := range []string{"\x1a", "stop\n"} {
		c.types(how)
		c.types("on\n")
		c.expect("<read on>")
	}
	c.types("quit\n")
	_ = c.cmd.Wait()
	if code := c.cmd.ProcessState.ExitCode(); code != 6 {
		t.Errorf("code %d", code)
	}
}

func TestOrphanedInTheBackgroundEnds(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	c := bash(t)
	c.types(`($run & echo "<number $!>")` + "\n")
	c.expect("<number $!")
	c.expect("<number ")
	var parent int
	_, err := fmt.Sscanf(c.text()[c.read:], "%d", &parent)
	check(t, err)
	over := time.NewTimer(10 * time.Second)
	defer over.Stop()
	pollUntil(func() bool { _, err := os.Stat(fmt.Sprintf("/proc/%d", parent)); return err != nil }, over.C)
	// it waited for a terminal that nobody will give it, or was hung up even before it was in front of one
	eventually(t, c.cookie)
	c.types("echo shell $((40+2))\n")
	c.expect("shell 42")
	c.lacks(leaveScreen)
}

func TestHungUpTerminalEndsAll(t *testing.T) {
	t.Parallel()
	c := bash(t)
	c.types("$run\n")
	c.expect("<front true")
	check(t, c.file.Close())
	_ = c.cmd.Wait()
	eventually(t, c.cookie)
}
