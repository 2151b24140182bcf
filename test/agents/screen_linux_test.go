package agents

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// screen is a terminal with a program in it. It answers what programs ask a terminal, and remembers what they wrote.
type screen struct {
	t    *testing.T
	cmd  *exec.Cmd
	file *os.File
	done chan struct{} // closed at the end of what the program writes

	began time.Time

	mu   sync.Mutex
	raw  string
	seen int // how much of the letters has been expected
}

// open starts the agent's own screen through our program, on a script. What is typed is what a person would type.
func (b *bench) open(script string, args ...string) *screen {
	b.t.Helper()
	return b.sit(program, append([]string{"--agent", b.agent, b.script(script)}, args...)...)
}

// shell starts bash with job control at a terminal. "omniagent" and the agents are in its PATH.
func (b *bench) shell() *screen {
	b.t.Helper()
	s := b.sit("/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
	s.sees("ready>")
	return s
}

// sit starts any program at a terminal of 40 lines and 120 columns.
func (b *bench) sit(path string, args ...string) *screen {
	b.t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = b.work, append(b.environ(), "PS1=ready> ", "HISTFILE=")
	return b.sitAt(cmd)
}

func (b *bench) sitAt(cmd *exec.Cmd) *screen {
	b.t.Helper()
	s := &screen{t: b.t, cmd: cmd, done: make(chan struct{}), began: time.Now()}
	master, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		b.t.Fatal(err)
	}
	// Asked for its descriptor, as pty does, a file blocks, and Close would wait for the reader below.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	_ = master.Close()
	s.file = os.NewFile(uintptr(fd), "terminal")
	go s.read()
	b.t.Cleanup(s.leave)
	return s
}

func (s *screen) read() {
	defer close(s.done)
	block := make([]byte, 1<<16)
	for {
		n, err := s.file.Read(block)
		s.mu.Lock()
		s.raw += string(block[:n])
		s.mu.Unlock()
		s.reply(string(block[:n]))
		if err != nil {
			return
		}
	}
}

// reply answers questions that programs wait for: where the cursor is, what sort of terminal this is, its colours.
func (s *screen) reply(asked string) {
	for question, answer := range map[string]string{
		"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?62;22c", "\x1b[0c": "\x1b[?62;22c", "\x1b[5n": "\x1b[0n",
		"\x1b]10;?": "\x1b]10;rgb:ffff/ffff/ffff\x1b\\", "\x1b]11;?": "\x1b]11;rgb:0000/0000/0000\x1b\\",
	} {
		for range strings.Count(asked, question) {
			_, _ = s.file.WriteString(answer)
		}
	}
}

// letters are what was written, without blanks and the terminal's own language: programs that draw only what changed
// jump over blanks.
func (s *screen) letters() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return letters(s.raw)
}

func letters(raw string) string {
	text := regexp.MustCompile(
		`\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[P_^][^\x1b]*\x1b\\|\x1b\[[0-9;:<=>?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]`).ReplaceAllString(raw, "")
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// sees waits for one of the texts, after the last one that was seen, and returns it. Blanks do not count.
func (s *screen) sees(wanted ...string) string {
	s.t.Helper()
	end := time.Now().Add(patience)
	for {
		text := s.letters()
		found, at := "", -1
		for _, w := range wanted {
			if i := strings.Index(text[min(s.seen, len(text)):], letters(w)); i >= 0 && (at < 0 || i < at) {
				found, at = w, i
			}
		}
		if at >= 0 {
			s.seen += at + len(letters(found))
			return found
		}
		select {
		case <-s.done:
			if s.letters() == text {
				s.t.Fatalf("none of %q before the end of\n%s", wanted, tail(text))
			}
		default:
		}
		if time.Now().After(end) {
			s.t.Fatalf("none of %q within %v in\n%s", wanted, patience, tail(text))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// lacks says that a text was not written, in all that there was.
func (s *screen) lacks(text string) {
	s.t.Helper()
	if strings.Contains(s.letters(), letters(text)) {
		s.t.Errorf("%q is in\n%s", text, tail(s.letters()))
	}
}

func tail(text string) string { return text[max(0, len(text)-3000):] }

// types sends keys. A carriage return that comes with the text is taken for a pasted one by some: send it apart.
func (s *screen) types(keys string) {
	s.t.Helper()
	if _, err := s.file.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// enters types a line and sends it, once the program shows what was typed.
func (s *screen) enters(line string) {
	s.t.Helper()
	s.types(line)
	s.sees(line)
	s.types("\r")
}

// soon is how soon a person presses a key again.
const soon = 600 * time.Millisecond

// presses sends a key until something holds: what comes while a screen is being set up is lost, and of two keys the
// second may have to come within a second.
func (s *screen) presses(key string, every time.Duration, what string, holds func() bool) {
	s.t.Helper()
	sent := time.Time{}
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(sent) > every {
			_, _ = s.file.WriteString(key) // it may just have ended
			sent = time.Now()
		}
		if time.Now().After(end) {
			s.t.Fatalf("not within %v: %s, in\n%s", patience, what, tail(s.letters()))
		}
	}
}

// shows reports whether a text is there, after the last one that was seen. Blanks do not count.
func (s *screen) shows(text string) bool {
	all := s.letters()
	return strings.Contains(all[min(s.seen, len(all)):], letters(text))
}

// forget makes sees look at what comes from here on.
func (s *screen) forget() { s.seen = len(s.letters()) }

func (s *screen) resize(rows, columns uint16) {
	s.t.Helper()
	raw, err := s.file.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// drawn waits until the program has written something new, and returns its letters.
func (s *screen) drawn() string {
	s.t.Helper()
	end := time.Now().Add(patience)
	for {
		if text := s.letters(); len(text) > s.seen {
			new := text[s.seen:]
			s.seen = len(text)
			return new
		}
		if time.Now().After(end) {
			s.t.Fatalf("nothing new was drawn after\n%s", tail(s.letters()))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// left waits for the end of the program, and returns its exit code.
func (s *screen) left() int {
	s.t.Helper()
	ended := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		s.t.Fatalf("it did not end within %v:\n%s", patience, tail(s.letters()))
	}
	return s.cmd.ProcessState.ExitCode()
}

// leave ends what still runs, as a closed window does.
func (s *screen) leave() {
	_ = s.file.Close()
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(syscall.SIGHUP)
		kill := time.AfterFunc(patience, func() {
			s.t.Error("it had to be killed")
			_ = s.cmd.Process.Kill()
		})
		_ = s.cmd.Wait()
		kill.Stop()
	}
}

// group says who is in front at the terminal: tests of job control compare it.
func (s *screen) group() int {
	var pid int
	if raw, err := s.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { pid, _ = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	}
	return pid
}

// commandLine is that of a process: it shows which flags arrived.
func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
}
