//go:build unix

package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/testkit/emulator"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

const repository = "../.."

// talk is the built program of the scripted conversation.
var talk string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "omniagent-terminal-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program, err := measure.Build(repository, "omniagent/bench/terminal/talk", dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		talk = program.File
		return m.Run()
	}())
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources(repository); err != nil {
		t.Fatal(err)
	}
}

// window is a program on a pseudo terminal, in front of an emulator.
type window struct {
	t        *testing.T
	master   *os.File
	cmd      *exec.Cmd
	emulator *emulator.Emulator // nil: none looks
	ended    chan error

	mu     sync.Mutex
	bytes  []byte // everything that was written
	record []any  // the same, with the sizes between
	loaded chan struct{}
}

func open(t *testing.T, e *emulator.Emulator, columns, rows int, args ...string) *window {
	t.Helper()
	cmd := exec.Command(talk, args...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "TMUX=", "XTERM_VERSION=", "NO_COLOR=", "PAGER=")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)})
	if err != nil {
		t.Fatal(err)
	}
	w := &window{
		t: t, master: master, cmd: cmd, emulator: e, ended: make(chan error, 1), loaded: make(chan struct{}),
	}
	go w.read()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = master.Close()
		<-w.loaded
	})
	return w
}

func (w *window) read() {
	block := make([]byte, 1<<16)
	for {
		n, err := w.master.Read(block)
		if n > 0 {
			if w.emulator != nil {
				if answer := w.emulator.Write(block[:n]); len(answer) > 0 {
					_, _ = w.master.Write(answer)
				}
			}
			w.mu.Lock()
			w.bytes = append(w.bytes, block[:n]...)
			w.record = append(w.record, string(block[:n]))
			w.mu.Unlock()
		}
		if err != nil {
			close(w.loaded)
			w.ended <- w.cmd.Wait()
			return
		}
	}
}

func (w *window) types(keys string) {
	w.t.Helper()
	if _, err := w.master.WriteString(keys); err != nil {
		w.t.Fatal(err)
	}
}

// resize changes the size as an emulator does: first itself, then the terminal, which tells the program.
func (w *window) resize(columns, rows int) {
	w.t.Helper()
	w.mu.Lock()
	w.record = append(w.record, []int{columns, rows})
	w.mu.Unlock()
	w.emulator.Resize(columns, rows)
	if err := pty.Setsize(w.master, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *window) written() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.bytes)
}

// await waits until something holds.
func (w *window) await(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(hermetic.Patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			written := w.written()
			w.t.Fatalf("no %s; the last bytes are %q", what, written[max(len(written)-2000, 0):])
		}
	}
}

// sees waits for a text in what the program writes.
func (w *window) sees(text string) {
	w.t.Helper()
	w.await(text, func() bool { return strings.Contains(w.written(), text) })
}

// shows waits for a text on the screen.
func (w *window) shows(text string) emulator.Picture {
	w.t.Helper()
	var p emulator.Picture
	w.await(text, func() bool {
		p = w.emulator.Look()
		return slices.ContainsFunc(p.Screen, func(row string) bool { return strings.Contains(row, text) })
	})
	return p
}

func (w *window) ends() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		return err
	case <-time.After(hermetic.Patience):
		w.t.Fatalf("it does not end")
		return nil
	}
}

func transcript(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return emulator.Trim(strings.Split(string(data), "\n"))
}

// long writes a script that takes a while.
func long(t *testing.T, paragraphs int) string {
	t.Helper()
	var b strings.Builder
	for i := range paragraphs {
		fmt.Fprintf(&b, "## Part %d\n\n", i)
		for j := range 40 {
			fmt.Fprintf(&b, "word%d-%d and **bold %d** ", i, j, j)
		}
		b.WriteString("\n\n- one item with 日本語の文字 in it\n- another with `code`\n\n```go\nx := 1 // note\n```\n\n" +
			"| a | b |\n|---|---|\n| 1 | two words |\n\n")
	}
	file := filepath.Join(t.TempDir(), "script.md")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
