package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/tool"
)

// Mode says what may run without asking.
type Mode string

// The modes, from the strictest.
const (
	DenyAll  Mode = "deny"      // nothing runs
	AskAll   Mode = "ask"       // every call is asked about
	Prompt   Mode = "prompt"    // what only reads runs, the rest is asked about
	AutoEdit Mode = "auto-edit" // files of the workspace may be changed as well
	Yolo     Mode = "yolo"      // everything runs
)

// verdict is the word on one call.
type verdict struct {
	word   word
	reason string // of a denial, for the model and for people
}

type word uint8

const (
	allow word = iota
	ask
	deny
)

type policy struct{ mode Mode }

// judge looks at what a call would do. Where walls come to stand between tools and the system, they are stricter than this, never laxer.
func (p policy) judge(a tool.Action) verdict {
	outside := a.Changes || a.Kind == event.Web || a.Kind == event.MCP
	switch p.mode {
	case Yolo:
		return verdict{}
	case DenyAll:
		return verdict{deny, "the permission mode deny lets no tool run; say what you would do instead"}
	case AskAll:
		return verdict{word: ask}
	case AutoEdit:
		if a.Kind == event.Write && len(a.Paths) > 0 && !slices.ContainsFunc(a.Paths, runsLater) {
			return verdict{}
		}
	}
	if !outside {
		return verdict{}
	}
	return verdict{word: ask}
}

// runsLater says whether what is written there is run by git, for whoever comes by. A name may mean .git without being it: Windows leaves out
// dots and blanks at the end and what follows a colon, and knows it as GIT~1; macOS leaves out characters that have no width.
func runsLater(name string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '\\' }), func(element string) bool {
		element, _, _ = strings.Cut(element, ":")
		element = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return r
		}, element)
		element = strings.TrimRight(element, ". ")
		return strings.EqualFold(element, ".git") || strings.EqualFold(element, "git~1")
	})
}

// The options of a question about a call.
const (
	Allow = "allow"
	Deny  = "deny"

	nobody = "nobody" // ours: who could have answered has gone
)

// expect makes room for the answer to a question about a call; forget takes it away.
func (s *Session) expect(id string) (answer chan agent.Answer, forget func()) {
	answer = make(chan agent.Answer, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions[id] = answer
	return answer, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.questions, id)
	}
}

// NobodyAnswers says that no answer will come any more: questions that are open, and those to come, are denials.
func (s *Session) NobodyAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.CanAsk = false
	for id, answer := range s.questions {
		delete(s.questions, id)
		answer <- agent.Answer{Option: nobody} // it has room for one
	}
}

// permitted asks where somebody has to be asked. nil: it may run; else a denial says why not.
// The answer may come before the question is asked: a host that sees the call knows what it will be asked.
func (l *loop) permitted(ctx context.Context, call *event.Call, a tool.Action, answer <-chan agent.Answer) *event.Denial {
	s := l.session
	no := func(byUser bool, format string, args ...any) *event.Denial {
		return &event.Denial{CallID: call.ID, Tool: call.Name, Reason: fmt.Sprintf(format, args...), ByUser: byUser}
	}
	s.mu.Lock()
	v, canAsk := s.policy.judge(a), s.o.CanAsk
	s.mu.Unlock()
	switch {
	case v.word == allow:
		return nil
	case v.word == deny:
		return no(false, "%s", v.reason)
	case !canAsk:
		return no(false, "%s needs approval, and nobody can be asked (%s)", call.Name, a.Title)
	}
	l.tell(event.Event{Kind: event.Question, Ask: &event.Ask{ID: call.ID, Text: a.Title, Options: []string{Allow, Deny}, Tool: call}})
	patience := time.NewTimer(s.o.Limits.Patience)
	defer patience.Stop()
	select {
	case said := <-answer:
		switch {
		case said.Option == Allow:
			return nil
		case said.Option == nobody:
			return no(false, "%s needs approval, and nobody can answer any more (%s)", call.Name, a.Title)
		case said.Text != "":
			return no(true, "the user refused: %s", said.Text)
		}
		return no(true, "the user refused")
	case <-patience.C:
		return no(false, "nobody answered within %s whether it may run", s.o.Limits.Patience)
	case <-ctx.Done():
		return no(false, "the turn was interrupted before anybody answered")
	}
}
