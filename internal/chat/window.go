package chat

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"omniagent/internal/cells"
	"omniagent/internal/eidolon"
	"omniagent/internal/event"
	"omniagent/internal/lineedit"
	"omniagent/internal/markdown"
	"omniagent/internal/run"
	"omniagent/internal/screen"
	"omniagent/internal/terminal"
	"omniagent/internal/text"
)

// Window is a View in a terminal: what is said scrolls away above a prompt that stays.
//
// Three goroutines share it: Run has the keys and the editor, a painter has the screen, and the chat's have the rest. A
// terminal that takes nothing stops the painter and then the chat, but not the keys.
type Window struct {
	o      WindowOptions
	term   *terminal.Terminal
	screen *screen.Screen
	editor *lineedit.Editor
	style  style
	broken chan struct{}
	kick   chan struct{} // there is something to paint
	closed chan struct{}
	gone   chan struct{} // the painter has ended

	painting sync.Mutex // the screen is ours; taken before mu

	mu       sync.Mutex
	room     *sync.Cond // for more lines
	lines    []string   // finished, not given to the screen yet
	live     screen.Live
	answer   *markdown.Renderer // of the text that grows; nil: there is none
	state    State
	began    time.Time // the turn that runs
	does     string    // what it does
	tasks    []screen.Todo
	question *Question
	picker   *screen.Picker // for a question with items
	asked    int64
	at       time.Time // the question was shown
	over     bool
}

// WindowOptions say what a window is on.
type WindowOptions struct {
	Terminal *terminal.Terminal
	Out      io.Writer // for what is printed after Close
	Signals  chan<- os.Signal
	History  *lineedit.History
	Complete lineedit.Source
	Plain    bool               // no colours
	Reader   bool               // a screen reader reads it
	Pager    func(string) error // shows a long text; nil: it is printed
	Notify   func(string)       // tells a person who looks elsewhere; nil: the bell rings
}

const (
	mostQueued = 4096 // lines
	// tick is how often the figures of a running turn change.
	tick = time.Second
	// mostTasks of a list are shown.
	mostTasks = 6
	// settling is how long after a question letters still belong to what was being typed.
	settling = 300 * time.Millisecond
	// longTurn is one whose end is told to a person who looks elsewhere.
	longTurn = 10 * time.Second
	twice    = 2 * time.Second
)

// NewWindow returns a window on a terminal, which it closes.
func NewWindow(o WindowOptions) *Window {
	w := &Window{
		o: o, term: o.Terminal, style: style{!o.Plain}, broken: make(chan struct{}), kick: make(chan struct{}, 1),
		closed: make(chan struct{}), gone: make(chan struct{}),
	}
	w.room = sync.NewCond(&w.mu)
	w.screen = screen.New(screen.Options{Out: o.Terminal, Size: o.Terminal.Size, Reader: o.Reader, Plain: o.Plain})
	w.editor = lineedit.New(lineedit.Options{
		Prompt: w.style.bold("> "), History: o.History, Complete: o.Complete,
		Hint: w.style.dim("a message, /help, @file:"),
	})
	w.live.Input = w.editor.View(w.screen.Width())
	w.kick <- struct{}{}
	go w.paint()
	return w
}

// paint gives the screen what there is to show.
func (w *Window) paint() {
	defer close(w.gone)
	for {
		select {
		case <-w.kick:
		case <-w.closed:
			w.hand()
			return
		}
		w.hand()
	}
}

func (w *Window) hand() {
	w.painting.Lock()
	defer w.painting.Unlock()
	w.handOver()
}

// handOver gives the screen all that waits. The caller has the screen.
func (w *Window) handOver() {
	w.mu.Lock()
	lines, live := w.lines, w.live
	w.lines = nil
	w.room.Broadcast()
	w.mu.Unlock()
	w.screen.Print(lines...)
	w.screen.Set(live)
}

// repaint has the painter look. The caller holds the lock.
func (w *Window) repaint() {
	w.live.Above = w.above()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// print adds finished lines. The caller holds the lock.
func (w *Window) print(lines ...string) {
	for len(w.lines) > mostQueued && !w.over {
		w.room.Wait()
	}
	if w.over {
		for _, line := range lines {
			_, _ = io.WriteString(w.o.Out, line+"\n") // there is nobody to tell
		}
		return
	}
	w.lines = append(w.lines, lines...)
	w.repaint()
}

// say ends the text that grows, and prints lines behind it.
func (w *Window) say(lines ...string) {
	if w.answer != nil {
		w.print(w.answer.Close()...)
		w.answer, w.live.Tail = nil, nil
	}
	w.print(lines...)
}

// locked runs do under the lock.
func (w *Window) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// Run implements View.
func (w *Window) Run(ctx context.Context, typed chan<- Input) {
	defer close(typed)
	defer w.editor.Close()
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	h := hand{w: w, ctx: ctx, typed: typed}
	h.show()
	for {
		var ticking <-chan time.Time
		if w.working() {
			ticking = ticks.C
		}
		select {
		case k, more := <-w.term.Input():
			if !more || !h.key(k) {
				return
			}
		case <-w.editor.Changed():
			h.show()
		case <-ticking:
			w.locked(w.repaint)
		case <-ctx.Done():
			return
		case <-w.closed:
			return
		}
	}
}

// working reports whether something on the screen changes with time.
func (w *Window) working() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Busy && w.question == nil && !w.o.Reader
}

// Broken implements View.
func (w *Window) Broken() <-chan struct{} { return w.broken }

// Err implements View.
func (w *Window) Err() error { return nil }

// Close implements View.
func (w *Window) Close() {
	w.locked(func() {
		w.say()
		w.over = true
		w.live = screen.Live{}
		w.room.Broadcast()
	})
	close(w.closed)
	<-w.gone
	_ = w.screen.Close() // what could not be written was reported
	_ = w.term.Close()
}

// Notice implements View.
func (w *Window) Notice(line string) {
	w.locked(func() { w.say(w.style.each(w.style.dim, clean(line))...) })
}

// Page implements View.
func (w *Window) Page(content string) {
	if w.o.Pager == nil || w.o.Reader {
		w.locked(func() { w.say(clean(content)...) })
		return
	}
	err := w.aside(func() error { return w.o.Pager(content) })
	if err != nil {
		w.Notice("the pager failed: " + err.Error())
	}
}

// aside takes the region away while something else has the terminal.
func (w *Window) aside(use func() error) error {
	w.painting.Lock()
	defer w.painting.Unlock()
	w.handOver()
	_ = w.screen.Clear() // a screen that cannot be written is noticed by the next frame
	defer w.screen.Restart()
	return use()
}

// Message implements View.
func (w *Window) Message(message string) {
	w.locked(func() { w.say(w.typedLines(message)...) })
}

// typedLines shows a message of the person's.
func (w *Window) typedLines(message string) []string {
	lines := clean(message)
	if len(lines) > 0 {
		lines[0] = "> " + lines[0]
	}
	return append([]string{""}, w.style.each(w.style.bold, lines)...)
}

// State implements View.
func (w *Window) State(s State) {
	w.locked(func() {
		ended := w.state.Busy && !s.Busy
		if !w.state.Busy && s.Busy {
			w.began, w.does = time.Now(), ""
		}
		w.state = s
		if ended {
			w.tasks = nil
			if time.Since(w.began) > longTurn {
				w.call("the turn is over")
			}
		}
		w.repaint()
	})
}

// call tells a person who looks elsewhere. The caller holds the lock.
func (w *Window) call(what string) {
	if w.term.Front() {
		return
	}
	if w.o.Notify != nil {
		w.o.Notify(what)
		return
	}
	_, _ = io.WriteString(w.term, "\a") // nothing depends on it
}

// Ask implements View.
func (w *Window) Ask(q *Question) {
	w.locked(func() {
		w.picker = nil
		if w.question = q; q == nil {
			w.live.Below = nil
			w.repaint()
			return
		}
		w.asked++
		w.at = time.Now()
		lines := append([]string{""}, w.style.each(w.style.ask, clean("? "+q.Title))...)
		if len(q.Items) > 0 && !w.o.Reader {
			w.picker = &screen.Picker{Title: w.style.bold(">"), Items: q.Items}
			w.live.Input = w.picker.View(w.screen.Width())
		} else {
			lines = append(lines, clean(q.Detail)...)
		}
		if q.Change != nil {
			lines = append(lines, w.style.change(q.Change)...)
		}
		w.say(lines...)
		if w.live.Below = nil; w.picker == nil {
			w.live.Below = []string{w.style.ask(q.short())}
		}
		w.does = "waiting for you"
		w.call("a question")
		w.repaint()
	})
}

// Event implements View.
func (w *Window) Event(e event.Event, number int) {
	w.locked(func() {
		switch e.Kind {
		case event.Text:
			if e.Delta && e.Parent == "" {
				w.grow(e.Text)
			}
		case event.Thinking:
			w.does = "thinking"
		case event.ToolCall:
			w.called(e.Call)
		case event.ToolResult:
			w.result(e.Result, number)
		case event.Ended:
			w.say()
			if line := eventLine(e); line != "" {
				w.say(w.style.dim(line))
			}
		default:
			if line := eventLine(e); line != "" {
				w.say(w.style.each(w.style.dim, clean(line))...)
			}
		}
	})
}

// grow adds a piece of the answer.
func (w *Window) grow(piece string) {
	if w.answer == nil {
		columns, _ := w.term.Size()
		w.answer = markdown.New(markdown.Options{Width: columns, Styled: !w.o.Plain && !w.o.Reader})
		w.print("")
	}
	w.does = "answering"
	lines := w.answer.Write(piece)
	w.live.Tail = w.answer.Tail()
	w.print(lines...)
}

// called shows a call of a tool.
func (w *Window) called(c *event.Call) {
	w.does = text.Name(c.Name)
	if tasks, ok := eidolon.Tasks(c); ok {
		w.tasks = todoOf(tasks)
	}
	line := callLine(c)
	sign, rest, _ := strings.Cut(strings.TrimPrefix(line, "⏺ "), " ")
	w.say("", w.style.call("⏺ ")+w.style.bold(sign)+" "+rest)
}

func (w *Window) result(r *event.Result, number int) {
	w.does = ""
	if report, ok := run.ReadReport(r); ok {
		for _, line := range report.Lines() {
			w.say(w.style.dim(text.Name(line)))
		}
		return
	}
	if r.Change != nil && !r.Failed {
		w.say(w.style.change(r.Change)...)
		return
	}
	look := w.style.dim
	if r.Failed {
		look = w.style.bad
	}
	w.say(w.style.each(look, folded(r, number))...)
}

// above is what stands between the text and the prompt.
func (w *Window) above() []string {
	if w.o.Reader || !w.state.Busy {
		return nil
	}
	what := w.does
	if what == "" {
		what = "working"
	}
	if w.state.Waiting > 0 {
		what += fmt.Sprintf(", %d waiting", w.state.Waiting)
	}
	line := screen.Working(what, time.Since(w.began), w.state.Spent.Context) + " · Esc interrupts"
	if !w.style.on {
		line = cells.Plain(line)
	}
	return append(screen.Todos(w.tasks, mostTasks), line)
}

// clean divides a text of ours into lines that a terminal does not act on.
func clean(s string) []string {
	if s == "" {
		return nil
	}
	tidy, _ := text.Clean(s)
	return strings.Split(strings.TrimRight(tidy, "\n"), "\n")
}
