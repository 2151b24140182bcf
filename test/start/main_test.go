package start

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
	"omniagent/internal/testkit/order"
)

// program is the built program.
var program string

func TestMain(m *testing.M) {
	hermetic.Signals()
	if len(os.Args) > 1 && os.Args[1] == "serve-mcp" {
		serveMCP()
		return
	}
	hermetic.AtOnce("4")
	os.Exit(measure.WithProgram("../..", func(file string) int {
		program = file
		return hermetic.Sample(m, "TestSecondSignal", "TestNestedPlan", "TestGrammarOfYume",
			"TestSnapshots", "TestXNLStream", "TestVerbose")
	}))
}

// place is a home and a workspace of one test.
type place struct {
	home, work string
	env        []string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{home: t.TempDir(), work: t.TempDir()}
	p.env = []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "USERPROFILE=" + p.home}
	return p
}

func (p place) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(p.work, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// await returns when the file is there.
func (p place) await(t *testing.T, name string) {
	t.Helper()
	for over := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.work, name)); err == nil {
			return
		} else if time.Now().After(over) {
			t.Fatalf("%s does not come", name)
		}
	}
}

// run runs another command of the program.
func (p place) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = p.env, p.work
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// running is the program at work.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer

	killed atomic.Bool // a line may be torn then

	mu    sync.Mutex
	lines []string
	grew  chan struct{}
	ended chan struct{}
}

// launch starts the program; every line that it prints is kept.
func (p place) launch(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	r := &running{t: t, grew: make(chan struct{}, 1), ended: make(chan struct{})}
	r.cmd = exec.Command(program, append([]string{"start", "--cwd", p.work}, args...)...)
	r.cmd.Env, r.cmd.Dir, r.cmd.Stderr = append(p.env, env...), p.home, &r.stderr
	var err error
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.ended })
	go func() {
		defer close(r.ended)
		data := make([]byte, 64<<10)
		var open []byte
		for {
			n, err := out.Read(data)
			open = append(open, data[:n]...)
			for {
				line, rest, found := bytes.Cut(open, []byte("\n"))
				if !found {
					break
				}
				r.mu.Lock()
				r.lines = append(r.lines, string(line))
				r.mu.Unlock()
				open = rest
			}
			select {
			case r.grew <- struct{}{}:
			default:
			}
			if err != nil {
				if len(open) > 0 && !r.killed.Load() {
					t.Errorf("half a line: %q", open)
				}
				_ = r.cmd.Wait()
				return
			}
		}
	}()
	return r
}

const patience = 30 * time.Second

// await returns when a line matches.
func (r *running) await(match func(line string) bool) {
	r.t.Helper()
	over := time.NewTimer(patience)
	defer over.Stop()
	for {
		r.mu.Lock()
		for _, line := range r.lines {
			if match(line) {
				r.mu.Unlock()
				return
			}
		}
		r.mu.Unlock()
		select {
		case <-r.grew:
		case <-r.ended:
			r.mu.Lock()
			found := false
			for _, line := range r.lines {
				found = found || match(line)
			}
			r.mu.Unlock()
			if !found {
				r.t.Fatalf("it ended without the line that was awaited:\n%s\n%s", strings.Join(r.lines, "\n"),
					r.stderr.String())
			}
			return
		case <-over.C:
			r.t.Fatalf("the line that was awaited does not come:\n%s", strings.Join(r.all(), "\n"))
		}
	}
}

func (r *running) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// end closes standard input, waits, and returns the messages and the exit code. Every stream is held against the rules.
func (r *running) end() ([]map[string]any, int) {
	r.t.Helper()
	_ = r.stdin.Close()
	return r.wait()
}

func (r *running) wait() ([]map[string]any, int) {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Fatalf("it does not end:\n%s\n%s", strings.Join(r.all(), "\n"), r.stderr.String())
	}
	var messages []map[string]any
	for _, line := range r.lines {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			r.t.Errorf("no JSON: %q: %v", line, err)
			continue
		}
		messages = append(messages, m)
	}
	// whose lines have an order of their own
	if err := order.Flat(r.lines); err != nil && !slices.Contains(r.cmd.Args, "claude") {
		r.t.Errorf("%v\n%s", err, strings.Join(r.lines, "\n"))
	}
	return messages, r.cmd.ProcessState.ExitCode()
}

// say writes a frame.
func (r *running) say(frame string) {
	r.t.Helper()
	if _, err := io.WriteString(r.stdin, frame+"\n"); err != nil && !errors.Is(err, os.ErrClosed) {
		r.t.Logf("a frame was not taken: %v", err)
	}
}

// reply is one answer of an API, byte for byte.
type reply struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	SSE     []string          `json:"sse"`
	Then    string            `json:"then"` // close, hang
}

// api answers requests with one reply after the other; the last one stays.
type api struct {
	*httptest.Server

	mu       sync.Mutex
	requests []string
}

func serve(t *testing.T, replies []reply) *api {
	t.Helper()
	a := &api{}
	quit := make(chan struct{})
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		a.mu.Lock()
		n := len(a.requests)
		a.requests = append(a.requests, q.URL.String()+"\n"+string(body))
		a.mu.Unlock()
		if len(replies) == 0 {
			http.Error(w, "nothing is served here", http.StatusNotFound)
			return
		}
		r := replies[min(n, len(replies)-1)]
		for name, value := range r.Headers {
			w.Header().Set(name, value)
		}
		if r.SSE != nil {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		w.WriteHeader(r.Status)
		_, _ = io.WriteString(w, r.Body)
		for _, payload := range r.SSE {
			_, _ = io.WriteString(w, "data: "+payload+"\n\n")
			w.(http.Flusher).Flush()
		}
		switch r.Then {
		case "hang":
			w.(http.Flusher).Flush()
			select {
			case <-quit:
			case <-q.Context().Done():
			}
		case "close":
			panic(http.ErrAbortHandler)
		}
	}))
	a.Server.Config.ErrorLog = nil
	t.Cleanup(func() { close(quit); a.CloseClientConnections(); a.Close() })
	return a
}

func (a *api) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.requests...)
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}
