//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
)

// liveStub is an agent that stays. Each line that it reads is a word and what belongs to it.
func liveStub() {
	in := bufio.NewReader(os.Stdin)
	session := "s1"
	for _, arg := range os.Args[2:] {
		if id, ok := strings.CutPrefix(arg, "--resume="); ok {
			session = id + "+"
		}
	}
	say := func(kind, text string) { line(map[string]any{"kind": kind, "text": text, "session": session}) }
	end := func(reason string) { line(map[string]any{"kind": "ended", "reason": reason, "session": session}) }
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			return
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
		switch word {
		case "say":
			say("text", rest)
			end("done")
		case "args":
			say("text", strings.Join(os.Args[1:], " "))
			end("done")
		case "pid":
			say("text", strconv.Itoa(os.Getpid()))
			end("done")
		case "die":
			say("text", "half")
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			forEver()
		case "exit":
			say("text", "half")
			_, _ = os.Stderr.WriteString("last words")
			os.Exit(7)
		case "garbage":
			_, _ = os.Stdout.WriteString("\x00\xff{{{\n[]\n")
			end("done")
		case "silence":
			forEver()
		case "deaf": // it hears no interruption
			say("text", "working")
			forEver()
		case "slow": // until it is interrupted
			say("text", "working")
			if text, _ = in.ReadString('\n'); text == "interrupt\n" {
				end("interrupted")
			}
		case "ask":
			line(map[string]any{"kind": "question", "text": "q" + rest, "session": session})
			text, _ = in.ReadString('\n')
			say("text", strings.TrimSuffix(text, "\n"))
			end("done")
		case "call": // and asks only when it is told to go on
			line(map[string]any{"kind": "tool-call", "text": rest})
			_, _ = in.ReadString('\n')
			line(map[string]any{"kind": "set"})
			line(map[string]any{"kind": "question", "text": "q1", "call": rest})
			text, _ = in.ReadString('\n')
			say("text", strings.TrimSuffix(text, "\n"))
			end("done")
		case "withdraw":
			line(map[string]any{"kind": "question", "text": "q1", "session": session})
			line(map[string]any{"kind": "withdrawn", "text": "q1", "session": session})
			end("done")
		case "twice": // something wakes it
			end("done")
			say("text", "woken")
			end("woken")
		case "leave":
			end("done")
			os.Exit(0)
		case "flood":
			for range 20_000 {
				say("text", "x")
			}
			end("done")
		case "family":
			child := exec.Command("/proc/self/exe")
			child.Args = []string{stubName, "sleeper"}
			if self, err := os.Executable(); err == nil {
				child.Path = self
			}
			_ = child.Start()
			say("text", strconv.Itoa(os.Getpid())+" "+strconv.Itoa(child.Process.Pid))
			end("done")
		case "set":
			if rest == "odd" {
				line(map[string]any{"kind": "refused"})
			} else {
				line(map[string]any{"kind": "set"})
			}
		}
	}
}

// wire is the stub's.
type wire struct {
	lines cli.JSONLines
	step  cli.Step
	open  bool
	token int
}

func newWire(agent.Spec) cli.Proto {
	w := &wire{}
	w.lines.Parse = func(data []byte) []event.Event {
		var l struct{ Kind string }
		_ = json.Unmarshal(data, &l)
		switch l.Kind {
		case "set":
			w.step.Settled = append(w.step.Settled, cli.Settled{Token: w.token})
			return nil
		case "refused":
			w.step.Settled = append(w.step.Settled, cli.Settled{Token: w.token, Err: fault.New(fault.Unsupported, "odd")})
			return nil
		}
		var more struct{ Call string }
		_ = json.Unmarshal(data, &more)
		events := parse(data)
		for i := range events {
			e := &events[i]
			if e.Kind == event.Question || e.Kind == event.Withdrawn {
				e.Ask = &event.Ask{ID: e.Text, Options: []string{"allow", "deny"}}
				if more.Call != "" {
					e.Ask.Tool = &event.Call{ID: more.Call}
				}
			}
			if e.Kind == event.ToolCall {
				e.Call = &event.Call{ID: e.Text}
			}
			if e.Kind == event.Ended {
				e.Unasked = !w.open
				w.open = false
			}
		}
		return events
	}
	return w
}

func (w *wire) Begin() cli.Step { return cli.Step{} }
func (w *wire) Feed(p []byte) cli.Step {
	w.step.Events = w.lines.Feed(p)
	step := w.step
	w.step = cli.Step{}
	return step
}

func (w *wire) Do(c cli.Command) (cli.Step, error) {
	var text string
	switch {
	case c.Message != nil:
		text, w.open = c.Message[0].Text, true
	case c.Answer != nil:
		text = c.Answer.Option + " " + c.Answer.Text
	case c.Interrupt:
		text = "interrupt"
	case c.Change != nil:
		text, w.token = "set "+string(c.Change.Mode), c.Token
	}
	return cli.Step{Lines: [][]byte{[]byte(text + "\n")}}, nil
}

func (w *wire) End(x agent.Exit) []event.Event {
	if !w.open {
		return nil
	}
	return w.lines.End(x)
}
func (w *wire) Know(*event.Facts) {}

func openLive(t *testing.T, sv agent.Services, patience time.Duration) agent.Session {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if sv.Grace == 0 {
		sv.Grace = 100 * time.Millisecond
	}
	s, err := cli.OpenLive(t.Context(), cli.Live{
		Driver: agentOf{Program: cli.Program{ID: "stub", About: agent.About{Title: "Stub", Binary: stubName}}},
		Launch: func(s agent.Spec) (agent.Launch, error) {
			args := []string{"live"}
			if s.Resume != "" {
				args = append(args, "--resume="+s.Resume)
			}
			if s.Terms.Mode == "never" {
				return agent.Launch{}, fault.New(fault.Unsupported, "never")
			}
			return agent.Launch{Path: self, Args: args, Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), Dir: s.Dir, Spec: s}, nil
		},
		Proto: newWire, Patience: patience,
	}, agent.Spec{Dir: t.TempDir(), Temp: t.TempDir()}, sv)
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

func asking() agent.Services { return agent.Services{CanAsk: true} }

// TestOneProcess: many turns live in one, and messages wait for one another.
func TestOneProcess(t *testing.T) {
	s := openLive(t, asking(), 0)
	send(t, s, "pid")
	first := turn(t, s)[0].Text
	send(t, s, "pid")
	send(t, s, "say two")
	send(t, s, "say three")
	if second := turn(t, s)[0].Text; second != first || first == "" {
		t.Errorf("%s, then %s", first, second)
	}
	for _, want := range []string{"two", "three"} {
		if got := told(turn(t, s)); got != "text="+want+"; end=done" {
			t.Error(got)
		}
	}
	if s.ID() != "s1" {
		t.Errorf("id %q", s.ID())
	}
	began := time.Now()
	left, o := rest(t, s)
	if len(left) != 0 || o.Exit.ByUs != "" || o.Exit.Code != 0 || time.Since(began) > soon/2 {
		t.Errorf("%s, %+v", told(left), o)
	}
	if err := s.Send(t.Context(), []event.Block{{Text: "say x"}}); err == nil {
		t.Error("a closed session takes a message")
	}
}

// TestDeaths: a process that ends takes its turn with it, truthfully, and the next message starts it anew with the session it had.
func TestDeaths(t *testing.T) {
	for message, want := range map[string]string{"die": "SIGKILL", "exit": "exit code 7"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			s := openLive(t, asking(), 0)
			send(t, s, message)
			events := turn(t, s)
			if got := told(events); got != "text=half; failed!; end=the agent ended without a result!" {
				t.Error(got)
			}
			if f := events[1].Fault; f == nil || !strings.Contains(f.Message, want) || f.Code != fault.AgentFailed {
				t.Errorf("%v", f)
			}
			send(t, s, "args")
			if got := told(turn(t, s)); got != "text=live --resume=s1; end=done" {
				t.Error(got)
			}
			if s.ID() != "s1+" {
				t.Error(s.ID())
			}
		})
	}
	s := openLive(t, asking(), 0)
	send(t, s, "leave")
	turn(t, s)
	if e := next(t, s); e.Kind != event.Notice || !e.Synthetic {
		t.Errorf("%+v", e)
	}
	send(t, s, "say again")
	if got := told(turn(t, s)); got != "text=again; end=done" {
		t.Error(got)
	}
}

func TestGarbageAndWaking(t *testing.T) {
	s := openLive(t, asking(), 0)
	send(t, s, "garbage")
	if got := told(turn(t, s)); got != "notice=a line that cannot be read; notice=a line that cannot be read; end=done" {
		t.Error(got)
	}
	send(t, s, "twice")
	if events := turn(t, s); told(events) != "end=done" || events[0].Unasked {
		t.Error(told(events))
	}
	if events := turn(t, s); told(events) != "text=woken; end=woken" || !events[1].Unasked {
		t.Error(told(events))
	}
}

func TestQuestions(t *testing.T) {
	s := openLive(t, asking(), 0)
	send(t, s, "ask 1")
	if q := next(t, s); q.Kind != event.Question || q.Ask.ID != "q1" {
		t.Fatalf("%+v", q)
	}
	if err := s.Answer(t.Context(), "q2", event.Reply{Option: "allow"}); !errors.Is(err, fault.NotFoundCode) {
		t.Error(err)
	}
	if err := s.Answer(t.Context(), "q1", event.Reply{Option: "allow", Text: "yes"}); err != nil {
		t.Error(err)
	}
	if got := told(turn(t, s)); got != "text=allow yes; end=done" {
		t.Error(got)
	}
	if err := s.Answer(t.Context(), "q1", event.Reply{Option: "allow"}); !errors.Is(err, fault.NotFoundCode) {
		t.Error(err)
	}
	send(t, s, "call c1")
	next(t, s)
	if err := s.Answer(t.Context(), "c1", event.Reply{Option: "allow", Text: "early"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(within(t), agent.Change{Mode: setting.Plan}); err != nil { // it goes on with that
		t.Fatal(err)
	}
	if got := told(turn(t, s)); got != "changed; question=q1; text=allow early; end=done" {
		t.Error(got)
	}
	send(t, s, "withdraw")
	if got := told(turn(t, s)); got != "question=q1; withdrawn; end=done" {
		t.Error(got)
	}
	send(t, s, "ask 3")
	next(t, s)
	s.(interface{ NobodyAnswers() }).NobodyAnswers()
	if got := told(turn(t, s)); got != "text=deny nobody can answer any more; end=done" {
		t.Error(got)
	}
	send(t, s, "ask 4")
	if got := told(turn(t, s)); got != "text=deny it needs approval, and nobody can be asked; end=done" {
		t.Error(got)
	}
	late := openLive(t, asking(), 20*time.Millisecond)
	send(t, late, "ask 5")
	if got := told(turn(t, late)); got != "question=q5; withdrawn!; text=deny nobody answered within 20ms; end=done" {
		t.Error(got)
	}
}

func TestInterruptions(t *testing.T) {
	for _, message := range []string{"slow", "deaf", "silence"} {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			s := openLive(t, asking(), 0)
			send(t, s, message)
			send(t, s, "say waits")
			if message != "silence" {
				next(t, s)
			}
			if err := s.Interrupt(within(t)); err != nil {
				t.Fatal(err)
			}
			events := append(turn(t, s), turn(t, s)...)
			got, want := told(events), "end=interrupted; end=interrupted!"
			if message != "slow" {
				want = "failed!; end=the agent ended without a result!; end=interrupted!"
				if f := events[0].Fault; f == nil || f.Code != fault.Interrupted {
					t.Errorf("%v", f)
				}
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			send(t, s, "say again")
			if got := told(turn(t, s)); got != "text=again; end=done" {
				t.Error(got)
			}
			if err := s.Interrupt(within(t)); err != nil {
				t.Errorf("nothing runs: %v", err)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	s := openLive(t, asking(), 0)
	set := func(m setting.Approval) error { return s.Set(within(t), agent.Change{Mode: m}) }
	if err := set("never"); !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	if err := set(setting.Yolo); err != nil || s.Facts().Mode != setting.Yolo {
		t.Error(err, s.Facts().Mode)
	}
	send(t, s, "say x")
	if got := told(turn(t, s)); got != "changed; text=x; end=done" {
		t.Error(got)
	}
	if err := set("odd"); !errors.Is(err, fault.Unsupported) || s.Facts().Mode != setting.Yolo {
		t.Error(err, s.Facts().Mode)
	}
	if err := set(setting.Plan); err != nil || s.Facts().Mode != setting.Plan {
		t.Error(err, s.Facts().Mode)
	}
	if e := next(t, s); e.Kind != event.Changed || e.Facts.Mode != setting.Plan || e.Facts.Model != "" {
		t.Errorf("%+v", e)
	}
	if err := set(setting.Plan); err != nil { // it is asked, and there is nothing to tell
		t.Error(err)
	}
	send(t, s, "say y")
	if got := told(turn(t, s)); got != "text=y; end=done" {
		t.Error(got)
	}
}

// TestSlowListener: an agent that tells more than is heard has to wait, and nothing is lost.
func TestSlowListener(t *testing.T) {
	s := openLive(t, asking(), 0)
	send(t, s, "flood")
	time.Sleep(50 * time.Millisecond) // nobody listens
	if events := turn(t, s); len(events) != 20_001 {
		t.Errorf("%d events", len(events))
	}
	s = openLive(t, asking(), 0)
	send(t, s, "flood")
	next(t, s)
	if _, err := s.Close(within(t)); err != nil { // and it can be closed all the same
		t.Error(err)
	}
	ends := 0
	for {
		e, err := s.Next(within(t))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.Ended && !e.Unasked {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%d ends", ends)
	}
}

func TestFamilyEndsWithTheSession(t *testing.T) {
	s := openLive(t, asking(), 0)
	send(t, s, "family")
	pids := strings.Fields(turn(t, s)[0].Text)
	rest(t, s)
	for _, word := range pids {
		pid, _ := strconv.Atoi(word)
		if err := syscall.Kill(pid, 0); len(pids) != 2 || !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%d is alive: %v", pid, err)
		}
	}
}

func TestLiveMessages(t *testing.T) {
	s := openLive(t, asking(), 0)
	if err := s.Send(t.Context(), []event.Block{{Text: " "}}); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
	if err := s.Send(t.Context(), []event.Block{{Media: "image/png", Data: bytes.Repeat([]byte("x"), 10)}}); err != nil {
		t.Error(err)
	}
}
