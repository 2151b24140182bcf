// Package repl is a person in front of an agent, in a terminal.
//
// It promises that what an agent says reaches the screen as text and moves nothing on it; that a question is asked as one, and silence is no
// consent; that Ctrl-C ends the turn, and the conversation only when there is no turn. A person answers a question with a line that was typed after it was
// asked: what was typed ahead is the next message. In a pipe, where all may be written at once, the next line is the answer. It refuses to know
// the agent.
package repl

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/text"
)

// Plain is a conversation line by line, for any terminal and for a pipe.
type Plain struct {
	Session agent.Session
	In      io.Reader
	Typed   bool // In is a person at a terminal
	Out     io.Writer
	Greet   string
	Signals <-chan os.Signal

	working  bool
	question *event.Ask
	asked    atomic.Int64 // questions
	ahead    []string     // typed while the agent works, for later
	over     bool         // the person has said so
	open     bool         // the cursor is behind text that has not ended its line
	failed   error        // of Out
}

// line is one that was typed, after so many questions.
type line struct {
	text  string
	after int64
}

const closing = 10 * time.Second

// Run talks until the input ends. It returns the exit code; an error says that what the agent says cannot be written.
func (p *Plain) Run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, lines := p.listen(ctx), p.read(ctx)
	p.say(p.Greet)
	p.ask()
	typed := lines
	for !p.over && p.failed == nil && (typed != nil || p.working || len(p.ahead) > 0) {
		if !p.working && len(p.ahead) > 0 {
			next := p.ahead[0]
			p.ahead = p.ahead[1:]
			p.heed(ctx, next)
			continue
		}
		select {
		case e := <-events:
			p.hear(e)
		case line, more := <-p.next(typed):
			if !more {
				typed = nil
				if s, asks := p.Session.(interface{ NobodyAnswers() }); asks {
					s.NobodyAnswers()
				}
				p.question = nil
				continue
			}
			if p.Typed && p.working && (p.question == nil || line.after < p.asked.Load()) {
				p.ahead = append(p.ahead, line.text)
				continue
			}
			p.heed(ctx, line.text)
		case s := <-p.Signals:
			if !p.working || s != os.Interrupt {
				p.close(ctx)
				if s, ok := s.(syscall.Signal); ok {
					return 128 + int(s), nil
				}
				return 130, nil
			}
			_ = p.Session.Interrupt(ctx)
		}
	}
	p.close(ctx)
	if p.failed != nil {
		return 1, fault.New(fault.OutputFailed, "standard output cannot be written").Because(p.failed)
	}
	return 0, nil
}

// listen passes on what happens.
func (p *Plain) listen(ctx context.Context) <-chan event.Event {
	events := make(chan event.Event)
	go func() {
		for {
			e, err := p.Session.Next(ctx)
			if err != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}

// read passes on what is typed, line by line, and closes the channel behind the last.
func (p *Plain) read(ctx context.Context) <-chan line {
	room := 0
	if p.Typed { // what a person types is read when it is typed
		room = 64
	}
	lines := make(chan line, room)
	go func() {
		defer close(lines)
		from := &stamped{Reader: p.In, now: &p.asked}
		in := bufio.NewReaderSize(from, 64<<10)
		for {
			text, err := in.ReadString('\n')
			if text != "" {
				select {
				case lines <- line{strings.TrimRight(text, "\r\n"), from.after}:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// stamped knows how many questions had been asked when it was last read from.
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

// next is what is typed, as far as it is wanted: of a pipe nothing while the agent works, but for the answer to a question. A terminal is read
// all the time, so that it is known when a line was typed.
func (p *Plain) next(typed <-chan line) <-chan line {
	if p.working && p.question == nil && !p.Typed {
		return nil
	}
	return typed
}

func (p *Plain) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	_, _ = p.Session.Close(ctx)
}

func (p *Plain) heed(ctx context.Context, line string) {
	switch {
	case p.question != nil:
		p.answer(ctx, line)
	case strings.TrimSpace(line) == "":
		p.ask()
	case strings.TrimSpace(line) == "/exit" || strings.TrimSpace(line) == "/quit":
		p.over = true
	default:
		if err := p.Session.Send(ctx, []event.Block{{Text: line}}); err != nil {
			p.say("the message was not taken: " + err.Error())
			p.ask()
			return
		}
		p.working = true
	}
}

// answer takes y or yes for consent, and everything else for a refusal with its reason.
func (p *Plain) answer(ctx context.Context, line string) {
	q := p.question
	p.question, p.open = nil, false // the person has ended the line
	a := event.Reply{Option: "deny"}
	if q.Form && strings.TrimSpace(line) != "" {
		a = event.Reply{Option: "allow", Text: strings.TrimSpace(line)}
	}
	switch word := strings.ToLower(strings.TrimSpace(line)); {
	case q.Form:
	case word == "y", word == "yes":
		a.Option = "allow"
	case word == "a", word == "always":
		a.Option = "always"
	case word == "", word == "n", word == "no":
	default:
		a.Text = strings.TrimSpace(line)
	}
	if err := p.Session.Answer(ctx, q.ID, a); err != nil {
		p.say("the answer came too late")
	}
}

func (p *Plain) hear(e event.Event) {
	switch e.Kind {
	case event.Text:
		if e.Parent == "" {
			clean, _ := text.Clean(e.Text)
			p.print(clean)
			p.open = !strings.HasSuffix(clean, "\n")
		}
	case event.ToolCall:
		p.say("· " + text.Name(e.Call.Name) + " " + text.Visible(brief(e.Call.ForHosts())))
	case event.ToolResult:
		if e.Result.Failed {
			p.say("  failed: " + firstLine(e.Result.Output))
		}
	case event.Question:
		p.question = e.Ask
		if e.Ask.Form { // the question of a tool, which a person answers in words
			p.say("? " + strings.ReplaceAll(text.Visible(e.Ask.Text), "\n", "\n  "))
			p.asked.Add(1)
			p.print("  say what you choose, Return says nothing: ")
			p.open = true
			return
		}
		p.say("? " + text.Name(asked(e.Ask)))
		// Whole: what the model calls it is not what it does. And nothing taken away: a shell runs what stands in a sequence of a terminal.
		if c := e.Ask.Tool; c != nil {
			what := c.Command
			if what == "" {
				what = string(c.Input)
			}
			p.say("  " + strings.ReplaceAll(text.Visible(what), "\n", "\n  "))
		}
		p.asked.Add(1) // before the words that an answer follows, however fast it is
		always := ""
		if slices.Contains(e.Ask.Options, "always") {
			always = "a allows exactly this from now on, "
		}
		p.print("  y allows it, " + always + "Return refuses, anything else refuses and says why: ")
		p.open = true
	case event.Changed:
		if f := e.Facts; f.Mode != "" {
			p.say("· the permission mode is " + text.Name(string(f.Mode)) + " now")
		}
		if f := e.Facts; f.Model != "" {
			p.say("· the model is " + text.Name(f.Model) + " now")
		}
	case event.Retry:
		p.say(fmt.Sprintf("· asking again in %s: %s", e.Retry.After.Round(time.Second), e.Retry.Reason))
	case event.Failed:
		p.say("failed: " + e.Fault.Error())
	case event.Ended:
		p.working, p.question = false, nil
		if e.End.Reason == "cancelled" {
			p.say("interrupted")
		}
		p.ask()
	}
}

// asked is the question without the command, which is shown whole below it.
func asked(q *event.Ask) string {
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

// say prints a line of its own.
func (p *Plain) say(s string) {
	if p.open {
		p.print("\n")
		p.open = false
	}
	if s != "" {
		clean, _ := text.Clean(s)
		p.print(clean + "\n")
	}
}

func (p *Plain) ask() {
	p.say("")
	p.print("> ")
}

func (p *Plain) print(s string) {
	if p.failed == nil {
		_, p.failed = io.WriteString(p.Out, s)
	}
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
