package stuckprompt_test

import (
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/sys/stuckprompt"
	"omniagent/internal/testkit/hermetic"
)

// role makes the test binary one of the programs that are looked at.
const role = "OMNIAGENT_TEST_PROMPT_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "thread": // reads in a thread that is not the first
		lines := make(chan error)
		go func() {
			_, err := os.Stdin.Read(make([]byte, 1))
			lines <- err
		}()
		<-lines
	case "poll": // waits for its input and for other things, as Node does
		_ = syscall.SetNonblock(0, true)
		_, _ = os.NewFile(0, "input").Read(make([]byte, 1))
	case "serve": // waits for connections only
		if listener, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
			_, _ = listener.Accept()
		}
	}
}

// TestWaiting asks about real processes.
func TestWaiting(t *testing.T) {
	t.Parallel()
	if _, err := os.ReadFile("/proc/self/syscall"); err != nil {
		t.Skipf("the kernel does not show system calls here: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const (
		none     = iota // /dev/null
		pipe            // open, and nothing comes
		terminal        // it controls the program
		control         // it controls the program, whose input is /dev/null
	)
	for _, c := range []struct {
		name  string
		input int
		argv  []string
		env   string
		want  stuckprompt.Wait

		within time.Duration
	}{
		{"a shell reads", pipe, []string{"sh", "-c", "read x"}, "", stuckprompt.Input, 0},
		{"a shell reads for a while", pipe, []string{"bash", "-c", "read -t 60 x"}, "", stuckprompt.Input, 0},
		{"a child reads", pipe, []string{"sh", "-c", "cat; :"}, "", stuckprompt.Input, 0},
		{"a thread reads", pipe, []string{self}, "thread", stuckprompt.Input, 0},
		{"a terminal is read", terminal, []string{"cat"}, "", stuckprompt.Terminal, 0},
		{"the terminal is opened", control, []string{"sh", "-c", "read x </dev/tty"}, "", stuckprompt.Terminal, 0},
		{"sleeps", pipe, []string{"sleep", "60"}, "", stuckprompt.Working, 0},
		{"sleeps at a terminal", terminal, []string{"sleep", "60"}, "", stuckprompt.Working, 0},
		{"sleeps without input", none, []string{"sleep", "60"}, "", stuckprompt.Working, 0},
		{"computes", pipe, []string{"sh", "-c", "while :; do :; done"}, "", stuckprompt.Working, 0},
		{"a pipeline", pipe, []string{"sh", "-c", "sleep 60 | cat"}, "", stuckprompt.Working, 0},
		{"a child is dead", pipe, []string{"sh", "-c", "sleep 0 & exec sleep 60"}, "", stuckprompt.Working, 0},
		{"serves", pipe, []string{self}, "serve", stuckprompt.Working, 0},
		{"sleeps for less", pipe, []string{"sleep", "60"}, "", stuckprompt.Working, time.Hour},
		{"sleeps for more", pipe, []string{"sleep", "60"}, "", stuckprompt.Resting, time.Minute},
		{"sleeps for good", pipe, []string{"sleep", "infinity"}, "", stuckprompt.Resting, time.Hour},
		{"sleeps in a child", pipe, []string{"sh", "-c", "sleep 60; :"}, "", stuckprompt.Resting, time.Minute},
		{
			"sleeps for several", pipe,
			[]string{"sh", "-c", "sleep 60 & sleep 61 | cat"},
			"", stuckprompt.Resting, time.Minute,
		},
		{
			"one works", pipe,
			[]string{"sh", "-c", "sleep 60 & while :; do :; done"},
			"", stuckprompt.Working, time.Minute,
		},
		{
			"any program may write", pipe,
			[]string{
				"sh", "-c", `cd "$(mktemp -d)" && mkfifo f && exec 3<>f && rm f && rmdir "$PWD" && read x <&3`,
			},
			"", stuckprompt.Working, time.Minute,
		},
		{"one wakes", pipe, []string{"sh", "-c", "sleep 60 & sleep 50"}, "", stuckprompt.Working, time.Minute},
		{"serves for good", pipe, []string{self}, "serve", stuckprompt.Working, time.Minute},
		{"waits for several things", pipe, []string{self}, "poll", stuckprompt.Unknown, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				t.Skipf("install %s: %v", c.argv[0], err)
			}
			cmd := exec.Command(c.argv[0], c.argv[1:]...)
			cmd.Env = append(os.Environ(), role+"="+c.env)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			var input *os.File
			switch c.input {
			case pipe:
				reader, writer, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _, _ = reader.Close(), writer.Close() })
				input, cmd.Stdin = reader, reader
			case terminal, control:
				keyboard, screen, err := pty.Open()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _, _ = keyboard.Close(), screen.Close() })
				go func() { _, _ = io.Copy(io.Discard, keyboard) }()
				input, cmd.Stderr = screen, screen
				cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 2
				if c.input == terminal {
					cmd.Stdin = screen
				}
			}
			var info fs.FileInfo
			if input != nil {
				described, err := input.Stat()
				if err != nil {
					t.Fatal(err)
				}
				info = described
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				_ = cmd.Wait()
			})
			expect(t, info, cmd.Process.Pid, c.within, c.want)
		})
	}
}

// expect asks until the answer is the expected one twenty times in succession. A program that works must never have
// waited for a person.
func expect(t *testing.T, input fs.FileInfo, session int, within time.Duration, want stuckprompt.Wait) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for over := time.Now().Add(hermetic.Patience); ; <-tick.C {
		got, same, pids := stuckprompt.Unknown, 0, members(session)
		for ; same < 20; same++ {
			if got = stuckprompt.Waiting(input, pids, within); got != want {
				break
			}
		}
		if same == 20 {
			return
		}
		waits := got == stuckprompt.Input || got == stuckprompt.Terminal
		if want == stuckprompt.Working && waits || time.Now().After(over) {
			t.Fatalf("the kernel says %d, want %d", got, want)
		}
	}
}

// members returns the processes of a session.
func members(session int) []int {
	var pids []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, _ := os.ReadFile(name)
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 3 && fields[3] == strconv.Itoa(session) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestWaitingForNobody(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for _, pids := range [][]int{nil, {cmd.Process.Pid}} {
		if got := stuckprompt.Waiting(nil, pids, 0); got != stuckprompt.Unknown {
			t.Errorf("%v: the kernel says %d", pids, got)
		}
	}
}
