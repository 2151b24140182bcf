//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/testkit/mindtest"
)

const failedTurn = "end=" + event.FailedTurn + "!"

// TestTurns: one process a turn, which resumes the session of the one before.
func TestTurns(t *testing.T) {
	m := open(t, agentOf{})
	session := ""
	for i, want := range []string{"", " --resume=s1", " --resume=s1+"} {
		events := m.WholeTurn(t, "args")
		if got := mindtest.Story(events); got != "text=one --output=stream-json"+want+"; end=done" {
			t.Errorf("turn %d: %s", i, got)
		}
		session = events[len(events)-1].Session
	}
	if session != "s1++" {
		t.Errorf("session %q", session)
	}
	left, o := m.End(t)
	if len(left) != 0 || o.Exit.Code != 0 || o.Exit.EndedBy != "" {
		t.Errorf("%s, %+v", mindtest.Story(left), o)
	}
	if err := m.Turn(t.Context(), []event.Block{{Text: "say x"}}); err == nil {
		t.Error("a closed Mind takes a message")
	}
}

func TestResumedFromTheStart(t *testing.T) {
	m := open(t, agentOf{}, func(s *agent.Spec, _ *agent.Services) { s.Resume = "old" })
	if got := mindtest.Story(m.WholeTurn(t, "args")); !strings.Contains(got, "--resume=old") {
		t.Error(got)
	}
	if _, err := cli.TurnMind(agentOf{}, agent.Spec{}, agent.Services{}); !errors.Is(err, fault.Internal) {
		t.Errorf("without a private directory: %v", err)
	}
}

// TestEnds: whatever the agent does, one Ended comes, and it comes last.
func TestEnds(t *testing.T) {
	tests := []struct {
		message, want string
		code          int
		signal        string
	}{
		{"die now", "text=half; failed!; " + failedTurn, -1, "SIGKILL"},
		{"exit 7", "failed!; " + failedTurn, 7, ""},
		{"exit 0", "failed!; " + failedTurn, 0, ""},
		{"garbage", strings.Repeat("notice=a line that cannot be read; ", 4) + "failed!; " + failedTurn, 0, ""},
		{"cut", "end=done", 0, ""},
		{"twice", "text=more; notice=the agent continued after an end; text=trailing; end=second", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.message, func(t *testing.T) {
			t.Parallel()
			m := open(t, agentOf{})
			events := m.WholeTurn(t, tt.message)
			left, o := m.End(t)
			if got := mindtest.Story(append(events, left...)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if o.Exit.Code != tt.code || o.Exit.Signal != tt.signal || o.Exit.EndedBy != "" {
				t.Errorf("%+v", o.Exit)
			}
			whole := len(o.Exit.Stderr) == 64<<10 && bytes.HasSuffix(o.Exit.Stderr, []byte("xlast words"))
			if strings.HasPrefix(tt.message, "exit") && !whole {
				t.Errorf("%d bytes of stderr", len(o.Exit.Stderr))
			}
		})
	}
}

// concluding is a decoder that adds an end of its own, whatever the agent has said.
type concluding struct{ cli.JSONLines }

func (d *concluding) End(agent.Exit) []event.Event {
	return []event.Event{{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: "ours"}}}
}

// TestTheAgentHasTheLastWord: an end that we conclude never replaces what the agent has said.
func TestTheAgentHasTheLastWord(t *testing.T) {
	m := open(t, agentOf{decoder: func() agent.Decoder { return &concluding{cli.JSONLines{Parse: parse}} }})
	if got := mindtest.Story(m.WholeTurn(t, "say x")); got != "text=x; end=done" {
		t.Error(got)
	}
	if got := mindtest.Story(m.WholeTurn(t, "many")); !strings.HasSuffix(got, "; end=done") {
		t.Error(got)
	}
	if got := mindtest.Story(m.WholeTurn(t, "exit 1")); got != "failed!; end=ours!" {
		t.Error(got)
	}
}

// TestLastWords: a turn without a result ends with what the agent said on standard error, without secrets and not at
// length.
func TestLastWords(t *testing.T) {
	const noise = "some noise\nthe\tdisk \x1b[31mis full\x1b[0m, token=ghp_0123456789012345678901234567890123456\n" +
		"   at main.js:1\n"
	for message, want := range map[string]string{
		"words 1 " + noise: "the agent ended with exit code 1: " +
			"some noise; the disk is full, token=[REDACTED]",
		"words 7 key of-the-environment-0123\n": "the agent ended with exit code 7: key [REDACTED]",
		"words 0 ":                              "the agent ended without a result",
		"words 1 " + strings.Repeat("é", 1000):  "the agent ended with exit code 1: …" + strings.Repeat("é", 150),
	} {
		t.Setenv("STUB_API_KEY", "of-the-environment-0123")
		m := open(t, agentOf{})
		events := m.WholeTurn(t, message)
		f := events[0].Fault
		if len(events) != 2 || f == nil || f.Message != want || f.Code != fault.AgentFailed || !events[0].Terminal {
			t.Errorf("%s\n%s: %+v", message, mindtest.Story(events), f)
		}
	}
}

func TestHugeLineAndOrder(t *testing.T) {
	m := open(t, agentOf{})
	events := m.WholeTurn(t, "huge")
	if len(events) != 2 || events[0].Kind != event.Notice || len(events[0].Raw) != 4<<20 {
		t.Fatalf("%d events", len(events))
	}
	m = open(t, agentOf{})
	events = m.WholeTurn(t, "many")
	if len(events) != 2001 {
		t.Fatalf("%d events", len(events))
	}
	for i, e := range events[:2000] {
		if e.Text != strconv.Itoa(i) || !strings.Contains(string(e.Raw), `"`+e.Text+`"`) {
			t.Fatalf("event %d is %+v with %s", i, e, e.Raw)
		}
	}
}

func TestUnknownSessionCannotGoOn(t *testing.T) {
	m := open(t, agentOf{})
	m.WholeTurn(t, "exit 1")
	if err := m.Turn(t.Context(), []event.Block{{Text: "say x"}}); !errors.Is(err, fault.AgentFailed) {
		t.Errorf("%v", err)
	}
}

// TestUnable: what an agent cannot do that reads its message once, it says.
func TestUnable(t *testing.T) {
	m := open(t, agentOf{rows: []agent.Row{agent.Both(agent.Resume, "", agent.Cell{Level: agent.Full})}})
	if can := m.Abilities(); can != (agent.Abilities{Resume: true}) {
		t.Errorf("%+v", can)
	}
	if can := open(t, agentOf{}).Abilities(); can != (agent.Abilities{}) {
		t.Errorf("%+v", can)
	}
	g := m.BeginTurn(t, "stall")
	m.Next(t)
	for _, refused := range []struct{ err, want error }{
		{m.Turn(t.Context(), []event.Block{{Text: "say x"}}), fault.Internal},
		{m.Answer(event.Reply{Question: "q"}), fault.NotFoundCode},
		{m.Steer(t.Context(), []event.Block{{Text: "say x"}}), fault.Unsupported},
		{m.Set(t.Context(), agent.Change{Model: "x"}), agent.ErrRestart},
	} {
		if !errors.Is(refused.err, refused.want) {
			t.Errorf("%v, want %v", refused.err, refused.want)
		}
	}
	g.Interrupt()
	g.Rest()
	// A turn is over when the next message can be taken, however often it is tried.
	for range 10 {
		if got := mindtest.Story(m.WholeTurn(t, "say again")); got != "text=again; end=done" {
			t.Fatal(got)
		}
	}
}

func TestRefusedMessages(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	m := open(t, agentOf{limit: agent.Limit{Characters: 6, Bytes: 8}})
	for _, tt := range []struct {
		block event.Block
		want  error
	}{
		{event.Block{Text: " \n"}, fault.ArgError},
		{event.Block{Text: "say xyz"}, fault.PromptTooLong},
		{event.Block{Text: "say ééé"}, fault.PromptTooLong},
		{event.Block{Text: "ééééé"}, fault.PromptTooLong},
		{event.Block{Media: "image/png", Data: []byte("x")}, fault.Unsupported},
	} {
		if err := m.Turn(t.Context(), []event.Block{tt.block}); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v", tt.block, err)
		}
	}
	if err := m.Turn(gone, []event.Block{{Text: "say"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := m.Turn(t.Context(), []event.Block{{Text: "say "}, {Text: "éé"}}); err != nil {
		t.Fatal(err)
	}
	if got := mindtest.Story(m.All()); got != "text=éé; end=done" {
		t.Error(got)
	}
}

// TestInterrupt ends the turn and not the conversation.
func TestInterrupt(t *testing.T) {
	m := open(t, agentOf{})
	m.Kill() // nothing runs
	g := m.BeginTurn(t, "stall")
	m.Next(t)
	g.Interrupt()
	if got := mindtest.Story(g.Rest()); got != "failed!; end=cancelled!" {
		t.Error(got)
	}
	g = m.BeginTurn(t, "late") // it has ended its turn, but never exits: the result counts
	if got := mindtest.Story([]event.Event{m.Next(t)}); got != "text=told" {
		t.Error(got)
	}
	g.Interrupt()
	if got := mindtest.Story(g.Rest()); got != "end=done" {
		t.Error(got)
	}
	if _, o := m.End(t); o.Exit.EndedBy != "SIGINT" || o.Exit.Signal != "SIGINT" {
		t.Errorf("%+v", o.Exit)
	}
}

// TestNothingIsLeft: neither of the agent, which ignores signals, nor of what it started.
func TestNothingIsLeft(t *testing.T) {
	ways := map[string]func(*testing.T, *mindtest.Mind, *mindtest.Turning){
		"close":     func(t *testing.T, m *mindtest.Mind, _ *mindtest.Turning) { _, _ = m.Close(mindtest.Within(t)) },
		"interrupt": func(_ *testing.T, _ *mindtest.Mind, g *mindtest.Turning) { g.Interrupt() },
		"kill":      func(_ *testing.T, m *mindtest.Mind, _ *mindtest.Turning) { m.Kill() },
		"cancelled": func(t *testing.T, m *mindtest.Mind, _ *mindtest.Turning) {
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			_, _ = m.Close(gone)
		},
	}
	for name, way := range ways {
		for _, apart := range []string{"near", "apart"} {
			t.Run(name+"/"+apart, func(t *testing.T) {
				t.Parallel()
				m := open(t, agentOf{}, func(_ *agent.Spec, sv *agent.Services) {
					if name == "kill" || name == "cancelled" {
						sv.Grace = 10 * mindtest.Soon // they do not wait for it
					}
				})
				g := m.BeginTurn(t, "family "+apart)
				var pids []int
				for word := range strings.FieldsSeq(m.Next(t).Text) {
					pid, err := strconv.Atoi(word)
					if err != nil {
						t.Fatal(err)
					}
					pids = append(pids, pid)
				}
				began := time.Now()
				way(t, m, g)
				left := g.Rest()
				if took := time.Since(began); took > mindtest.Soon/3 {
					t.Errorf("it took %s", took)
				}
				for _, pid := range pids {
					if err := syscall.Kill(pid, 0); len(pids) != 2 || !errors.Is(err, syscall.ESRCH) {
						t.Errorf("%d is alive: %v", pid, err)
					}
				}
				if mindtest.Story(left) != "failed!; end=cancelled!" || left[0].Fault.Code != fault.Interrupted {
					t.Errorf("%s", mindtest.Story(left))
				}
			})
		}
	}
}

// TestCloseAmidAFlood: nothing is told of what was given up, and the decoder has one user at a time.
func TestCloseAmidAFlood(t *testing.T) {
	for range 4 {
		m := open(t, agentOf{})
		g := m.BeginTurn(t, "flood")
		m.Next(t)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Close(gone); err != nil {
			t.Fatal(err)
		}
		left := g.Rest()
		ends := 0
		for _, e := range left {
			if e.Kind == event.Ended {
				ends++
			}
		}
		if ends != 1 || left[len(left)-1].Kind != event.Ended {
			t.Errorf("%d ends, the last event is %s", ends, left[len(left)-1].Kind)
		}
	}
}

// TestSilence: an agent that gives no sign of life does not hang for ever. One that lives may take its time.
func TestSilence(t *testing.T) {
	short := func(_ *agent.Spec, sv *agent.Services) { sv.Connect = 100 * time.Millisecond }
	m := open(t, agentOf{}, short)
	events := m.WholeTurn(t, "mute")
	if got := mindtest.Story(events); got != "failed!; "+failedTurn || !lateFault(events[0].Fault, "Stub", "100ms") {
		t.Errorf("%s: %v", got, events[0].Fault)
	}
	for message, d := range map[string]agentOf{"stall": {}, "breathe": {}, "mute": {silent: true}} {
		// A busy machine may need long for the first sign of life, so the limit grows until there is one in time.
		lives := false
		for limit := 100 * time.Millisecond; !lives && limit < mindtest.Soon/4; limit *= 2 {
			m := open(t, d, func(_ *agent.Spec, sv *agent.Services) { sv.Connect = limit })
			g := m.BeginTurn(t, message)
			select {
			case <-g.Ended:
			case <-time.After(4 * limit):
				lives = true
				g.Interrupt()
				g.Rest()
			}
		}
		if !lives {
			t.Errorf("%s was ended with every limit", message)
		}
	}
}

// lateFault reports whether a fault is one of an agent that gave no sign of life, in full.
func lateFault(f *fault.Fault, parts ...string) bool {
	if f == nil || f.Code != fault.TimedOut || !strings.Contains(f.Suggestion, "--connect-timeout") {
		return false
	}
	for _, part := range parts {
		if !strings.Contains(f.Message, part) {
			return false
		}
	}
	return true
}

func TestFilesOfALaunch(t *testing.T) {
	dir := t.TempDir()
	gone, kept := filepath.Join(dir, "a/gone"), filepath.Join(dir, "b/kept")
	m := open(t, agentOf{files: []agent.File{
		{Path: gone, Data: []byte("content")}, {Path: kept, Data: []byte("content"), Keep: true},
	}})
	if got := mindtest.Story(m.WholeTurn(t, "file "+gone)); got != "text=content<nil>; end=done" {
		t.Error(got)
	}
	if info, err := os.Stat(gone); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	m.End(t)
	if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

func TestPromptAsArgument(t *testing.T) {
	m := open(t, agentOf{by: agent.ByArgument, silent: true})
	if err := m.Turn(mindtest.Within(t), []event.Block{{Text: "--yolo"}}); !errors.Is(err, fault.ArgError) {
		t.Errorf("a message that would be a flag: %v", err)
	}
	// Standard input is empty, so the stub prints nothing, which does not count as an answer.
	if got := mindtest.Story(m.WholeTurn(t, "hello world")); got != "failed!; "+failedTurn {
		t.Error(got)
	}
}

// TestPlainText: an agent without a stream that we know is asked for text, which is cut between characters only.
func TestPlainText(t *testing.T) {
	m := open(t, agentOf{silent: true})
	events := m.WholeTurn(t, "args")
	end := events[len(events)-1].End
	if !end.OK || end.Reason != event.Success || !strings.Contains(end.Text, "one --output=text") {
		t.Errorf("%+v", end)
	}
	text := ""
	for _, e := range events {
		if text += e.Text; e.Kind == event.Text && !e.Delta {
			t.Errorf("%+v", e)
		}
	}
	if text != end.Text {
		t.Errorf("pieces %q", text)
	}
	if end := open(t, agentOf{silent: true}).WholeTurn(t, "exit 1")[1].End; end.OK {
		t.Errorf("%+v", end)
	}
}

func TestNotStarted(t *testing.T) {
	m := open(t, agentOf{}, func(s *agent.Spec, _ *agent.Services) { s.Install.Path = t.TempDir() + "/none" })
	if err := m.Turn(mindtest.Within(t), []event.Block{{Text: "say x"}}); !errors.Is(err, fault.NotInstalled) {
		t.Errorf("%v", err)
	}
	if left := m.All(); len(left) != 0 {
		t.Errorf("events of a turn that was not accepted: %s", mindtest.Story(left))
	}
}

// TestFactsOfATurn: what the agent tells of its session comes with the facts.
func TestFactsOfATurn(t *testing.T) {
	m := open(t, agentOf{}, func(s *agent.Spec, _ *agent.Services) { s.Terms.Mode = setting.AutoEdit })
	if f := m.Facts(); f.Agent != "stub" || f.Mode != setting.AutoEdit || f.Dir == "" || f.Model != "" {
		t.Errorf("%+v", f)
	}
	f := m.WholeTurn(t, "began m1")[0].Facts
	if f == nil || f.Model != "m1" || f.Mode != setting.AutoEdit {
		t.Errorf("%+v", f)
	}
}
