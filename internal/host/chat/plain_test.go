package chat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/native/tool"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/scripted"
)

// screen is what a person sees.
type shown struct {
	mu   sync.Mutex
	text strings.Builder
	grew chan struct{}
	see  func(string) // what is about to be shown
}

func (s *shown) Write(p []byte) (int, error) {
	s.see(string(p))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	close(s.grew)
	s.grew = make(chan struct{})
	return len(p), nil
}

func (s *shown) await(t *testing.T, what string) {
	t.Helper()
	over := time.After(hermetic.Patience)
	for {
		s.mu.Lock()
		shown, grew := s.text.String(), s.grew
		s.mu.Unlock()
		if strings.Contains(shown, what) {
			return
		}
		select {
		case <-grew:
		case <-over:
			t.Fatalf("%q does not come:\n%s", what, shown)
		}
	}
}

func kit(name string, changes bool, do func()) tool.Tool {
	return scripted.Tool(name, changes, func(context.Context) tool.Result {
		do()
		return tool.Result{Text: "done"}
	})
}

// converse returns a conversation with the engine, whose model says what a script says.
func converse(t *testing.T, script string, tools ...tool.Tool) *conversation.Conversation {
	t.Helper()
	return converseOn(t, script, nil, tools...)
}

// converseOn is converse with a conversation that has a past.
func converseOn(t *testing.T, script string, past []event.Event, tools ...tool.Tool) *conversation.Conversation {
	t.Helper()
	journal, err := session.Open(t.TempDir()).Unlinked(session.Begin{Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range past {
		if _, err := journal.Append(session.Logged{Event: &e}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := scripted.New(t, script, tools...).Open(t.Context(), conversation.Options{
		Journal: journal, Services: agent.Services{CanAsk: true, Grace: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTypedAhead: at a terminal a line that was there before the question does not answer it, but is the next message;
// in a pipe it does.
func TestTypedAhead(t *testing.T) {
	for name, typed := range map[string]bool{"terminal": true, "pipe": false} {
		t.Run(name, func(t *testing.T) {
			changed := false
			session := converse(t,
				`[{"call":{"name":"Look","input":{}}},{"call":{"name":"Change","input":{}}},{"say":"You said ${input}."}]`,
				kit("Look", false, func() {}), kit("Change", true, func() { changed = true }))
			in, keys := io.Pipe()
			typing := func(text string) {
				if _, err := io.WriteString(keys, text); err != nil {
					t.Error(err)
				}
			}
			// While it works, and in the moment before the question stands there.
			ahead := map[string]string{"⏺ Look\n": "second\n", "? Use Change\n": "y\n"}
			if !typed {
				delete(ahead, "⏺ Look\n")
			}
			seen := &shown{grew: make(chan struct{}), see: func(text string) {
				if line := ahead[text]; line != "" {
					delete(ahead, text)
					if typing(line); typed {
						_, _ = keys.Write(nil) // it has been read: the reader has come back for more
					}
				}
			}}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if code, err := (&Chat{View: NewPlain(in, seen, typed), Typed: typed}).Run(t.Context(),
					opened(session)); code != 0 || err != nil {
					t.Errorf("%d, %v", code, err)
				}
			}()
			typing("first\n")
			if typed {
				seen.await(t, "says why: ")
				typing("not now\n")
			}
			seen.await(t, "You said first.")
			_ = keys.Close()
			<-ended
			shown := seen.text.String()
			order := strings.Index(shown, "You said second.") < strings.Index(shown, "You said y.")
			if changed == typed || strings.Contains(shown, "refused: not now") != typed || order != typed ||
				len(ahead) > 0 {
				t.Errorf("changed: %v\n%s", changed, shown)
			}
		})
	}
}

// full is a disk.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, syscall.ENOSPC
	}
	return len(p), nil
}

// TestNothingCanBeWritten: the conversation ends where nobody can read what is said, and nothing more is done.
func TestNothingCanBeWritten(t *testing.T) {
	for name, room := range map[string]int{"from the beginning": 0, "in the middle": 30} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			session := converse(t,
				`[{"call":{"name":"Look","input":{}}},{"say":"One, and much that does not fit there."}]`,
				kit("Look", false, func() { asked++ }))
			code, err := (&Chat{View: NewPlain(strings.NewReader("one\ntwo\n"), &full{room}, false)}).Run(t.Context(),
				opened(session))
			if code != 1 || !errors.Is(err, fault.OutputFailed) || asked > min(room, 1) {
				t.Errorf("%d, %v, %d calls", code, err, asked)
			}
		})
	}
}

// TestPipeIsPrintedInOneOrder: the greeting is first, and the sign that asks for a message stands once before each.
func TestPipeIsPrintedInOneOrder(t *testing.T) {
	const want = "Hello.\n> \n/steer TEXT says something to the turn that runs\n> ok\n> ok\n> \n" +
		"2 turns, 114 tokens in, 2 out.\n"
	for range hermetic.Times(100, 20) {
		var out bytes.Buffer
		c := &Chat{View: NewPlain(strings.NewReader("/steer\n\na\nb\n"), &out, false), Greet: "Hello."}
		if _, err := c.Run(t.Context(), opened(converse(t, `[{"say":"ok"}]`))); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Fatalf("%q", got)
		}
	}
}
