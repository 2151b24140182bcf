package native_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/sys/process"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
)

// TestMain lets the test binary be what stands between walls and a command.
func TestMain(m *testing.M) {
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	if sandbox.IsStage(os.Args) {
		syscall.Exit(sandbox.Stage())
	}
	hermetic.InMemory()
	os.Exit(m.Run())
}

// desk is a place for conversations, with a scripted model.
type desk struct {
	dir, home string
	server    *modelserver.Server
	mu        sync.Mutex
	logged    []string
}

func newDesk(t *testing.T, script string) *desk {
	t.Helper()
	s, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(s, modelserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{dir: filepath.Join(top, "in"), home: filepath.Join(top, "home"), server: server}
	for _, dir := range []string{d.dir, d.home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *desk) options(t *testing.T, with func(*native.Options)) native.Options {
	t.Helper()
	choice, err := provider.Choose(provider.Options{
		Provider: "anthropic", Base: d.server.URL(),
		Model: "claude-sonnet-5-5", Home: d.home, Lookup: func(name string) (string, bool) {
			return "key-of-a-test", name == "ANTHROPIC_API_KEY"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := native.Options{
		Settings: native.Settings{Sandbox: "off", Walls: policy.Wanted{Home: d.home}},
		Choice:   choice, Dir: d.dir, Store: session.Default(d.home), Mode: setting.Prompt,
		Env: []string{"PATH=" + os.Getenv("PATH")},
		Log: func(format string, args ...any) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.logged = append(d.logged, fmt.Sprintf(format, args...))
		},
	}
	if with != nil {
		with(&o)
	}
	return o
}

// mind is a Mind with the session that it works with, and what it tells.
type mind struct {
	*native.Mind
	Kept *session.Session

	mu     sync.Mutex
	events []event.Event
}

// open keeps a session and opens a Mind that works with it. What it asks is agreed to.
func (d *desk) open(t *testing.T, with func(*native.Options)) *mind {
	t.Helper()
	m := &mind{}
	o := d.options(t, with)
	o.Services.Tell = func(e event.Event) {
		m.mu.Lock()
		m.events = append(m.events, e)
		m.mu.Unlock()
		if e.Kind == event.Question {
			_ = m.Answer(event.Reply{Question: e.Ask.ID, Option: event.Allow})
		}
	}
	var err error
	if o.Kept, err = native.Keep(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	m.Kept = o.Kept
	if m.Mind, err = native.Open(t.Context(), o); err != nil {
		_ = o.Kept.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { m.close(t) })
	return m
}

// close closes the Mind, and the session as its conversation would.
func (m *mind) close(t *testing.T) {
	t.Helper()
	if _, err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := m.Kept.Close(); err != nil {
		t.Error(err)
	}
}

// say has a message answered and returns what happens until its end.
func say(t *testing.T, m *mind, text string) []event.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m.mu.Lock()
	m.events = nil
	m.mu.Unlock()
	if err := m.Turn(ctx, []event.Block{{Text: text}}); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.events); n == 0 || m.events[n-1].Kind != event.Ended {
		t.Fatalf("%+v", m.events)
	}
	return m.events
}

func end(all []event.Event) *event.End { return all[len(all)-1].End }

func results(all []event.Event) string {
	var b strings.Builder
	for _, e := range all {
		if e.Kind == event.ToolResult {
			fmt.Fprintf(&b, "%s %v: %s\n", e.Result.Name, e.Result.Failed, e.Result.Output)
		}
	}
	return b.String()
}

// TestTheSessionIsTheCallers: it is open when the Mind is closed.
func TestTheSessionIsTheCallers(t *testing.T) {
	d := newDesk(t, `[{"say":"ok"}]`)
	m := d.open(t, nil)
	say(t, m, "go")
	if _, err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Kept.Append(session.Changed{Title: "still open"}); err != nil {
		t.Error(err)
	}
}
