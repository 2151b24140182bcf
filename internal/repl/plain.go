// Package repl is a person in front of an agent, in a terminal.
//
// It promises that what an agent says reaches the screen as text and moves nothing on it; that a question is asked as one, and silence is no
// consent; that Ctrl-C ends the turn, and the conversation only when there is no turn. It refuses to know the agent.
package repl

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/text"
)

// Plain is a conversation line by line, for any terminal and for a pipe.
type Plain struct {
	Session agent.Session
	In      io.Reader
	Out     io.Writer
	Greet   string
	Signals <-chan os.Signal

	working  bool
	question *event.Ask
	over     bool // the person has said so
	open     bool // the cursor is behind text that has not ended its line
}

const closing = 10 * time.Second

// Run talks until the input ends. It returns the exit code.
func (p *Plain) Run(ctx context.Context) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, lines := p.listen(ctx), p.read(ctx)
	p.say(p.Greet)
	p.ask()
	typed := lines
	for !p.over && (typed != nil || p.working) {
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
			p.heed(ctx, line)
		case s := <-p.Signals:
			if !p.working || s != os.Interrupt {
				p.close(ctx)
				if s, ok := s.(syscall.Signal); ok {
					return 128 + int(s)
				}
				return 130
			}
			_ = p.Session.Interrupt(ctx)
		}
	}
	p.close(ctx)
	return 0
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
func (p *Plain) read(ctx context.Context) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewReaderSize(p.In, 64<<10)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				select {
				case lines <- strings.TrimRight(line, "\r\n"):
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

// next is what is typed, as far as it is wanted: while the agent works it waits, but for the answer to a question.
func (p *Plain) next(typed <-chan string) <-chan string {
	if p.working && p.question == nil {
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
		if err := p.Session.Send(ctx, []agent.Block{{Text: line}}); err != nil {
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
	a := agent.Answer{Option: "deny"}
	switch word := strings.ToLower(strings.TrimSpace(line)); word {
	case "y", "yes":
		a.Option = "allow"
	case "", "n", "no":
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
			_, _ = io.WriteString(p.Out, clean)
			p.open = !strings.HasSuffix(clean, "\n")
		}
	case event.ToolCall:
		p.say("· " + e.Call.Name + " " + brief(e.Call))
	case event.ToolResult:
		if e.Result.Failed {
			p.say("  failed: " + firstLine(e.Result.Output))
		}
	case event.Question:
		p.question = e.Ask
		p.say("? " + e.Ask.Text)
		if c := e.Ask.Tool; c != nil { // whole: what the model calls it is not what it does
			what := c.Command
			if what == "" {
				what = string(c.Input)
			}
			p.say("  " + strings.ReplaceAll(what, "\n", "\n  "))
		}
		p.print("  y allows it, Return refuses, anything else refuses and says why: ")
		p.open = true
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

func brief(c *event.Call) string {
	switch {
	case c.Command != "":
		return firstLine(c.Command)
	case c.Path != "":
		return c.Path
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

func (p *Plain) print(s string) { _, _ = io.WriteString(p.Out, s) }

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
