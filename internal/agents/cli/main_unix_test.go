//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
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

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/mindtest"
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

// open is a Mind of the stub with a process for each turn.
func open(t *testing.T, d agentOf, change ...func(*agent.Spec, *agent.Services)) *mindtest.Mind {
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
	return mindtest.New(t, func(tell func(event.Event)) (agent.Mind, error) {
		sv.Tell = tell
		return cli.TurnMind(d, s, sv)
	})
}
