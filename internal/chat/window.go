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
	"omniagent/internal/keys"
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
	broken chan error
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
		o: o, term: o.Terminal, style: style{!o.Plain}, broken: make(chan error, 1), kick: make(chan struct{}, 1),
		closed: make(chan struct{}), gone: make(chan struct{}),
	}
	w.room = sync.NewCond(&w.mu)
	w.screen = screen.New(screen.Options{Out: o.Terminal, Size: o.Terminal.Size, Reader: o.Reader})
	w.editor = lineedit.New(lineedit.Options{
		Prompt: w.style.bold("> "), History: o.History, Complete: o.Complete,
		Hint: w.style.dim("a message, /help, @file:"),
	})
	w.live.Input = w.editor.View(w.screen.Width())
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
func (w *Window) Broken() <-chan error { return w.broken }

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
		if w.question = q; q == nil {
			w.live.Below = nil
			w.repaint()
			return
		}
		w.asked++
		w.at = time.Now()
		lines := append([]string{""}, w.style.each(w.style.ask, clean("? "+q.Title))...)
		lines = append(lines, clean(q.Detail)...)
		if q.Change != nil {
			lines = append(lines, w.style.change(q.Change)...)
		}
		w.say(lines...)
		w.live.Below = []string{w.style.ask(q.short())}
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

// hand is the person's hands on the keys.
type hand struct {
	w      *Window
	ctx    context.Context
	typed  chan<- Input
	before int64     // questions shown when the first letter of the line was typed
	ctrlC  time.Time // Ctrl-C with nothing to interrupt
}

// key handles a key, and reports whether there may be more.
func (h *hand) key(k keys.Key) (more bool) {
	w := h.w
	switch {
	case k.Code == keys.Resize:
		columns, _ := w.term.Size()
		w.locked(func() {
			if w.answer != nil {
				w.answer.SetWidth(columns)
			}
		})
		w.screen.Resize()
		h.show()
		return true
	case k.Code == keys.Position:
		w.screen.Position(k.Row, k.Column)
		return true
	case k.Code == keys.Continue:
		w.screen.Restart()
		h.show()
		return true
	case h.letter(k):
		return true
	case k.Is(keys.Escape) && h.busy():
		h.interrupt()
		return true
	case k == keys.C("g") && !w.editor.Empty():
		return h.send(Input{Steer: true})
	}
	if w.editor.Empty() {
		h.before = h.questions()
	}
	switch w.editor.Key(k) {
	case lineedit.Submit:
		return h.send(Input{})
	case lineedit.Interrupt:
		return h.stop()
	case lineedit.EndInput:
		return h.give(Input{Leave: true})
	case lineedit.Suspend:
		if err := w.aside(w.term.Suspend); err != nil {
			w.Notice("the terminal cannot be given back: " + err.Error())
		}
	case lineedit.Redraw:
		w.screen.Restart()
	}
	h.show()
	return true
}

// letter answers a question with one letter, and reports whether it did. What was being typed when the question
// came does not answer it.
func (h *hand) letter(k keys.Key) bool {
	if k.Code != keys.Text || k.Mod != 0 || !h.w.editor.Empty() {
		return false
	}
	h.w.mu.Lock()
	q, asked, at := h.w.question, h.w.asked, h.w.at
	h.w.mu.Unlock()
	if q == nil || len(k.Text) != 1 || !strings.Contains(q.Keys, k.Text) || time.Since(at) < settling {
		return false
	}
	h.w.locked(func() { h.w.say(h.w.style.bold("> " + k.Text)) })
	return h.give(Input{Text: k.Text, Asked: asked})
}

// show has the screen show the editor as it is now.
func (h *hand) show() {
	view := h.w.editor.View(h.w.screen.Width())
	h.w.locked(func() {
		h.w.live.Input = view
		h.w.repaint()
	})
}

// send sends what was typed.
func (h *hand) send(in Input) bool {
	w := h.w
	in.Text, in.Asked = w.editor.Take(), h.before
	h.show()
	w.locked(func() {
		words := strings.TrimSpace(in.Text)
		waits := w.state.Busy && w.question == nil && !in.Steer && !isCommand(words)
		if words != "" && !waits { // one that waits is shown when its turn begins
			w.say(w.typedLines(in.Text)...)
		}
	})
	return h.give(in)
}

func (h *hand) give(in Input) bool {
	select {
	case h.typed <- in:
		return true
	case <-h.ctx.Done():
		return false
	}
}

// stop is Ctrl-C: it empties the line, or ends what runs, or, twice, leaves.
func (h *hand) stop() bool {
	switch {
	case !h.w.editor.Empty():
		h.w.editor.Set("")
		h.show()
	case h.busy():
		h.interrupt()
	case time.Since(h.ctrlC) < twice:
		return h.give(Input{Leave: true})
	default:
		h.ctrlC = time.Now()
		h.w.Notice("Ctrl-C again leaves.")
	}
	return true
}

func (h *hand) interrupt() {
	select {
	case h.w.o.Signals <- os.Interrupt:
	default: // there are several already
	}
}

func (h *hand) busy() bool {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.w.state.Busy
}

func (h *hand) questions() int64 {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.w.asked
}
