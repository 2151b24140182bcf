//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/process"
	"omniagent/internal/setting"
)

const stubName = "omniagent-cli-stub"

// TestMain lets the test binary be the guard and the agent. The agent goes by its name; what it does is the message.
func TestMain(m *testing.M) {
	if process.IsGuard(os.Args) {
		os.Exit(process.Guard())
	}
	if os.Args[0] == stubName {
		stub()
		os.Exit(0)
	}
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
	end := func(reason string) { line(map[string]any{"kind": "ended", "reason": reason}) }
	switch word {
	case "say":
		text(rest)
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
		_, _ = os.Stdout.WriteString(`{"kind":"ended","reason":"done"}`)
	case "huge":
		block := bytes.Repeat([]byte("x"), 1<<20)
		for range 16 {
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
		_, _ = os.Stdout.WriteString(`{"kind":"text","text":"told"}` + "\n" + `{"kind":"ended","reason":"done"}` + "\n")
		forEver()
	case "stall":
		text("working")
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
}

func (d agentOf) Matrix(string) agent.Matrix { return agent.Matrix{Limit: d.limit} }

func (d agentOf) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	args := []string{"one", "--output=" + string(s.Shared.Output.Value)}
	if s.Resume != "" {
		args = append(args, "--resume="+s.Resume)
	}
	return agent.Launch{Path: s.Install.Path, Args: args, Env: s.Env, Dir: s.Dir, Files: d.files, Prompt: d.by, PromptAt: 1, PromptBare: true, Spec: s}, nil, nil
}

func (d agentOf) Decode(o setting.Output) agent.Decoder {
	if d.silent || o != setting.StreamJSON {
		return nil
	}
	return &cli.JSONLines{Parse: parse}
}

func parse(data []byte) []event.Event {
	var l struct{ Kind, Text, Session, Reason string }
	if data[0] != '{' || json.Unmarshal(data, &l) != nil {
		return cli.Unreadable(data)
	}
	e := event.Event{Kind: event.Kind(l.Kind), Text: l.Text, Session: l.Session}
	if e.Kind == event.Ended {
		e.End = &event.End{OK: true, Reason: l.Reason}
	}
	return []event.Event{e}
}

const soon = 30 * time.Second // for what takes milliseconds

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, d agentOf) agent.Session {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.Program = cli.Program{ID: "stub", About: agent.About{Title: "Stub", Binary: stubName}}
	s, err := cli.Open(t.Context(), d, agent.Spec{
		Install: agent.Install{Path: self}, Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), Dir: t.TempDir(), Temp: t.TempDir(),
	}, agent.Services{Grace: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func send(t *testing.T, s agent.Session, text string) {
	t.Helper()
	if err := s.Send(within(t), []event.Block{{Text: text}}); err != nil {
		t.Fatalf("%.40q: %v", text, err)
	}
}

// turn reads to the end of a turn. After it nothing of the turn may come, and the next message can be sent.
func turn(t *testing.T, s agent.Session) (events []event.Event) {
	t.Helper()
	for {
		e := next(t, s)
		events = append(events, e)
		if e.Kind == event.Ended {
			return events
		}
	}
}

func next(t *testing.T, s agent.Session) event.Event {
	t.Helper()
	e, err := s.Next(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rest closes the session and reads what is left.
func rest(t *testing.T, s agent.Session) (events []event.Event, o agent.Outcome) {
	t.Helper()
	o, err := s.Close(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := s.Next(within(t))
		if errors.Is(err, io.EOF) {
			return events, o
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
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
		if e.Synthetic {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}
