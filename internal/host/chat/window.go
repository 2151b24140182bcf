package chat

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/lineedit"
	"omniagent/internal/term/markdown"
	"omniagent/internal/term/screen"
	"omniagent/internal/term/terminal"
	"omniagent/internal/work/run"
)

// Window is a View in a terminal: the conversation scrolls above a prompt that stays at the bottom.
//
// Three kinds of goroutines share it: Run owns the keys and the editor, a painter owns the screen, and those of the
// chat use the rest. A terminal that blocks stops the painter and then the chat, but not the keys.
type Window struct {
	o      WindowOptions
	term   *terminal.Terminal
	screen *screen.Screen
	editor *lineedit.Editor
	style  style
	now    func() time.Time
	second time.Duration // interval of repainting the figures of a running turn
	broken chan struct{}
	kick   chan struct{} // wakes the painter
	stir   chan struct{} // wakes Run: the state has changed
	closed chan struct{}
	gone   chan struct{} // the painter has ended

	painting sync.Mutex // held while the screen is used; locked before mu

	mu       sync.Mutex
	room     *sync.Cond // for print: there is room for more lines
	blank    bool       // the last line is blank
	lines    []string   // finished lines that the screen has not printed yet
	queued   int        // bytes of lines
	live     screen.Live
	answer   *markdown.Renderer // of the answer that is being written; nil: none
	state    State
	opened   bool                // a conversation is open
	began    time.Time           // when the running turn began
	heard    bool                // the turn has had an event
	does     string              // what the turn does
	before   string              // does before the question
	agreed   map[string][]string // the changed lines that a question has shown, by the id of the call
	tasks    []screen.Todo
	lists    eidolon.Lists
	question *Question
	drafts   []string       // lines for Run to put into the editor
	typing   bool           // the line is not empty, or the history is being searched
	picker   *screen.Picker // for a question with items
	asked    int64
	at       time.Time // when the question was shown
	since    time.Time // when the person was asked
	over     bool
}

// WindowOptions are the options of a window.
type WindowOptions struct {
	Terminal *terminal.Terminal
	Out      io.Writer // for what is printed after Close
	Signals  chan<- os.Signal
	History  *lineedit.History
	Complete lineedit.Source
	Plain    bool               // no colours
	Reader   bool               // a screen reader is used
	Pager    func(string) error // shows a long text; nil: it is printed
	Notify   func(string)       // notifies a person who looks elsewhere; nil: ring the bell
}

const (
	mostQueued = 4096 // lines
	mostBytes  = 1 << 20
	// mostTasks limits the tasks that are shown.
	mostTasks = 6
	// settling is how long after a question appears a typed letter does not answer it.
	settling = 300 * time.Millisecond
	// reasons is how long a letter must stay the only one to be an answer, and not the beginning of a reason.
	reasons = 700 * time.Millisecond
	// longTurn is how long a turn takes at least for a notification at its end.
	longTurn = 10 * time.Second
	twice    = 2 * time.Second
	waiting  = "waiting for you"
)

// NewWindow returns a window on a terminal, which it closes.
func NewWindow(o WindowOptions) *Window {
	w := &Window{
		o: o, term: o.Terminal, now: time.Now, style: style{!o.Plain}, broken: make(chan struct{}),
		kick: make(chan struct{}, 1), stir: make(chan struct{}, 1), second: time.Second,
		closed: make(chan struct{}), gone: make(chan struct{}), agreed: map[string][]string{},
	}
	w.room = sync.NewCond(&w.mu)
	w.screen = screen.New(screen.Options{Out: o.Terminal, Size: o.Terminal.Size, Reader: o.Reader, Plain: o.Plain})
	edit := lineedit.Options{Prompt: w.style.bold("> "), History: o.History, Complete: o.Complete}
	if !o.Reader { // a screen reader would read it
		edit.Hint = w.style.dim("a message, /help, @file:")
	}
	w.editor = lineedit.New(edit)
	w.live.Input = w.editor.View(w.screen.Width())
	w.kick <- struct{}{}
	go w.paint()
	return w
}

// paint is the painter: it prints lines and the live region until the window is closed.
func (w *Window) paint() {
	defer close(w.gone)
	for open := true; open; {
		select {
		case <-w.kick:
		case <-w.closed:
			open = false
		}
		w.painting.Lock()
		w.giveToScreen()
		w.painting.Unlock()
	}
}

// giveToScreen prints the queued lines and the live region. The caller holds painting.
func (w *Window) giveToScreen() {
	w.mu.Lock()
	lines, live := w.lines, w.live
	w.lines, w.queued = nil, 0
	w.room.Broadcast()
	w.mu.Unlock()
	w.screen.Print(lines...)
	w.screen.Set(live)
}

// repaint updates the live region and wakes the painter. The caller holds the lock.
func (w *Window) repaint() {
	w.live.Above, w.live.Below = w.above(), w.below()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// stirred wakes Run. The caller holds the lock.
func (w *Window) stirred() {
	select {
	case w.stir <- struct{}{}:
	default:
	}
}

// print adds finished lines. The caller holds the lock.
func (w *Window) print(lines ...string) {
	for (len(w.lines) > mostQueued || w.queued > mostBytes) && !w.over {
		w.room.Wait()
	}
	if w.over {
		for _, line := range lines {
			_, _ = io.WriteString(w.o.Out, line+"\n") // nothing can be done about an error
		}
		return
	}
	if n := len(lines); n > 0 {
		w.blank = cells.Plain(lines[n-1]) == ""
	}
	for _, line := range lines {
		w.queued += len(line)
	}
	w.lines = append(w.lines, lines...)
	w.repaint()
}

// say prints lines after the finished part of the answer, which continues below them.
func (w *Window) say(lines ...string) {
	if w.answer != nil {
		w.live.Tail = nil
		w.print(w.answer.Flush()...)
	}
	w.print(lines...)
}

// finish ends the answer that is being written.
func (w *Window) finish() {
	if w.answer != nil {
		w.live.Tail = nil
		w.print(w.answer.Close()...)
		w.answer = nil
	}
}

// part is like say, but prints a blank line first.
func (w *Window) part(lines ...string) {
	if w.say(); !w.blank {
		w.print("")
	}
	w.print(lines...)
}

// locked runs do under the lock.
func (w *Window) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// glance is the state of a window that the handling of a key needs.
type glance struct {
	question     *Question
	picker       *screen.Picker
	asked        int64
	at           time.Time
	busy, opened bool
	waits        bool // there are waiting lines
}

func (w *Window) glance() glance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return glance{w.question, w.picker, w.asked, w.at, w.state.Busy, w.opened, len(w.state.Waiting) > 0}
}

// Broken implements View.
func (w *Window) Broken() <-chan struct{} { return w.broken }

// Err implements View.
func (w *Window) Err() error { return nil }

// Close implements View.
func (w *Window) Close() {
	w.locked(func() {
		w.finish()
		w.over = true
		w.live = screen.Live{}
		w.room.Broadcast()
	})
	close(w.closed)
	<-w.gone
	_ = w.screen.Close() // write errors were reported before
	_ = w.term.Close()
}

// Notice implements View.
func (w *Window) Notice(line string) {
	w.locked(func() { w.say(w.style.each(w.style.dim, w.ours(line))...) })
}

// Draft implements View.
func (w *Window) Draft(line string) {
	w.locked(func() {
		w.drafts = append(w.drafts, line)
		w.stirred()
	})
}

// Page implements View.
func (w *Window) Page(content string) {
	if w.o.Pager == nil || w.o.Reader || w.fits(content) {
		w.locked(func() { w.say(clean(content)...) })
		return
	}
	err := w.aside(func() error { return w.o.Pager(content) })
	if err != nil {
		w.Notice("the pager failed: " + err.Error())
	}
}

// aroundText is how many rows a window needs besides a text: for the typed line, the status and the prompt.
const aroundText = 4

// fits reports whether the window can show a whole text above the prompt.
func (w *Window) fits(content string) bool {
	columns, rows := w.term.Size()
	taken := 0
	for line := range strings.Lines(content) {
		if taken += 1 + max(cells.Width(line)-1, 0)/max(columns, 1); taken > rows-aroundText {
			return false
		}
	}
	return true
}

// aside clears the live region while use has the terminal.
func (w *Window) aside(use func() error) error {
	w.painting.Lock()
	defer w.painting.Unlock()
	w.giveToScreen()
	_ = w.screen.Clear() // the next frame detects a screen that cannot be written
	defer w.screen.Restart()
	return use()
}

// Message implements View.
func (w *Window) Message(message string) {
	w.locked(func() { w.part(w.typedLines(message)...) })
}

// typedLines returns the lines of a message of the person.
func (w *Window) typedLines(message string) []string {
	lines := clean(message)
	if len(lines) > 0 {
		lines[0] = "> " + lines[0]
	}
	return w.style.each(w.style.bold, lines)
}

// State implements View.
func (w *Window) State(s State) {
	w.locked(func() {
		ended := w.state.Busy && !s.Busy
		if !w.state.Busy && s.Busy {
			w.began, w.does, w.heard = w.now(), "", false
		}
		w.state, w.opened = s, true
		w.stirred()
		if ended {
			w.tasks = nil
			w.ended()
		}
		w.repaint()
	})
}

// ended notifies the person of the end of a long turn. The caller holds the lock.
func (w *Window) ended() {
	if w.now().Sub(w.began) > longTurn {
		w.call("the turn is over")
	}
	w.began, w.heard = w.now(), false
}

// ticked repaints what depends on the time. The caller holds the lock.
func (w *Window) ticked() {
	if w.state.Agent != "" && !w.heard && w.now().Sub(w.began) >= longTurn {
		w.heard = true // only once
		w.say(w.style.dim("· " + text.Name(w.state.Agent) +
			" has not answered yet. Some agents need minutes to start."))
	}
	w.repaint()
}

// call notifies a person who looks elsewhere. The caller holds the lock.
func (w *Window) call(what string) {
	if w.term.Front() {
		return
	}
	if w.o.Notify != nil {
		w.o.Notify(what)
		return
	}
	_, _ = io.WriteString(w.term, "\a") // best effort
}

// Event implements View.
func (w *Window) Event(e event.Event, number int) {
	w.locked(func() {
		w.heard = true
		switch e.Kind {
		case event.Text:
			switch {
			case e.Parent != "":
			case e.Delta:
				w.grow(e.Text)
			default: // the whole text, after its pieces
				w.finish()
			}
		case event.TurnBegan:
			w.finish()
			w.does, w.tasks, w.lists = "", nil, nil // began stays as it is
		case event.Thinking:
			w.does = "thinking"
		case event.ToolCall:
			if e.Parent == "" && e.Call.ID != eidolon.ShellWord { // a command of the person does not end the answer
				w.finish()
			}
			w.called(e.Call)
		case event.ToolResult:
			w.result(e, number)
		case event.Ended:
			w.finish()
			w.say(w.style.each(w.style.dim, w.ours(eventLine(e)))...)
			if w.state.Busy { // otherwise it is an earlier record
				w.ended()
			}
		default:
			if line := eventLine(e); line != "" {
				w.say(w.style.each(w.style.dim, w.ours(line))...)
			}
		}
	})
}

// grow adds a piece of the answer.
func (w *Window) grow(piece string) {
	if w.answer == nil {
		if piece = strings.TrimLeft(piece, "\n"); piece == "" {
			return
		}
		columns, _ := w.term.Size()
		w.answer = markdown.New(markdown.Options{
			Width: columns, Wraps: !w.o.Reader, Styled: !w.o.Plain && !w.o.Reader,
		})
		if !w.blank {
			w.print("")
		}
	}
	w.does = "answering"
	lines := w.answer.Write(piece)
	w.live.Tail = w.answer.Tail()
	w.print(lines...)
}

// called shows a call of a tool.
func (w *Window) called(c *event.Call) {
	w.does = text.Name(c.Name)
	w.lists.RecordCall(c)
	line := callLine(c)
	sign, rest, _ := strings.Cut(strings.TrimPrefix(line, "⏺ "), " ")
	w.part(w.style.call("⏺ ") + w.style.bold(sign) + " " + rest)
}

func (w *Window) result(e event.Event, number int) {
	r := e.Result
	w.does = ""
	if tasks, ok := w.lists.After(r); ok {
		w.tasks = todoOf(tasks)
	}
	if report, ok := run.ReadReport(r); ok {
		for _, line := range report.Lines() {
			w.say(w.style.dim(text.Name(line)))
		}
		return
	}
	if r.Change != nil && !r.Failed {
		if marks := marksOf(r.Change); slices.Equal(marks, w.agreed[r.ID]) {
			w.say(w.style.dim(text.Name(r.Change.Path) + counted(marks)))
		} else {
			w.say(w.style.change(r.Change)...)
		}
		delete(w.agreed, r.ID)
		return
	}
	look, lines := w.style.dim, folded(e, number)
	if r.Failed {
		look, lines = w.style.bad, w.prose(lines)
	}
	w.say(w.style.each(look, lines)...)
}

// prose wraps lines between words.
func (w *Window) prose(lines []string) (rows []string) {
	columns, _ := w.term.Size()
	if w.o.Reader {
		return lines
	}
	for _, line := range lines {
		rows = append(rows, cells.Prose(line, 0, columns-1)...)
	}
	return rows
}

// ours returns the lines of a text of ours, wrapped between words. It does not wrap a command to copy.
func (w *Window) ours(s string) (rows []string) {
	columns, _ := w.term.Size()
	for _, line := range clean(s) {
		if rows = append(rows, line); cells.Width(line) > columns && !w.o.Reader &&
			!strings.HasPrefix(line, goOnWith) {
			rows = append(rows[:len(rows)-1], cells.Rows(line, columns)...)
		}
	}
	return rows
}

// clean returns the lines of a text without control characters.
func clean(s string) []string {
	if s == "" {
		return nil
	}
	tidy, _ := text.Clean(s)
	return strings.Split(strings.TrimRight(tidy, "\n"), "\n")
}
