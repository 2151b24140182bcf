//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/fault"
)

// TestTurns: one process a turn, which goes on with the session of the one before.
func TestTurns(t *testing.T) {
	s := open(t, agentOf{})
	if s.ID() != "" {
		t.Errorf("id %q before the first message", s.ID())
	}
	for i, want := range []string{"one --output=stream-json", "one --output=stream-json --resume=s1", "one --output=stream-json --resume=s1+"} {
		send(t, s, "args")
		if got := told(turn(t, s)); got != "text="+want+"; end=done" {
			t.Errorf("turn %d: %s", i, got)
		}
	}
	if s.ID() != "s1++" {
		t.Errorf("id %q", s.ID())
	}
	left, o := rest(t, s)
	if len(left) != 0 || o.Exit.Code != 0 || o.Exit.ByUs != "" {
		t.Errorf("%s, %+v", told(left), o)
	}
	if err := s.Send(t.Context(), []event.Block{{Text: "say x"}}); err == nil {
		t.Error("a closed session takes a message")
	}
}

func TestResumedFromTheStart(t *testing.T) {
	self, _ := os.Executable()
	d := agentOf{Program: cli.Program{ID: "stub", About: agent.About{Binary: stubName}}}
	s, err := cli.Open(t.Context(), d, agent.Spec{Install: agent.Install{Path: self}, Resume: "old", Temp: t.TempDir(), Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0")}, agent.Services{})
	if err != nil {
		t.Fatal(err)
	}
	if s.ID() != "old" {
		t.Errorf("id %q", s.ID())
	}
	send(t, s, "args")
	if got := told(turn(t, s)); !strings.Contains(got, "--resume=old") {
		t.Error(got)
	}
	rest(t, s)
	if _, err := cli.Open(t.Context(), d, agent.Spec{}, agent.Services{}); !errors.Is(err, fault.Internal) {
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
		{"die now", "text=half; failed!; end=the agent ended without a result!", -1, "SIGKILL"},
		{"exit 7", "failed!; end=the agent ended without a result!", 7, ""},
		{"exit 0", "failed!; end=the agent ended without a result!", 0, ""},
		{"garbage", strings.Repeat("notice=a line that cannot be read; ", 4) + "failed!; end=the agent ended without a result!", 0, ""},
		{"cut", "end=done", 0, ""},
		{"twice", "text=more; notice=the agent went on after an end; text=trailing; end=second", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.message, func(t *testing.T) {
			t.Parallel()
			s := open(t, agentOf{})
			send(t, s, tt.message)
			events := turn(t, s)
			left, o := rest(t, s)
			got := told(append(events, left...))
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if o.Exit.Code != tt.code || o.Exit.Signal != tt.signal || o.Exit.ByUs != "" {
				t.Errorf("%+v", o.Exit)
			}
			if strings.HasPrefix(tt.message, "exit") && (len(o.Exit.Stderr) != 64<<10 || !bytes.HasSuffix(o.Exit.Stderr, []byte("xlast words"))) {
				t.Errorf("%d bytes of stderr", len(o.Exit.Stderr))
			}
		})
	}
}

// TestLastWords: a turn without a result ends with what the agent said on standard error, without secrets and not at length.
func TestLastWords(t *testing.T) {
	for message, want := range map[string]string{
		"words 1 some noise\nthe\tdisk \x1b[31mis full\x1b[0m, token=ghp_0123456789012345678901234567890123456\n   at main.js:1\n": "the agent ended with exit code 1: some noise; the disk is full, token=[REDACTED]",
		"words 7 key of-the-environment-0123\n": "the agent ended with exit code 7: key [REDACTED]",
		"words 0 ":                              "the agent ended without a result",
		"words 1 " + strings.Repeat("é", 1000):  "the agent ended with exit code 1: …" + strings.Repeat("é", 150),
	} {
		t.Setenv("STUB_API_KEY", "of-the-environment-0123")
		s := open(t, agentOf{})
		send(t, s, message)
		events := turn(t, s)
		if f := events[0].Fault; len(events) != 2 || f == nil || f.Message != want || f.Code != fault.AgentFailed || !events[0].Terminal {
			t.Errorf("%s\n%s: %+v", message, told(events), f)
		}
		rest(t, s)
	}
}

func TestHugeLineAndOrder(t *testing.T) {
	s := open(t, agentOf{})
	send(t, s, "huge")
	events := turn(t, s)
	if len(events) != 2 || events[0].Kind != event.Notice || len(events[0].Raw) != 16<<20 {
		t.Fatalf("%d events", len(events))
	}
	s = open(t, agentOf{})
	send(t, s, "many")
	events = turn(t, s)
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
	s := open(t, agentOf{})
	send(t, s, "exit 1")
	turn(t, s)
	if err := s.Send(t.Context(), []event.Block{{Text: "say x"}}); !errors.Is(err, fault.AgentFailed) {
		t.Errorf("%v", err)
	}
}

func TestSendWhileItWorks(t *testing.T) {
	s := open(t, agentOf{})
	send(t, s, "stall")
	if err := s.Send(t.Context(), []event.Block{{Text: "say x"}}); !errors.Is(err, fault.LockHeld) {
		t.Errorf("%v", err)
	}
	if err := s.Answer(t.Context(), "q", event.Reply{}); !errors.Is(err, fault.NeedsInput) {
		t.Errorf("%v", err)
	}
	next(t, s)
	if err := s.Interrupt(within(t)); err != nil {
		t.Fatal(err)
	}
	turn(t, s)
	// The end is told when the next message can be sent, however often it is tried.
	for range 10 {
		send(t, s, "say again")
		if got := told(turn(t, s)); got != "text=again; end=done" {
			t.Fatal(got)
		}
	}
}

func TestRefusedMessages(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	s := open(t, agentOf{limit: agent.Limit{Characters: 6, Bytes: 8}})
	for _, tt := range []struct {
		text string
		want error
	}{{" \n", fault.ArgError}, {"say xyz", fault.PromptTooLong}, {"say ééé", fault.PromptTooLong}, {"ééééé", fault.PromptTooLong}} {
		if err := s.Send(t.Context(), []event.Block{{Text: tt.text}}); !errors.Is(err, tt.want) {
			t.Errorf("%q: %v", tt.text, err)
		}
	}
	if err := s.Send(gone, []event.Block{{Text: "say"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := s.Send(t.Context(), []event.Block{{Text: "say "}, {Text: "éé"}}); err != nil {
		t.Fatal(err)
	}
	if got := told(turn(t, s)); got != "text=éé; end=done" {
		t.Error(got)
	}
	if _, err := s.Next(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestInterrupt ends the turn and not the session.
func TestInterrupt(t *testing.T) {
	s := open(t, agentOf{})
	if err := s.Interrupt(within(t)); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
	send(t, s, "stall")
	next(t, s)
	if err := s.Interrupt(within(t)); err != nil {
		t.Fatal(err)
	}
	if got := told(turn(t, s)); got != "failed!; end=the agent ended without a result!" {
		t.Error(got)
	}
	send(t, s, "late") // it has ended its turn, but never exits: the result is kept
	if got := told([]event.Event{next(t, s)}); got != "text=told" {
		t.Error(got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if e, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", e, err)
	}
	if err := s.Interrupt(within(t)); err != nil {
		t.Fatal(err)
	}
	left, o := rest(t, s)
	if told(left) != "end=done" || o.Exit.ByUs != "SIGINT" || o.Exit.Signal != "SIGINT" {
		t.Errorf("%s, %+v", told(left), o.Exit)
	}
}

// TestNothingIsLeft: neither of the agent, which does not hear, nor of what it started.
func TestNothingIsLeft(t *testing.T) {
	ways := map[string]func(*testing.T, agent.Session) error{
		"close":     func(t *testing.T, s agent.Session) error { _, err := s.Close(within(t)); return err },
		"interrupt": func(t *testing.T, s agent.Session) error { return s.Interrupt(within(t)) },
		"cancelled": func(t *testing.T, s agent.Session) error {
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.Close(gone); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("unexpected: %v", err)
			}
			return nil
		},
	}
	for name, way := range ways {
		for _, apart := range []string{"near", "apart"} {
			t.Run(name+"/"+apart, func(t *testing.T) {
				t.Parallel()
				s := open(t, agentOf{})
				send(t, s, "family "+apart)
				var pids []int
				for _, word := range strings.Fields(next(t, s).Text) {
					pid, err := strconv.Atoi(word)
					if err != nil {
						t.Fatal(err)
					}
					pids = append(pids, pid)
				}
				if err := way(t, s); err != nil {
					t.Fatal(err)
				}
				for _, pid := range pids {
					if err := syscall.Kill(pid, 0); len(pids) != 2 || !errors.Is(err, syscall.ESRCH) {
						t.Errorf("%d is alive: %v", pid, err)
					}
				}
				if left, _ := rest(t, s); len(left) != 2 || left[0].Fault == nil || left[0].Fault.Code != fault.Interrupted || left[1].Kind != event.Ended {
					t.Errorf("%s", told(left))
				}
			})
		}
	}
}

// TestCloseAmidAFlood: nothing is heard of what was given up, and the decoder has one user at a time.
func TestCloseAmidAFlood(t *testing.T) {
	for range 4 {
		s := open(t, agentOf{})
		send(t, s, "flood")
		next(t, s)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Close(gone); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		left, _ := rest(t, s)
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

// TestManyReaders: whoever waits is woken, for events and for the end.
func TestManyReaders(t *testing.T) {
	s := open(t, agentOf{})
	ctx := within(t)
	var mu sync.Mutex
	var got []string
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				e, err := s.Next(ctx)
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				got = append(got, string(e.Kind)+e.Text)
				mu.Unlock()
			}
		})
	}
	send(t, s, "many")
	for range 3 {
		wg.Go(func() { _ = s.Interrupt(ctx) })
		wg.Go(func() { _ = s.ID() })
	}
	if _, err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	slices.Sort(got)
	if i := slices.Index(got, "ended"); i < 0 || slices.Contains(got[i+1:], "ended") || len(slices.Compact(got)) != len(got) {
		t.Errorf("%d events, ended at %d", len(got), i)
	}
}

func TestFilesOfASession(t *testing.T) {
	dir := t.TempDir()
	gone, kept := filepath.Join(dir, "a/gone"), filepath.Join(dir, "b/kept")
	s := open(t, agentOf{files: []agent.File{{Path: gone, Data: []byte("content")}, {Path: kept, Data: []byte("content"), Keep: true}}})
	send(t, s, "file "+gone)
	if got := told(turn(t, s)); got != "text=content<nil>; end=done" {
		t.Error(got)
	}
	if info, err := os.Stat(gone); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	rest(t, s)
	if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

func TestPromptAsArgument(t *testing.T) {
	s := open(t, agentOf{by: agent.ByArgument, silent: true})
	if err := s.Send(within(t), []event.Block{{Text: "--yolo"}}); !errors.Is(err, fault.ArgError) {
		t.Errorf("a message that would be a flag: %v", err)
	}
	send(t, s, "hello world")
	// Nothing stands on standard input, so the stub says nothing: that is no answer.
	if got := told(turn(t, s)); got != "failed!; ended!" {
		t.Error(got)
	}
}

// TestPlainText: an agent without a stream that we know is asked for text, which is cut between characters only.
func TestPlainText(t *testing.T) {
	s := open(t, agentOf{silent: true})
	send(t, s, "args")
	events := turn(t, s)
	end := events[len(events)-1].End
	if !end.OK || !strings.Contains(end.Text, "one --output=text") {
		t.Errorf("%+v", end)
	}
	said := ""
	for _, e := range events {
		if said += e.Text; e.Kind == event.Text && !e.Delta {
			t.Errorf("%+v", e)
		}
	}
	if said != end.Text {
		t.Errorf("pieces %q", said)
	}
	s = open(t, agentOf{silent: true})
	send(t, s, "exit 1")
	if end := turn(t, s)[1].End; end.OK {
		t.Errorf("%+v", end)
	}
}

func TestNotStarted(t *testing.T) {
	d := agentOf{Program: cli.Program{ID: "stub", About: agent.About{Binary: stubName}}}
	s, err := cli.Open(t.Context(), d, agent.Spec{Install: agent.Install{Path: t.TempDir() + "/none"}, Temp: t.TempDir()}, agent.Services{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(within(t), []event.Block{{Text: "say x"}}); !errors.Is(err, fault.NotInstalled) {
		t.Errorf("%v", err)
	}
	if left, _ := rest(t, s); len(left) != 0 {
		t.Errorf("events of a turn that was not accepted: %s", told(left))
	}
}
