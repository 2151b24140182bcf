package modelserver

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Script is a Backend that says what is written down: a rehearsal of a model.
//
// It is an array of steps, in JSON; comments and trailing commas are allowed:
//
//	[
//	  {"say": "I will look."},
//	  {"shell": "ls"},
//	  {"write": {"path": "note.txt", "content": "hello\n"}},
//	  {"say": "ls said ${result}, and you said ${input}"}
//	]
//
// A step does one of these:
//
//	{"say": "text"}                  text; ${input} is the last message of the user, ${input.length} its length
//	                                 in characters, ${result} what the last tool answered
//	{"think": "text"}                thinking, where the wire has it
//	{"shell": "command"}             the agent's own shell
//	{"write": {"path": "p", "content": "c"}}
//	{"read": "path"}
//	{"web": "https://…"}             the agent's own tool to fetch a page
//	{"search": "query"}              and to search; where the model's side searches, the answer says that it did
//	{"ask": "question"}              the agent's own tool to ask the user
//	{"call": {"name": "n", "input": {}}}  any tool, also one that the agent does not offer
//	{"calls": [ … ]}                 several of those at once
//	{"decline": "text"}              the model declines, in the wire's own form; the text may be empty
//	{"json": {}}                     an answer in the form that the request asked for
//	{"error": 429, "retry_after": 1} an error: any status from 400 to 599, or "context_full"; "message"
//	                                 replaces the API's own words
//	{"stall": "headers"}             nothing more comes: before the headers, after them ("start"),
//	                                 or half-way ("middle")
//	{"cut": "middle"}                the connection drops: "headers", "start", "middle", {"events": 3}
//	                                 or {"bytes": 100}
//
// Stall and cut may also be added to another action, whose answer then breaks. With "times": 2 an error, a stall or a
// cut happens to the first two attempts only, and the third attempt gets the answer; without it, to all of them. Any
// step may have "usage": {"input": 1, "output": 2, "cached": 3}, where input are the tokens that came from no cache.
// Say and think may have "repeat": 1000: the text is said so often, each time as an event of its own.
//
// Any step may have "slow": {"first": "10s"}, nothing for so long, {"after": "10s"}, a silence after the first piece,
// {"piece": "50ms"}, a pause before each piece, and {"byte": "1s"}, a pause before each byte, or several of them. A
// duration alone is a pause before each piece.
//
// An answer of the model reaches up to the next call, so that text and thinking before a call are one answer with it.
// Where the agent offers no such tool, the text "no shell tool is offered" takes the place of the call and the answer
// goes on. After the last step the model says "Done."; an empty script says "ok".
//
// An object with "steps" may stand in place of the array. With "toolless": true in it, requests without tools play the
// script as well; "slow" in it holds for every answer.
//
// A script has no state in a conversation: which step answers follows from the request alone, from the number of
// answers since the last message of the user. So repeated requests and requests outside the conversation shift nothing.
// The latter (a title, a route, a summary of a page: all that offers the model no tool to call) get "ok", or an answer
// that fits their schema. Only attempts, for "times", are counted.
type Script struct {
	steps    []step
	toolless bool
	slow     Pace

	mu       sync.Mutex
	attempts map[string]int
}

// Answered is the script without its first questions, of the number n, whose answers are known before it begins.
func (s *Script) Answered(n int) *Script {
	rest := &Script{toolless: s.toolless}
	for _, one := range s.steps {
		if one.asks() && n > 0 {
			n--
			continue
		}
		rest.steps = append(rest.steps, one)
	}
	return rest
}

// After is the rest of the script after a number of questions that it asked: what is left where the answer to one comes
// as a new message.
func (s *Script) After(questions int) *Script {
	rest := &Script{steps: s.steps, toolless: s.toolless}
	for i, one := range s.steps {
		if one.asks() && questions > 0 {
			questions--
			rest.steps = s.steps[i+1:]
		}
	}
	return rest
}

// asks reports whether a step asks the user.
func (st step) asks() bool {
	return st.do == ask || st.do == invoke && slices.Contains(names(ask), st.text)
}

// action is what a step does.
type action string

const (
	say        action = "say"
	think      action = "think"
	decline    action = "decline"
	shell      action = "shell"
	write      action = "write"
	read       action = "read"
	web        action = "web"
	search     action = "search"
	ask        action = "ask"
	invoke     action = "call"
	several    action = "calls"
	answerJSON action = "json"
	trouble    action = "trouble" // an error, or a break by itself
)

type step struct {
	do      action
	text    string // what to say, the command, path, address, query, question, or the name of a tool
	content string // of a file
	input   JSON   // of a tool, or the answer
	calls   []step
	slow    Pace
	repeat  int
	usage   *Usage
	faults  []mishap
}

// mishap is an error or a break.
type mishap struct {
	fail  *Failure
	brk   Break
	times int // 0: always
	slow  Pace
}

// turn is one answer of the model.
type turn struct {
	steps  []step
	faults []mishap
}

const (
	closing  = "Done."
	nothing  = "ok"
	breaking = "This answer breaks off before it ends, as the script says."
)

// Answer is the part of a Backend.
func (s *Script) Answer(_ context.Context, r *Request, w Writer) error {
	w.Slow(s.slow)
	c := converse(r)
	if s.isErrand(r, c) {
		return inForm(r, w, nothing)
	}
	if len(s.steps) == 0 {
		return last(r, c, w, nothing)
	}
	turns := s.turns(c)
	if c.position >= len(turns) {
		return last(r, c, w, closing)
	}
	t := turns[c.position]
	if m := s.mishap(t, c); m != nil {
		w.Slow(m.slow)
		if m.fail != nil {
			return w.Fail(*m.fail)
		}
		w.Break(m.brk)
		if len(t.steps) == 0 {
			return w.Text(breaking)
		}
	}
	for _, st := range t.steps {
		if err := s.play(st, c, w); err != nil {
			return err
		}
	}
	return nil
}

// turns divides the steps into answers, for what this agent offers.
func (s *Script) turns(c *conversation) []turn {
	var out []turn
	var t turn
	end := func() {
		if len(t.steps) > 0 || len(t.faults) > 0 {
			out = append(out, t)
		}
		t = turn{}
	}
	for _, st := range s.steps {
		if st.do != trouble {
			t.steps = append(t.steps, st)
		}
		t.faults = append(t.faults, st.faults...)
		always := slices.ContainsFunc(st.faults, func(m mishap) bool { return m.times == 0 })
		if always || st.do == decline || len(c.resolve(st)) > 0 {
			end()
		}
	}
	end()
	return out
}

// mishap counts an attempt at a turn and finds what goes wrong with it.
func (s *Script) mishap(t turn, c *conversation) *mishap {
	if len(t.faults) == 0 {
		return nil
	}
	s.mu.Lock()
	if s.attempts == nil || len(s.attempts) > 10_000 {
		s.attempts = map[string]int{}
	}
	key := fmt.Sprint(c.r.Wire, " ", c.users, " ", c.position, " ", c.input)
	s.attempts[key]++
	n := s.attempts[key]
	s.mu.Unlock()
	for i, m := range t.faults {
		if m.times == 0 || n <= m.times {
			return &t.faults[i]
		}
		n -= m.times
	}
	return nil
}

// play says one step.
func (s *Script) play(st step, c *conversation, w Writer) error {
	w.Slow(st.slow)
	if st.usage != nil {
		w.Usage(*st.usage)
	}
	switch st.do {
	case say:
		return st.often(func() error { return c.text(w, c.expand(st.text), false) })
	case think:
		return st.often(func() error { return w.Think(c.expand(st.text)) })
	case decline:
		return w.Decline(c.expand(st.text))
	case several:
		for _, inner := range st.calls {
			if err := s.play(inner, c, w); err != nil {
				return err
			}
		}
		return nil
	}
	if calls := c.resolve(st); len(calls) > 0 {
		return w.Call(calls[0])
	}
	switch {
	case st.do == answerJSON:
		return c.text(w, string(st.input), false)
	case st.do == search && c.hostedSearch():
		return w.Search(st.text)
	}
	return c.text(w, "no "+string(st.do)+" tool is offered", true)
}

// often calls do as often as the step says.
func (st step) often(do func() error) error {
	for range max(1, st.repeat) {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// text says a text; what stands for a call has a line of its own.
func (c *conversation) text(w Writer, text string, line bool) error {
	if c.hasText && (line || c.separate) {
		text = "\n" + text
	}
	c.hasText, c.separate = true, line
	return w.Text(text)
}

// expand puts the conversation into a text.
func (c *conversation) expand(text string) string {
	return strings.NewReplacer("${input}", c.input, "${input.length}", strconv.Itoa(utf8.RuneCountInString(c.input)),
		"${result}", c.result).Replace(text)
}

// isErrand reports whether a request does not belong to the conversation.
func (s *Script) isErrand(r *Request, c *conversation) bool {
	if slices.ContainsFunc(r.Tools, func(t Tool) bool { return !t.Hosted() }) {
		return false
	}
	return !s.toolless || len(r.Tools) > 0 || c.isKnownErrand()
}

// inForm says text, or something in the form that the request asks for.
func inForm(r *Request, w Writer, text string) error {
	if !absent(r.Schema) {
		text = string(sample(r.Schema))
	}
	return w.Text(text)
}

// last answers after the script has ended. A request for a form gets one.
func last(r *Request, c *conversation, w Writer, text string) error {
	if t, ok := c.structured(); ok && !c.hasCalled(t.Name) {
		return w.Call(t.call(sample(t.Schema)))
	}
	return inForm(r, w, text)
}
