//go:build unix

package chat

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/core/event"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/lineedit"
	"omniagent/internal/term/terminal"
	"omniagent/internal/testkit/hermetic"
)

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// seat is a window on a pseudo terminal, in front of a person who may look elsewhere.
type seat struct {
	*Window
	clock
	t       *testing.T
	master  *os.File
	slave   *os.File
	device  *terminal.Terminal
	signals chan os.Signal
	typed   chan Input
	written chan []byte // all of it, when the terminal is closed
}

func newSeat(t *testing.T, notify func(string)) *seat {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	device, err := terminal.Open(terminal.Options{In: slave, Out: slave})
	if err != nil {
		t.Fatal(err)
	}
	history, err := lineedit.OpenHistory("", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{
		t: t, master: master, slave: slave, device: device, signals: make(chan os.Signal, 1), typed: make(chan Input),
		written: make(chan []byte, 1), clock: clock{now: time.Now()},
	}
	go func() {
		data, _ := io.ReadAll(master) // ends with an error when the other side is closed
		s.written <- data
	}()
	s.Window = NewWindow(WindowOptions{
		Terminal: device, Out: io.Discard, Signals: s.signals, Notify: notify, History: history,
		Complete: func(_ context.Context, before string, offer func(lineedit.Offer)) {
			if strings.HasPrefix(before, "@") {
				offer(lineedit.Offer{Candidates: []lineedit.Candidate{{Text: "@one"}, {Text: "@two"}}})
			}
		},
	})
	s.Window.now, s.second = s.read, time.Millisecond
	go s.Run(t.Context(), s.typed)
	t.Cleanup(func() { _ = master.Close() })
	return s
}

// ends closes the window and the terminal, and returns all that was written.
func (s *seat) ends() []byte {
	s.Close()
	for range s.typed { // until Run has returned, which reads the size of the screen
	}
	_ = s.slave.Close() // the other side ends with it
	return <-s.written
}

func (s *seat) types(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// looks tells the window, as a terminal does, whether it is in front.
func (s *seat) looks(here bool) {
	s.t.Helper()
	sequence := map[bool]string{true: "\x1b[I", false: "\x1b[O"}[here]
	s.types(sequence)
	s.until("the terminal is heard", func() bool { return s.device.Front() == here })
}

// until waits for what nothing tells: that the window has taken something from the terminal.
func (s *seat) until(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(hermetic.Patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("it is not so: " + what)
		}
	}
}

// shows waits until something stands at the prompt.
func (s *seat) shows(what string) {
	s.t.Helper()
	s.until(what+" is shown", func() (is bool) {
		s.locked(func() { is = strings.Contains(fmt.Sprint(s.live.Input), what) })
		return is
	})
}

// turns holds turns of some lengths, one queued behind the other.
func (s *seat) turns(lengths ...time.Duration) {
	s.State(State{Busy: true})
	for _, took := range lengths {
		s.Event(event.Event{Kind: event.TurnBegan}, 0)
		s.pass(took)
		s.Event(event.Event{Kind: event.Ended, End: &event.End{OK: true}}, 0)
	}
	s.State(State{})
}

// TestLongTurn: a person who looks elsewhere hears of the end of each turn that was long, and of no other.
func TestLongTurn(t *testing.T) {
	told := 0
	s := newSeat(t, func(what string) {
		if told++; what != "the turn is over" {
			t.Error(what)
		}
	})
	for _, step := range []struct {
		here bool
		took []time.Duration
		want int
	}{
		{true, []time.Duration{time.Minute}, 0},
		{false, []time.Duration{longTurn}, 0},
		{false, []time.Duration{longTurn + 1}, 1},
		{false, []time.Duration{time.Minute, time.Second, time.Minute}, 3},
		{false, nil, 3},
		{true, []time.Duration{time.Minute}, 3},
	} {
		s.looks(step.here)
		if s.turns(step.took...); told != step.want {
			t.Errorf("%+v: told %d times", step, told)
		}
	}
	s.Event(event.Event{Kind: event.Ended, End: &event.End{OK: true}}, 0) // of an earlier sitting
	s.looks(false)
	s.State(State{Busy: true}) // a command of the person's
	s.pass(time.Minute)
	if s.State(State{}); told != 4 {
		t.Errorf("told %d times", told)
	}
	s.Close()
}

// TestTheClockGoes: it counts from the moment at which a turn begins, without a key, and while a question stands.
func TestTheClockGoes(t *testing.T) {
	s := newSeat(t, nil)
	line := func(want string) {
		t.Helper()
		s.until(want, func() (is bool) {
			s.locked(func() { is = strings.Contains(cells.Plain(strings.Join(s.live.Above, "")), want) })
			return is
		})
	}
	s.types("x")
	s.shows("x") // Run waits for what comes next
	s.State(State{Busy: true})
	s.pass(5 * time.Second)
	line("working 5s · Esc interrupts")
	s.Event(event.Event{Kind: event.TurnBegan}, 0) // an agent may need long for its first word
	s.pass(2 * time.Second)
	line("working 7s · Esc interrupts")
	s.Ask(&Question{Title: "May it"})
	s.pass(3 * time.Second)
	line(waiting + " 3s · Esc interrupts")
	s.Ask(nil)
	s.pass(time.Second)
	line("working 11s · Esc interrupts")
	s.State(State{})
	s.until("no line is left", func() (is bool) {
		s.locked(func() { is = len(s.live.Above) == 0 })
		return is
	})
	s.Close()
}

// TestALongStartIsTold: an agent that says nothing for a while is named, once in each turn.
func TestALongStartIsTold(t *testing.T) {
	s := newSeat(t, nil)
	told := func() (is bool) {
		s.locked(func() { is = s.heard })
		return is
	}
	s.State(State{Busy: true, Agent: "opencode"})
	s.pass(longTurn)
	s.until("it is told", told)
	s.pass(longTurn)
	s.Event(event.Event{Kind: event.TurnBegan}, 0)
	s.Event(event.Event{Kind: event.Ended, End: &event.End{OK: true}}, 0)
	s.pass(longTurn)
	s.until("it is told of the turn behind it", told)
	s.State(State{})
	if shown := string(s.ends()); strings.Count(shown, "opencode has not answered yet") != 2 {
		t.Errorf("%q", shown)
	}
}

// TestLongTurnRings: the bell rings where no program is configured.
func TestLongTurnRings(t *testing.T) {
	s := newSeat(t, nil)
	s.looks(false)
	s.turns(time.Second, time.Minute)
	if got := bytes.Count(s.ends(), []byte("\a")); got != 1 {
		t.Errorf("it rang %d times", got)
	}
}

// TestBesideAnAnswer: what is printed while a block of code grows stands between its lines, and the block goes on
// behind it; behind a call of a tool it does not.
func TestBesideAnAnswer(t *testing.T) {
	const bold = "\x1b[1mmarked\x1b[m"
	for name, tt := range map[string]struct {
		beside func(s *seat)
		code   bool
	}{
		"a notice": {func(s *seat) { s.Notice("beside") }, true},
		"a command of the person": {func(s *seat) {
			s.Event(event.Event{Kind: event.ToolCall, Call: &event.Call{
				ID: eidolon.ShellWord, Name: "SysBuiltIn.bash", Kind: event.Shell, Command: "beside",
			}}, 0)
		}, true},
		"a retry": {func(s *seat) {
			s.Event(event.Event{Kind: event.Retry, Retry: &event.Repetition{Reason: "beside"}}, 0)
		}, true},
		"a call": {func(s *seat) {
			s.Event(event.Event{Kind: event.ToolCall, Call: &event.Call{ID: "c1", Name: "beside"}}, 0)
		}, false},
		"another text": {func(s *seat) {
			s.Event(event.Event{Kind: event.Text, Text: "```\nfirst\nsecond"}, 0)
			s.Notice("beside")
		}, false},
	} {
		s := newSeat(t, nil)
		s.State(State{Busy: true})
		for _, piece := range []string{"```\nfirst\n", "second"} {
			s.Event(event.Event{Kind: event.Text, Delta: true, Text: piece}, 0)
		}
		tt.beside(s)
		s.Event(event.Event{Kind: event.Text, Delta: true, Text: "\n**marked**\n"}, 0)
		s.Event(event.Event{Kind: event.Ended, End: &event.End{OK: true}}, 0)
		s.State(State{})
		written := string(s.ends())
		if code := !strings.Contains(written, bold); code != tt.code {
			t.Errorf("%s: still code: %v\n%q", name, code, written)
		}
		at := 0
		for _, word := range []string{"first", "second", "beside", "marked"} {
			next := strings.Index(written[at:], word)
			if next < 0 {
				t.Errorf("%s: %s is missing or too early:\n%q", name, word, written)
				break
			}
			at += next
		}
	}
}

// TestTasks: the list above the prompt is the last one that was written, and not one that was refused.
func TestTasks(t *testing.T) {
	s := newSeat(t, nil)
	s.State(State{Busy: true})
	for _, id := range []string{"agreed", "refused"} {
		s.Event(event.Event{Kind: event.ToolCall, Call: &event.Call{
			ID: id, Name: "TodoWrite", Input: []byte(`{"todos":[{"content":"` + id + ` task"}]}`),
		}}, 0)
		s.Event(event.Event{Kind: event.ToolResult, Result: &event.Result{ID: id, Failed: id == "refused"}}, 0)
	}
	s.locked(func() {
		if got := fmt.Sprint(s.live.Above); !strings.Contains(got, "agreed task") || strings.Contains(got, "refused") {
			t.Error(got)
		}
	})
	s.Close()
}

// TestKeysOfTheEditor: Ctrl-G and Escape close a search or a list of completions first. Pressed again, they mean the
// turn.
func TestKeysOfTheEditor(t *testing.T) {
	const ctrlG, escape = "\x07", "\x1b[27u" // as kitty sends it, so that no time has to pass behind it
	for opens, shown := range map[string]string{"draft\x12": "search", "@": "@two"} {
		s := newSeat(t, nil)
		s.State(State{Busy: true})
		s.types(opens)
		s.shows(shown)
		s.types(ctrlG + "\r")
		if in := <-s.typed; in.Steer || in.Text == "" {
			t.Errorf("%s: Ctrl-G sends %+v", shown, in)
		}
		s.types(opens)
		s.shows(shown)
		s.types(ctrlG + ctrlG)
		if in := <-s.typed; !in.Steer || in.Text == "" {
			t.Errorf("%s: Ctrl-G behind it sends %+v", shown, in)
		}
		s.types(opens)
		s.shows(shown)
		s.types(escape + "\r")
		if in := <-s.typed; in.Text == "" || len(s.signals) > 0 {
			t.Errorf("%s: Escape interrupts, or leaves %+v", shown, in)
		}
		s.types(escape)
		if got := <-s.signals; got != os.Interrupt {
			t.Errorf("%s: %v", shown, got)
		}
		s.Close()
	}
}

// TestKeysWhileItOpens: what is typed before there is a conversation is sent; Ctrl-C ends the call then, and only then.
func TestKeysWhileItOpens(t *testing.T) {
	s := newSeat(t, nil)
	s.types("hello\r")
	if in := <-s.typed; in.Text != "hello" {
		t.Errorf("%+v", in)
	}
	s.types("\x03")
	if got := <-s.signals; got != os.Interrupt {
		t.Errorf("%v", got)
	}
	s.State(State{})
	s.types("\x03\x03")
	select {
	case in := <-s.typed:
		if !in.Leave {
			t.Errorf("%+v", in)
		}
	case got := <-s.signals:
		t.Errorf("%v", got)
	}
	s.Close()
}

// TestPage: a text that fits into the window is printed, and a longer one goes to the pager.
func TestPage(t *testing.T) {
	s := newSeat(t, nil)
	paged := 0
	s.o.Pager = func(string) error { paged++; return nil }
	if err := pty.Setsize(s.master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	s.until("the size is known", func() bool { columns, _ := s.device.Size(); return columns == 80 })
	s.Page(strings.Repeat("short\n", 20))
	s.Page(strings.Repeat("x", 20*80))
	if paged != 0 {
		t.Errorf("%d of what fits went to the pager", paged)
	}
	s.Page(strings.Repeat("long\n", 21))
	s.Page(strings.Repeat("x", 20*80+1))
	if paged != 2 {
		t.Errorf("%d of what does not fit went to the pager", paged)
	}
	if shown := string(s.ends()); strings.Count(shown, "short\r\n") != 20 || strings.Contains(shown, "long") {
		t.Errorf("%q", shown)
	}
}

// TestProseIsBrokenBetweenWords: a terminal would break it anywhere.
func TestProseIsBrokenBetweenWords(t *testing.T) {
	s := newSeat(t, nil)
	if err := pty.Setsize(s.master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	s.until("the size is known", func() bool { columns, _ := s.device.Size(); return columns == 80 })
	s.Notice("walls:        namespaces, network off; omniagent sandbox explain . lists the gaps")
	s.Event(event.Event{Kind: event.Text, Delta: true, Text: strings.Repeat("some words ", 7) + "and one more\n"}, 0)
	s.Event(event.Event{Kind: event.ToolResult, Result: &event.Result{
		ID: "1", Failed: true, Output: strings.Repeat("some words ", 7) + "and another",
	}}, 0)
	s.Ask(&Question{Title: "May this run, although " + strings.Repeat("o", 54) + ": a yes opens the network"})
	shown := cells.Plain(string(s.ends()))
	for _, want := range []string{
		"\nomniagent sandbox explain . lists the gaps\r\n", "\na yes opens the network\r\n",
		"\nand one more\r\n", "\nwords and another\r\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in %q", want, shown)
		}
	}
}
