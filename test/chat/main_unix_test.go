//go:build unix

// Package chat talks with the built program as a person does: typed keys into a pseudo terminal, and what comes out of
// it. It promises every scenario of seed 2 that a person can see, with a scripted model behind the native agent, and,
// where they are installed, with the agents of others.
package chat

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/emulator"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// program is the built program.
var program string

// patience is longer than anything here takes, on a busy machine too.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	hermetic.Signals()
	hermetic.AtOnce("4")
	os.Exit(measure.WithProgram("../..", func(file string) int {
		program = file
		return hermetic.Sample(m, "TestTalk", "TestQuestions", "TestStopped", "TestCommandOfThePerson")
	}))
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}

// scripts are several: the one with whose name the person's last message begins is played.
type scripts map[string]*modelserver.Script

// Answer implements modelserver.Backend.
func (s scripts) Answer(ctx context.Context, r *modelserver.Request, w modelserver.Writer) error {
	last := ""
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			if m.Role == modelserver.User && b.Kind == modelserver.Text {
				last = b.Text
			}
		}
	}
	for name, script := range s {
		if name != "" && strings.HasPrefix(last, name) {
			return script.Answer(ctx, r, w)
		}
	}
	return s[""].Answer(ctx, r, w)
}

// place is a home and a workspace of one test, and a model that plays a script.
type place struct {
	t          *testing.T
	home, work string
	env, args  []string
	model      *modelserver.Server
}

func newPlace(t *testing.T, script string) *place {
	t.Helper()
	return newPlaceOf(t, parsed(t, script))
}

func parsed(t *testing.T, script string) *modelserver.Script {
	t.Helper()
	s, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newPlaceOf is a place with any model.
func newPlaceOf(t *testing.T, backend modelserver.Backend) *place {
	t.Helper()
	p := &place{t: t, home: t.TempDir(), work: t.TempDir()}
	server, err := modelserver.Start(backend, modelserver.Options{Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	p.model = server
	t.Cleanup(func() { _ = server.Close() })
	p.env = []string{
		"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "TERM=xterm-256color",
		"ANTHROPIC_API_KEY=secret-of-a-test", "LANG=C.UTF-8",
	}
	p.args = []string{"--provider", "anthropic", "--model", "test-model", "--api-base", server.URL()}
	return p
}

// requests are what the model was asked so far.
func (p *place) requests() []modelserver.Request { return p.model.Requests() }

func (p *place) write(name, content string) string {
	p.t.Helper()
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(p.work, name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// comes waits for a file with a text in it.
func (p *place) comes(path, what string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), what) {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: no %s: %v %s", path, what, err, data)
		}
	}
}

// run runs another command of the program.
func (p *place) run(args ...string) string {
	p.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = p.env, p.work
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Errorf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// window is a chat in a pseudo terminal.
type window struct {
	t    *testing.T
	cmd  *exec.Cmd
	keys *os.File
	look *emulator.Emulator // nil: none looks

	mu   sync.Mutex
	raw  bytes.Buffer
	grew chan struct{}
	read int // of the text, up to where await has looked
	gone chan struct{}
}

// open starts a chat in a window of 80 columns and 24 rows.
func (p *place) open(args ...string) *window {
	p.t.Helper()
	return p.sized(80, 24, append(append([]string{"chat"}, p.args...), args...)...)
}

func (p *place) sized(columns, rows uint16, args ...string) *window {
	p.t.Helper()
	return p.start(exec.Command(program, args...), columns, rows)
}

func (p *place) start(cmd *exec.Cmd, columns, rows uint16) *window {
	p.t.Helper()
	return p.startBefore(nil, cmd, columns, rows)
}

// before starts a chat in front of an emulator.
func (p *place) before(look *emulator.Emulator, columns, rows int, args ...string) *window {
	p.t.Helper()
	cmd := exec.Command(program, append(append([]string{"chat"}, p.args...), args...)...)
	return p.startBefore(look, cmd, uint16(columns), uint16(rows))
}

func (p *place) startBefore(look *emulator.Emulator, cmd *exec.Cmd, columns, rows uint16) *window {
	p.t.Helper()
	cmd.Env, cmd.Dir = p.env, p.work
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		p.t.Fatal(err)
	}
	w := &window{t: p.t, cmd: cmd, keys: file, look: look, grew: make(chan struct{}), gone: make(chan struct{})}
	go w.listen()
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone
		<-w.gone
		_ = file.Close()
	})
	return w
}

func (w *window) listen() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := w.keys.Read(buffer)
		if w.look != nil && n > 0 {
			if answer := w.look.Write(buffer[:n]); len(answer) > 0 {
				_, _ = w.keys.Write(answer)
			}
		}
		w.mu.Lock()
		w.raw.Write(buffer[:n])
		close(w.grew)
		w.grew = make(chan struct{})
		w.mu.Unlock()
		if w.look == nil && bytes.Contains(buffer[:n], []byte("\x1b[6n")) { // where the cursor is
			_, _ = w.keys.WriteString("\x1b[24;1R")
		}
		if err != nil {
			break
		}
	}
	_ = w.cmd.Wait()
	close(w.gone)
}

// types sends keys.
func (w *window) types(keys string) {
	w.t.Helper()
	if _, err := w.keys.WriteString(keys); err != nil {
		w.t.Fatal(err)
	}
}

var (
	moves  = regexp.MustCompile(`\x1b\[[0-9;?]*[ABCDGHJKfdhlnrstu]|\x1b[78=>MDE]|\r`)
	styles = regexp.MustCompile(`\x1b\[[0-9;]*m|\x1b\][^\x07]*\x07`)
)

// text is what was written, with moves of the cursor as line breaks.
func (w *window) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return styles.ReplaceAllString(moves.ReplaceAllString(w.raw.String(), "\n"), "")
}

// await waits until something is written that was not looked at before.
func (w *window) await(what string) {
	w.t.Helper()
	over := time.After(patience)
	pattern := regexp.QuoteMeta(what)
	if strings.Contains(strings.TrimSpace(what), " ") { // the edge of the terminal may be between two words
		pattern = strings.ReplaceAll(pattern, " ", `\s+`)
	}
	wanted := regexp.MustCompile(pattern)
	for {
		w.mu.Lock()
		grew := w.grew
		w.mu.Unlock()
		text := w.text()
		if at := wanted.FindStringIndex(text[min(w.read, len(text)):]); at != nil {
			w.read += at[1]
			return
		}
		select {
		case <-grew:
		case <-w.gone:
			if text = w.text(); !wanted.MatchString(text[min(w.read, len(text)):]) {
				w.t.Fatalf("it ended before %q:\n%s", what, tail(w.text()))
			}
		case <-over:
			w.t.Fatalf("%q does not come:\n%s", what, tail(text))
		}
	}
}

func tail(s string) string { return s[max(0, len(s)-6000):] }

// enters types a line.
func (w *window) enters(line string) {
	w.t.Helper()
	w.types(line + "\r")
}

// leaves waits for the end, and returns the exit code.
func (w *window) leaves() int {
	w.t.Helper()
	select {
	case <-w.gone:
	case <-time.After(patience):
		w.t.Fatalf("it does not end:\n%s", tail(w.text()))
	}
	return w.cmd.ProcessState.ExitCode()
}

// quits leaves, and expects that all went well.
func (w *window) quits() {
	w.t.Helper()
	w.enters("/quit")
	if code := w.leaves(); code != 0 {
		w.t.Errorf("exit %d:\n%s", code, tail(w.text()))
	}
}

// kill ends the program as nothing else does.
func (w *window) kill() {
	w.t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	<-w.gone
}
