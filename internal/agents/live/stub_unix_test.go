//go:build unix

package live_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/mindtest"
)

const stubName = "omniagent-live-stub"

const failedTurn = "end=" + event.FailedTurn + "!"

// TestMain lets the test binary be the guard and the agent.
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

// stub is an agent that stays. Each line that it reads is a word and what belongs to it. Long because it is a
// table.
func stub() {
	in := bufio.NewReader(os.Stdin)
	if len(os.Args) > 1 && os.Args[1] == "sleeper" {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		forEver()
	}
	session, late, lingers := "s1", "", false
	for _, arg := range os.Args[1:] {
		if id, ok := strings.CutPrefix(arg, "--resume="); ok {
			session = id + "+"
		}
	}
	read := func() string { text, _ := in.ReadString('\n'); return strings.TrimSuffix(text, "\n") }
	say := func(kind, text string) { line(map[string]any{"kind": kind, "text": text, "session": session}) }
	end := func(reason string) { line(map[string]any{"kind": "end", "reason": reason, "session": session}) }
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			if lingers {
				forEver()
			}
			return
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
		switch word {
		case "hello":
			switch rest = os.Getenv("STUB_GREETS"); rest {
			case "mute":
				forEver()
			case "noise": // it talks, but does not answer
				say("notice", "noise")
				forEver()
			}
			say("ready", "")
		case "say":
			if late != "" {
				line(map[string]any{"kind": "set"})
				late = ""
			}
			say("text", rest)
			end("done")
		case "args":
			say("text", strings.Join(os.Args[1:], " "))
			end("done")
		case "pid":
			say("text", strconv.Itoa(os.Getpid()))
			end("done")
		case "began":
			say("started", rest)
			end("done")
		case "plan": // it changes its mode by itself
			say("plan", "")
			end("done")
		case "facts":
			say("facts", rest)
			say("text", "behind")
			end("done")
		case "die":
			say("text", "half")
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			forEver()
		case "exit":
			say("text", "half")
			_, _ = os.Stderr.WriteString("last words")
			os.Exit(7)
		case "cut": // its last word has no end of a line
			_, _ = os.Stdout.WriteString(`{"kind":"end","reason":"done"}`)
			os.Exit(0)
		case "garbage":
			_, _ = os.Stdout.WriteString("\x00\xff{{{\n[]\n")
			end("done")
		case "silence":
			_ = os.WriteFile(rest, nil, 0o600)
			forEver()
		case "stubborn": // it ignores signals as well
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
			say("text", "working")
			forEver()
		case "deaf": // it ignores interruptions
			say("text", "working")
			forEver()
		case "slow": // until it is interrupted
			say("text", "working")
			if read() == "interrupt" {
				end("interrupted")
			}
		case "ask":
			say("question", "q"+rest)
			say("text", read())
			end("done")
		case "withdraw":
			say("question", "q1")
			say("withdrawn", "q1")
			end("done")
		case "leaves": // a question open
			say("question", "q1")
			os.Exit(3)
		case "twice": // something wakes it
			end("done")
			say("turn", "")
			say("text", "woken")
			end("woken")
		case "wakes": // and works on
			end("done")
			say("turn", "")
			forEver()
		case "linger": // it ignores the end of its input
			lingers = true
			end("done")
		case "leave":
			end("done")
			os.Exit(0)
		case "flood":
			for range 20_000 {
				say("text", "x")
			}
			_ = os.WriteFile(rest, nil, 0o600)
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
		case "work": // messages may come in between
			say("text", "working")
			for text = read(); text != "steer over"; text = read() {
				said, missed := strings.CutPrefix(text, "steer missed ")
				if missed {
					line(map[string]any{"kind": "refused"})
					continue
				}
				line(map[string]any{"kind": "set"})
				say("text", strings.TrimPrefix(said, "steer "))
			}
			line(map[string]any{"kind": "set"})
			end("done")
		case "set":
			switch rest {
			case "odd":
				line(map[string]any{"kind": "refused"})
			case "late":
				late = rest
			default:
				line(map[string]any{"kind": "set"})
			}
		}
	}
}

// wire is the stub's.
type wire struct {
	lines cli.JSONLines
	step  live.Step
	ready bool
	open  bool
	model string
	mode  setting.Approval
	dumb  bool // it has no word for an interruption

	tokens []int // of what waits for an answer
}

func newWire() *wire {
	w := &wire{}
	w.lines.Parse = w.parse
	return w
}

func (w *wire) settle(err error) {
	if len(w.tokens) > 0 {
		w.step.Results = append(w.step.Results, live.CommandResult{Token: w.tokens[0], Err: err})
		w.tokens = w.tokens[1:]
	}
}

func (w *wire) parse(data []byte) []event.Event {
	var l struct{ Kind, Text, Session, Reason string }
	_ = json.Unmarshal(data, &l)
	switch l.Kind {
	case "ready":
		w.ready = true
		return nil
	case "set":
		w.settle(nil)
		return nil
	case "refused":
		w.settle(fault.New(fault.Unsupported, "odd"))
		return nil
	case "facts":
		w.model = l.Text
		return nil
	case "plan":
		w.mode = setting.Plan
		return nil
	case "started":
		w.model = l.Text
	}
	if data[0] != '{' || !json.Valid(data) {
		return cli.Unreadable(data)
	}
	e := event.Event{Kind: event.Kind(l.Kind), Text: l.Text, Session: l.Session}
	switch e.Kind {
	case event.Question, event.Withdrawn:
		e.Ask = &event.Ask{ID: e.Text, Options: []string{"allow", "deny"}, Tool: &event.Call{ID: "c1"}}
	case event.Ended:
		e.End = &event.End{OK: true, Reason: l.Reason}
		e.Unprompted = !w.open
		w.open = false
	}
	return []event.Event{e}
}

func (w *wire) Begin() live.Step { return live.Step{Lines: [][]byte{[]byte("hello\n")}} }
func (w *wire) Ready() bool      { return w.ready }
func (w *wire) Feed(p []byte) live.Step {
	w.step.Events = w.lines.Feed(p)
	step := w.step
	w.step = live.Step{}
	return step
}

func (w *wire) Do(c live.Command) (live.Step, error) {
	var text string
	switch {
	case c.Message != nil:
		text, w.open = c.Message[0].Text, true
	case c.Steer != nil:
		text = "steer " + c.Steer[0].Text
		w.tokens = append(w.tokens, c.Token)
	case c.Answer != nil:
		if !strings.HasPrefix(c.Answer.Question, "q") {
			return live.Step{}, fault.New(fault.NotFoundCode, "there is no open question %s", c.Answer.Question)
		}
		text = c.Answer.Option + " " + c.Answer.Text
	case c.Interrupt && w.dumb:
		return live.Step{}, fault.New(fault.Unsupported, "there is no word for it")
	case c.Interrupt:
		text = "interrupt"
	case c.Change != nil && c.Change.Mode == setting.AskAll:
		return live.Step{}, agent.ErrRestart
	case c.Change != nil:
		text = "set " + string(c.Change.Mode) + c.Change.Model
		w.tokens = append(w.tokens, c.Token)
	}
	return live.Step{Lines: [][]byte{[]byte(text + "\n")}}, nil
}

// End adds an end of its own, also behind one that the last line had.
func (w *wire) End(agent.Exit) []event.Event {
	open := w.open
	events := w.lines.Feed([]byte("\n"))
	if open {
		events = append(events, event.Event{
			Kind: event.Ended, Synthetic: true, End: &event.End{Reason: event.FailedTurn},
		})
	}
	return events
}

func (w *wire) AddFacts(f *event.Facts) {
	f.Model, f.Mode = cmp.Or(w.model, f.Model), cmp.Or(w.mode, f.Mode)
}

// openStub opens a Mind of the stub with one process.
func openStub(t *testing.T, change ...func(*agent.Spec, *agent.Services)) *mindtest.Mind {
	return openWire(t, newWire, change...)
}

func openWire(t *testing.T, wire func() *wire, change ...func(*agent.Spec, *agent.Services)) *mindtest.Mind {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := agent.Spec{Dir: t.TempDir(), Temp: t.TempDir(), Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0")}
	sv := agent.Services{CanAsk: true, Grace: 100 * time.Millisecond}
	for _, c := range change {
		c(&s, &sv)
	}
	a := live.Agent{
		Driver:    cli.Program{ID: "stub", About: agent.About{Title: "Stub", Binary: stubName}},
		Abilities: agent.Abilities{Steer: true},
		Launch: func(s agent.Spec) (agent.Launch, error) {
			var args []string
			if s.Resume != "" {
				args = append(args, "--resume="+s.Resume)
			}
			if s.Terms.Mode != "" {
				args = append(args, "--mode="+string(s.Terms.Mode))
			}
			if s.Shared.Model.Value != "" {
				args = append(args, "--model="+s.Shared.Model.Value)
			}
			if s.Terms.Mode == "never" {
				return agent.Launch{}, fault.New(fault.Unsupported, "never")
			}
			return agent.Launch{Path: self, Args: args, Env: s.Env, Dir: s.Dir, Spec: s}, nil
		},
		Proto: func(agent.Spec, agent.Launch) live.Proto { return wire() },
	}
	return mindtest.New(t, func(tell func(event.Event)) (agent.Mind, error) {
		sv.Tell = tell
		return live.NewMind(a, s, sv)
	})
}
