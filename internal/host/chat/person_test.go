package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/native/tool"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/testkit/hermetic"
)

// lasting returns a tool that reads, and ends when its work does.
func lasting(name string, work func(ctx context.Context)) tool.Tool {
	return tool.Tool{
		ToolSpec: event.ToolSpec{Name: name, Description: name, Input: json.RawMessage(`{"type":"object"}`)},
		Plan: func(input json.RawMessage) (tool.Action, error) {
			run := func(ctx context.Context) tool.Result {
				work(ctx)
				return tool.Result{Text: "looked"}
			}
			return tool.Action{Kind: event.Read, Input: input, Title: name, Run: run}, nil
		},
	}
}

// person is somebody at a terminal.
type person struct {
	*shown
	t       *testing.T
	keys    io.WriteCloser
	signals chan os.Signal
	ended   chan int
}

// opened opens a conversation that is open.
func opened(c *conversation.Conversation) func(context.Context) (*conversation.Conversation, error) {
	return func(context.Context) (*conversation.Conversation, error) { return c, nil }
}

// sit puts a person in front of a conversation. see is called before something is shown.
func sit(t *testing.T, c *conversation.Conversation, see func(string)) *person {
	t.Helper()
	in, keys := io.Pipe()
	p := &person{
		shown: &shown{grew: make(chan struct{}), see: see}, t: t, keys: keys,
		signals: make(chan os.Signal, 4), ended: make(chan int, 1),
	}
	go func() {
		code, err := (&Chat{View: NewPlain(in, p.shown, true), Typed: true, Signals: p.signals}).Run(t.Context(),
			opened(c))
		if err != nil {
			t.Error(err)
		}
		p.ended <- code
	}()
	t.Cleanup(func() { _ = keys.Close() })
	return p
}

func (p *person) types(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keys, text); err != nil {
		p.t.Error(err)
	}
}

func (p *person) leaves() int {
	p.t.Helper()
	select {
	case code := <-p.ended:
		return code
	case <-time.After(hermetic.Patience):
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Fatalf("it does not end:\n%s", p.text.String())
		return 0
	}
}

func ignore(string) {}

// TestTypedWhileItWorks: a message waits, /steer reaches the turn that runs, and the person is told which.
func TestTypedWhileItWorks(t *testing.T) {
	release := make(chan struct{})
	c := converse(t, `[{"call":{"name":"Look","input":{}}},{"say":"You said ${input}."}]`,
		lasting("Look", func(ctx context.Context) {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}))
	p := sit(t, c, ignore)
	p.types("first\n")
	p.await(t, "⏺ Look")
	p.types("second\n")
	p.await(t, "the message waits for the end of the turn; /steer TEXT")
	p.types("/steer turn left\n")
	p.await(t, "· the turn that runs hears it")
	for events := c.Events(0); ; {
		e, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.Steered {
			if e.Turn != 1 || e.Blocks[0].Text != "turn left" {
				t.Errorf("turn %d hears %q", e.Turn, e.Blocks[0].Text)
			}
			break
		}
	}
	p.types("/exit\n")
	close(release)
	if code := p.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
	shown := p.text.String()
	for _, want := range []string{"> second\n", "You said second."} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is missing:\n%s", want, shown)
		}
	}
}

// TestAskedBehindThePast: the person is asked for a message when all that was recorded before is shown.
func TestAskedBehindThePast(t *testing.T) {
	var past []event.Event
	for n := range 1000 {
		past = append(past, event.Event{Kind: event.Retry, Retry: &event.Repetition{Reason: fmt.Sprint("attempt ", n)}})
	}
	p := sit(t, converseOn(t, `[{"say":"You said ${input}."}]`, past, kit("Look", false, func() {})), ignore)
	p.await(t, "attempt 999\n> ")
	p.types("first\n")
	p.await(t, "You said first.\n> ")
	p.types("/exit\n")
	p.leaves()
	if shown := p.text.String(); strings.Count(shown, "> \n") > 0 {
		t.Errorf("it asks in the middle:\n%s", shown)
	}
}

// TestTypedWhileItOpens: a message that is typed before there is a conversation is its first.
func TestTypedWhileItOpens(t *testing.T) {
	c := converse(t, `[{"say":"You said ${input}."}]`, kit("Look", false, func() {}))
	in, keys := io.Pipe()
	seen := &shown{grew: make(chan struct{}), see: ignore}
	read, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		one := &Chat{View: NewPlain(in, seen, true), Typed: true}
		_, err := one.Run(t.Context(), func(context.Context) (*conversation.Conversation, error) {
			<-read
			return c, nil
		})
		ended <- err
	}()
	for _, text := range []string{"first\n", "/quit\n"} { // the second is read when the first is
		if _, err := io.WriteString(keys, text); err != nil {
			t.Fatal(err)
		}
	}
	close(read)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if shown := seen.text.String(); !strings.Contains(shown, "You said first.") {
		t.Errorf("%s", shown)
	}
	_ = keys.Close()
}

// TestTooManyWait: the conversation's limit holds, and the person is told.
func TestTooManyWait(t *testing.T) {
	c := converse(t, `[{"call":{"name":"Look","input":{}}},{"say":"ok"}]`,
		lasting("Look", func(ctx context.Context) { <-ctx.Done() }))
	p := sit(t, c, ignore)
	p.types("first\n")
	p.await(t, "⏺ Look")
	for i := range conversation.MostWaiting + 1 {
		p.types(fmt.Sprintf("message %d\n", i))
	}
	p.await(t, fmt.Sprintf("the message was not taken: %d messages wait already", conversation.MostWaiting))
	p.signals <- syscall.SIGTERM
	if code := p.leaves(); code != 143 {
		t.Errorf("exit %d", code)
	}
}

// TestCtrlCIsHeard also while the screen takes nothing.
func TestCtrlCIsHeard(t *testing.T) {
	interrupted, stuck, free := make(chan struct{}), make(chan struct{}), make(chan struct{})
	begun := make(chan struct{})
	c := converse(t, `[{"call":{"name":"Look","input":{}}},{"say":"ok"}]`, lasting("Look", func(ctx context.Context) {
		close(begun)
		<-ctx.Done()
		close(interrupted)
	}))
	p := sit(t, c, func(text string) {
		if strings.HasPrefix(text, "⏺ Look") {
			close(stuck)
			<-free
		}
	})
	p.types("first\n")
	<-stuck
	<-begun
	p.signals <- os.Interrupt
	select {
	case <-interrupted:
	case <-time.After(hermetic.Patience):
		t.Fatal("nobody hears it")
	}
	close(free)
	p.await(t, "interrupted\n> ") // the person is asked again: there is no turn
	p.signals <- os.Interrupt
	if code := p.leaves(); code != 130 {
		t.Errorf("exit %d", code)
	}
}

// TestCtrlCTwice ends a turn that does not want to end, whose grace is an hour, and drops what waits for it.
func TestCtrlCTwice(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	c := converse(t, `[{"call":{"name":"Look","input":{}}},{"say":"ok"}]`,
		lasting("Look", func(context.Context) { <-never }))
	p := sit(t, c, ignore)
	p.types("first\n")
	p.await(t, "⏺ Look")
	p.types("second\n")
	p.await(t, "the message waits")
	p.signals <- os.Interrupt
	p.signals <- os.Interrupt
	p.await(t, "interrupted\n> ")
	_ = p.keys.Close()
	if p.leaves(); strings.Contains(p.text.String(), "\nok") {
		t.Errorf("what waited was sent:\n%s", p.text.String())
	}
}
