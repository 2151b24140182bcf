package chat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/text"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/work/run"
)

// Plain is a View that reads and prints lines, for a pipe and for any terminal.
type Plain struct {
	in     io.Reader
	out    io.Writer
	typed  bool
	broken chan struct{}
	err    error        // why it is closed
	asked  atomic.Int64 // questions shown so far
	ready  atomic.Bool  // the cursor is after "> "; in a pipe, input does not move it
	over   atomic.Bool  // nothing more is printed

	open   bool // the cursor is after text without a newline
	asking bool // a question is shown
	failed bool
}

// NewPlain returns a view that reads lines from in and prints to out. typed: a terminal shows what is typed.
func NewPlain(in io.Reader, out io.Writer, typed bool) *Plain {
	return &Plain{in: in, out: out, typed: typed, broken: make(chan struct{})}
}

// plainWidth is the width of questions.
const plainWidth = 76

const longestLine = 64 << 20

// Run implements View. It reads all the time, to know how many questions were shown before a line was typed.
func (p *Plain) Run(ctx context.Context, typed chan<- Input) {
	defer close(typed)
	from := &stamped{Reader: p.in, now: &p.asked}
	for in := lines.NewReader(from, longestLine); in.Next(); {
		one := Input{Asked: from.after, Long: in.Long}
		if !in.Long {
			one.Text = strings.TrimRight(string(in.Text), "\r")
		}
		if p.typed {
			p.ready.Store(false)
		}
		select {
		case typed <- one:
		case <-ctx.Done():
			return
		}
	}
}

// stamped is a reader that records how many questions had been shown at the last read.
type stamped struct {
	io.Reader
	now   *atomic.Int64
	after int64
}

func (s *stamped) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.after = s.now.Load()
	return n, err
}

// Broken implements View.
func (p *Plain) Broken() <-chan struct{} { return p.broken }

// Err implements View.
func (p *Plain) Err() error { return p.err }

// Close implements View.
func (p *Plain) Close() { p.over.Store(true) }

// Notice implements View.
func (p *Plain) Notice(line string) { p.say(line) }

// Page implements View.
func (p *Plain) Page(text string) { p.say(text) }

// Draft implements View. It never has a line to give back.
func (p *Plain) Draft(string) {}

// Message implements View.
func (p *Plain) Message(message string) { p.say("> " + text.Name(firstLine(message))) }

// State implements View.
func (p *Plain) State(s State) {
	switch {
	case s.Busy:
		p.ready.Store(false)
	case !p.asking && (s.Again && p.typed || !p.ready.Load()):
		p.ready.Store(false)
		p.say("")
		p.print("> ")
		p.ready.Store(true)
	}
}

// Ask implements View.
func (p *Plain) Ask(q *Question) {
	if p.asking = q != nil; q == nil {
		p.open = p.open && !p.typed // the person has typed Return
		return
	}
	p.say("? " + strings.ReplaceAll(q.Title, "\n", "\n  "))
	for _, row := range q.rows(plainWidth) {
		p.say("  " + row)
	}
	if q.Change != nil {
		p.say(strings.Join(style{}.change(q.Change), "\n"))
	}
	if q.Why != "" {
		p.say("  " + q.Why)
	}
	p.asked.Add(1) // before the text is shown, so that no answer comes first
	p.print("  " + q.Hint)
	p.open = true
}

// Event implements View.
func (p *Plain) Event(e event.Event, number int) {
	switch e.Kind {
	case event.Text:
		if e.Delta && e.Parent == "" { // the pieces add up to the whole
			p.words(e.Text)
		}
	case event.ToolCall:
		p.say(callLine(e.Call))
	case event.ToolResult:
		if report, ok := run.ReadReport(e.Result); ok {
			for _, line := range report.Lines() {
				p.say("  " + text.Name(line))
			}
			return
		}
		for _, line := range folded(e, number) {
			p.say("  " + line)
		}
	default:
		if line := eventLine(e); line != "" {
			p.say(line)
		}
	}
}

// say prints a separate line.
func (p *Plain) say(line string) {
	if p.open || p.ready.Load() {
		p.print("\n")
		p.open = false
		p.ready.Store(false)
	}
	if line != "" {
		clean, _ := text.Clean(line)
		p.print(clean + "\n")
	}
}

// words prints a piece of an answer.
func (p *Plain) words(piece string) {
	clean, _ := text.Clean(piece)
	p.print(clean)
	p.open = !strings.HasSuffix(clean, "\n")
}

func (p *Plain) print(text string) {
	if p.failed || p.over.Load() {
		return
	}
	if _, err := io.WriteString(p.out, text); err != nil {
		p.failed, p.err = true, err
		close(p.broken)
	}
}

// advised returns an error with its hints, one on each line.
func advised(err error) string {
	f, words := fault.Of(err), err.Error()
	for _, hint := range f.Hints() {
		words += "\nhint: " + text.Flat(hint)
	}
	for _, way := range f.Ways {
		words += "\n  " + way
	}
	return words
}

// eventLine describes an event in a line, with a hint if there is one, or returns "".
func eventLine(e event.Event) string {
	switch e.Kind {
	case event.Changed:
		var said []string
		if f := e.Facts; f.Mode != "" {
			said = append(said, "the permission mode is "+text.Name(string(f.Mode))+" now")
		}
		if f := e.Facts; f.Model != "" {
			said = append(said, "the model is "+text.Name(f.Model)+" now")
		}
		if len(said) > 0 {
			return "· " + strings.Join(said, "\n· ")
		}
	case event.Denied:
		if e.Denial.CallID != "" {
			return "" // the result of the call says it
		}
		return "· " + text.Name(e.Denial.Tool) + " was not allowed: " + firstLine(e.Denial.Reason)
	case event.Compacted:
		return fmt.Sprintf("· the conversation was shortened; it had %d tokens", e.Compaction.Before)
	case event.Retry:
		return "· " + e.Retry.Sentence()
	case event.Failed:
		return "failed: " + advised(e.Fault)
	case event.Ended:
		var lines []string
		switch {
		case e.End.Reason == event.Cancelled:
			lines = append(lines, "interrupted")
		case e.End.OK, conversation.Abandoned(e.End):
			for _, note := range e.End.Notes {
				lines = append(lines, "· "+note)
			}
		}
		if lost := e.End.Lost(); lost != "" {
			lines = append(lines, "· "+strings.ReplaceAll(lost, " --add-dir ", " /add-dir "))
		}
		return strings.Join(lines, "\n")
	}
	return ""
}
