//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

const stubName = "omniagent-cli-stub"

// TestMain lets the test binary be the guard and the agent. The agent goes by its name; what it does is the message.
func TestMain(m *testing.M) {
	hermetic.Signals()
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	if os.Args[0] == stubName {
		stub()
		os.Exit(0)
	}
	hermetic.InMemory()
	os.Exit(m.Run())
}

func line(e map[string]any) {
	data, _ := json.Marshal(e)
	_, _ = os.Stdout.Write(append(data, '\n'))
}

func forEver() {
	for {
		time.Sleep(time.Hour)
	}
}

// stub is the agent. Long because it is a table.
func stub() {
	if len(os.Args) > 1 && os.Args[1] == "live" {
		liveStub()
		return
	}
	data, _ := io.ReadAll(os.Stdin)
	word, rest, _ := strings.Cut(string(data), " ")
	session := "s1"
	for _, arg := range os.Args[1:] {
		if id, ok := strings.CutPrefix(arg, "--resume="); ok {
			session = id + "+"
		}
	}
	if word == "sleeper" || len(os.Args) > 1 && os.Args[1] == "sleeper" {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		forEver()
	}
	text := func(s string) { line(map[string]any{"kind": "text", "text": s, "session": session}) }
	end := func(reason string) { line(map[string]any{"kind": "end", "reason": reason}) }
	switch word {
	case "say":
		text(rest)
		end("done")
	case "began":
		line(map[string]any{"kind": "started", "session": session, "model": rest})
		end("done")
	case "args":
		text(strings.Join(os.Args[1:], " "))
		end("done")
	case "file":
		content, err := os.ReadFile(rest)
		text(fmt.Sprint(string(content), err))
		end("done")
	case "die":
		text("half")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		forEver()
	case "exit":
		_, _ = os.Stderr.WriteString(strings.Repeat("x", 100<<10) + "last words")
		code, _ := strconv.Atoi(rest)
		os.Exit(code)
	case "words":
		code, words, _ := strings.Cut(rest, " ")
		_, _ = os.Stderr.WriteString(words)
		status, _ := strconv.Atoi(code)
		os.Exit(status)
	case "garbage":
		_, _ = os.Stdout.WriteString("\x00\xff{{{\n\n[]\nnull\n" + `{"kind":"text","text":"half`)
	case "cut": // the last line has no end
		_, _ = os.Stdout.WriteString(`{"kind":"end","reason":"done"}`)
	case "huge":
		block := bytes.Repeat([]byte("x"), 1<<20)
		for range 4 {
			_, _ = os.Stdout.Write(block)
		}
		_, _ = os.Stdout.WriteString("\n")
		end("done")
	case "many":
		for i := range 2000 {
			text(strconv.Itoa(i))
		}
		end("done")
	case "twice":
		end("first")
		text("more")
		end("second")
		text("trailing")
	case "late":
		_, _ = os.Stdout.WriteString(`{"kind":"text","text":"told"}` + "\n" + `{"kind":"end","reason":"done"}` + "\n")
		forEver()
	case "stall":
		text("working")
		forEver()
	case "mute":
		forEver()
	case "breathe": // it says nothing but that it lives
		_, _ = os.Stderr.WriteString("starting")
		forEver()
	case "flood":
		for {
			text(strings.Repeat("flood ", 100))
		}
	case "family": // neither it nor its child hears a request to end
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
		child := exec.Command("/proc/self/exe")
		if self, err := os.Executable(); err == nil {
			child.Path = self
		}
		child.Args = []string{stubName, "sleeper"}
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: rest == "apart"}
		if err := child.Start(); err != nil {
			text(err.Error())
			return
		}
		text(fmt.Sprintf("%d %d", os.Getpid(), child.Process.Pid))
		forEver()
	}
}

// agentOf is a driver of the stub.
type agentOf struct {
	cli.Program
	silent bool // no stream is known of it
	limit  agent.Limit
	files  []agent.File
	by     agent.PromptBy
	rows   []agent.Row

	decoder func() agent.Decoder // nil: JSONLines
}

func (d agentOf) Matrix(string) agent.Matrix { return agent.Matrix{Limit: d.limit, Rows: d.rows} }

func (d agentOf) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	args := []string{"one", "--output=" + string(s.Shared.Output.Value)}
	if s.Resume != "" {
		args = append(args, "--resume="+s.Resume)
	}
	return agent.Launch{
		Path: s.Install.Path, Args: args, Env: s.Env, Dir: s.Dir, Files: d.files, Spec: s,
		Prompt: d.by, PromptAt: 1, PromptBare: true,
	}, nil, nil
}

func (d agentOf) Decode(o setting.Output) agent.Decoder {
	if d.silent || o != setting.StreamJSON {
		return nil
	}
	if d.decoder != nil {
		return d.decoder()
	}
	return &cli.JSONLines{Parse: parse}
}

func parse(data []byte) []event.Event {
	var l struct{ Kind, Text, Session, Reason, Model string }
	if data[0] != '{' || json.Unmarshal(data, &l) != nil {
		return cli.Unreadable(data)
	}
	e := event.Event{Kind: event.Kind(l.Kind), Text: l.Text, Session: l.Session, Model: l.Model}
	if e.Kind == event.Ended {
		e.End = &event.End{OK: true, Reason: l.Reason}
	}
	return []event.Event{e}
}

const soon = 2 * time.Minute // for what takes milliseconds

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

// mind is a Mind and what it has told.
type mind struct {
	agent.Mind
	mu      sync.Mutex
	events  []event.Event // not looked at yet
	changed chan struct{} // closed, and replaced, by each event
}

func (m *mind) tell(e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Raw = bytes.Clone(e.Raw)
	m.events = append(m.events, e)
	close(m.changed)
	m.changed = make(chan struct{})
}

// all are the events since the last look.
func (m *mind) all() []event.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := m.events
	m.events = nil
	return events
}

// next waits for an event.
func (m *mind) next(t *testing.T) event.Event {
	t.Helper()
	late := time.After(soon)
	for {
		m.mu.Lock()
		changed := m.changed
		if len(m.events) > 0 {
			e := m.events[0]
			m.events = m.events[1:]
			m.mu.Unlock()
			return e
		}
		m.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			t.Fatal("nothing was told")
		}
	}
}

// until waits for an event of that kind.
func (m *mind) until(t *testing.T, k event.Kind) event.Event {
	t.Helper()
	for {
		if e := m.next(t); e.Kind == k {
			return e
		}
	}
}

// turn is a whole turn.
func (m *mind) turn(t *testing.T, text string) []event.Event {
	t.Helper()
	if err := m.Turn(within(t), []event.Block{{Text: text}}); err != nil {
		t.Fatalf("%.40q: %v", text, err)
	}
	return m.all()
}

// going is a turn that runs.
type going struct {
	t         *testing.T
	mind      *mind
	interrupt context.CancelFunc
	ended     chan error
}

func (m *mind) begin(t *testing.T, text string) *going {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	t.Cleanup(cancel)
	g := &going{t, m, cancel, make(chan error, 1)}
	go func() { g.ended <- m.Turn(ctx, []event.Block{{Text: text}}) }()
	return g
}

// rest waits for the end of the turn.
func (g *going) rest() []event.Event {
	g.t.Helper()
	select {
	case err := <-g.ended:
		if err != nil {
			g.t.Fatal(err)
		}
	case <-time.After(soon):
		g.t.Fatal("the turn does not end")
	}
	return g.mind.all()
}

// open is a Mind of the stub with a process for each turn.
func open(t *testing.T, d agentOf, change ...func(*agent.Spec, *agent.Services)) *mind {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.Program = cli.Program{ID: "stub", About: agent.About{Title: "Stub", Binary: stubName}}
	s := agent.Spec{
		Install: agent.Install{Path: self}, Dir: t.TempDir(), Temp: t.TempDir(),
		Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"),
	}
	sv := agent.Services{Grace: 100 * time.Millisecond}
	for _, c := range change {
		c(&s, &sv)
	}
	m := &mind{changed: make(chan struct{})}
	sv.Tell = m.tell
	if m.Mind, err = cli.TurnMind(d, s, sv); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close(t))
	return m
}

func (m *mind) close(t *testing.T) func() {
	return func() {
		if _, err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// rest closes the Mind and returns what is left.
func rest(t *testing.T, m *mind) ([]event.Event, agent.Outcome) {
	t.Helper()
	o, err := m.Close(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return m.all(), o
}

func told(events []event.Event) string {
	var words []string
	for _, e := range events {
		word := string(e.Kind)
		if e.Text != "" {
			word += "=" + e.Text
		}
		if e.End != nil && e.End.Reason != "" {
			word += "=" + e.End.Reason
		}
		if e.Facts != nil && e.Kind == event.Changed {
			word += "=" + string(e.Facts.Mode) + e.Facts.Model
		}
		if e.Synthetic {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}
