package repl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"omniagent/internal/conversation"
	"omniagent/internal/event"
	"omniagent/internal/run"
	"omniagent/internal/text"
)

// listen prints events, and closes their reader at the end.
func (p *Plain) listen(ctx context.Context, events *conversation.Events) {
	defer events.Close()
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.event(e)
		p.mu.Unlock()
	}
}

// event prints an event, and updates the state. The caller holds the lock.
func (p *Plain) event(e event.Event) {
	s := &p.screen
	switch e.Kind {
	case event.Prompted:
		p.prompted = e.Turn
		if _, known := p.turns[e.Turn]; !known {
			p.turns[e.Turn] = ""
		}
		p.update()
	case event.TurnBegan:
		if words := p.turns[e.Turn]; words != "" { // it was queued
			s.say("> " + text.Name(firstLine(words)))
		}
		p.turns[e.Turn] = ""
		p.update()
	case event.Text:
		if e.Delta && e.Parent == "" { // the pieces make up the whole
			s.words(e.Text)
		}
	case event.ToolCall:
		s.say("· " + text.Name(e.Call.Name) + " " + text.Visible(brief(e.Call.ForHosts())))
	case event.ToolResult:
		if report, ok := run.ReadReport(e.Result); ok {
			for _, line := range report.Lines() {
				s.say("  " + text.Name(line))
			}
		} else if e.Result.Failed {
			s.say("  failed: " + firstLine(e.Result.Output))
		}
	case event.Question:
		if p.questions = append(p.questions, e.Ask); len(p.questions) == 1 {
			p.show(e.Ask)
		}
	case event.Withdrawn:
		if p.forget(e.Ask.ID) {
			s.say("· the question needs no answer any more")
		}
	case event.Replied:
		switch r := e.Reply; { // a question answered here is closed already
		case !p.forget(r.Question):
		case r.ByUs:
			s.say("· no: " + text.Name(r.Text))
		default: // by another client of the conversation
			s.say("· somebody has answered: " + text.Name(r.Option))
		}
	case event.Changed:
		if f := e.Facts; f.Mode != "" {
			s.say("· the permission mode is " + text.Name(string(f.Mode)) + " now")
		}
		if f := e.Facts; f.Model != "" {
			s.say("· the model is " + text.Name(f.Model) + " now")
		}
	case event.Retry:
		s.say(fmt.Sprintf("· asking again in %s: %s", e.Retry.After.Round(time.Second), e.Retry.Reason))
	case event.Failed:
		s.say("failed: " + e.Fault.Error())
	case event.Ended:
		p.end(e)
	}
}

// end handles the end of a turn. It asks for more if no turn runs or waits.
func (p *Plain) end(e event.Event) {
	delete(p.turns, e.Turn)
	if e.End.Reason == event.Cancelled {
		p.screen.say("interrupted")
	}
	if len(p.turns) == 0 {
		p.screen.ask()
	}
	p.update()
}

// forget closes a question, and shows the next one if it was the one shown. It reports whether the question was open.
func (p *Plain) forget(id string) bool {
	i := slices.IndexFunc(p.questions, func(q *event.Ask) bool { return q.ID == id })
	if i < 0 {
		return false
	}
	p.questions = slices.Delete(p.questions, i, i+1)
	if i == 0 && len(p.questions) > 0 {
		p.show(p.questions[0])
	}
	return true
}

// show asks a question.
func (p *Plain) show(q *event.Ask) {
	s := &p.screen
	defer p.update()
	if q.Form { // the question of a tool, which a person answers in words
		s.say("? " + strings.ReplaceAll(text.Visible(q.Text), "\n", "\n  "))
		p.questionsShown.Add(1)
		s.print("  say what you choose, Return says nothing: ")
		s.open = true
		return
	}
	s.say("? " + text.Name(questionText(q)))
	// Show the whole command, with nothing removed: its description may differ, and a shell runs even what a terminal
	// hides.
	if c := q.Tool; c != nil {
		what := c.Command
		if what == "" {
			what = string(c.Input)
		}
		s.say("  " + strings.ReplaceAll(text.Visible(what), "\n", "\n  "))
	}
	p.questionsShown.Add(1) // before the text that an answer follows, however fast that is
	always := ""
	if slices.Contains(q.Options, event.Always) {
		always = "a allows exactly this from now on, "
	}
	s.print("  y allows it, " + always + "Return refuses, anything else refuses and says why: ")
	s.open = true
}

// screen prints text, line by line.
type screen struct {
	out    io.Writer
	over   *atomic.Bool // nothing is printed any more
	broken chan<- error // gets the first error of out
	open   bool         // the cursor is after text without a newline
	failed bool
}

// say prints a line of its own.
func (s *screen) say(line string) {
	if s.open {
		s.print("\n")
		s.open = false
	}
	if line != "" {
		clean, _ := text.Clean(line)
		s.print(clean + "\n")
	}
}

// words prints a piece of an answer.
func (s *screen) words(piece string) {
	clean, _ := text.Clean(piece)
	s.print(clean)
	s.open = !strings.HasSuffix(clean, "\n")
}

func (s *screen) ask() {
	s.say("")
	s.print("> ")
}

func (s *screen) print(text string) {
	if s.failed || s.over.Load() {
		return
	}
	if _, err := io.WriteString(s.out, text); err != nil {
		s.failed = true
		s.broken <- err
	}
}

// questionText returns the question without the command, which is shown in full below it.
func questionText(q *event.Ask) string {
	if q.Tool != nil && q.Tool.Command != "" {
		if why, ok := strings.CutPrefix(q.Text, firstLine(q.Tool.Command)); ok {
			return "May this run" + why
		}
	}
	return q.Text
}

func brief(c *event.Call) string {
	switch {
	case c.Command != "":
		return firstLine(c.Command)
	case c.Path != "":
		return text.Name(c.Path)
	}
	if to := c.HandsOver(); to != "" {
		return firstLine(to)
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	for _, name := range []string{"pattern", "url", "description", "query"} {
		var s string
		if json.Unmarshal(in[name], &s) == nil && s != "" {
			return firstLine(s)
		}
	}
	return ""
}

func firstLine(s string) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if len(line) > 200 {
		line, more = strings.ToValidUTF8(line[:200], ""), true
	}
	if more {
		line += " …"
	}
	return line
}
