package modelserver

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/text"
)

// ParseScript reads a script. The error names the line and the column of the first thing that is wrong.
func ParseScript(data []byte) (*Script, error) {
	v, err := literal.ParseJSON5(data)
	if err != nil {
		if syntax, is := errors.AsType[*literal.SyntaxError](err); is {
			return nil, wrong(syntax.Pos, "%s", syntax.Message)
		}
		return nil, fault.New(fault.Invalid, "the script cannot be read").Because(err)
	}
	s := &Script{}
	if v.Kind == literal.Object {
		if err := only(v, "script", "steps", "toolless", "slow"); err != nil {
			return nil, err
		}
		if m, ok := v.Member("slow"); ok {
			if err := s.slow.read(m.Value); err != nil {
				return nil, err
			}
		}
		if m, ok := v.Member("toolless"); ok {
			if m.Value.Kind != literal.Bool {
				return nil, mismatch(m.Value, "toolless", "true or false")
			}
			s.toolless = m.Value.Bool
		}
		m, ok := v.Member("steps")
		if !ok {
			return nil, wrong(v.Pos, "the script has no member steps")
		}
		v = m.Value
	}
	if v.Kind != literal.Array {
		return nil, mismatch(v, "the script", "an array of steps")
	}
	for _, item := range v.Items {
		st, err := parseStep(item)
		if err != nil {
			return nil, err
		}
		s.steps = append(s.steps, st.slowed(s.slow))
	}
	return s, nil
}

func wrong(pos literal.Pos, format string, args ...any) *fault.Fault {
	f := fault.New(fault.Invalid, format, args...)
	f.Message = "script:" + pos.String() + ": " + f.Message
	return f.Hint("correct the script at line %d, column %d", pos.Line, pos.Col)
}

func mismatch(v literal.Value, what, want string) *fault.Fault {
	return wrong(v.Pos, "%s must be %s, not %s", what, want, v.Kind)
}

// objectOf refuses what is not an object, and members that are not known. form describes the object.
func objectOf(v literal.Value, what, form string, known ...string) error {
	if v.Kind != literal.Object {
		return mismatch(v, what, form)
	}
	return only(v, what, known...)
}

// only refuses members that are not known.
func only(v literal.Value, what string, known ...string) error {
	for _, m := range v.Members {
		if slices.Contains(known, m.Key) {
			continue
		}
		f := wrong(m.KeyPos, "%s has no member %q", what, m.Key)
		if near := text.Nearest(m.Key, known); near != "" {
			return f.Hint("did you mean %s?", near)
		}
		return f.Hint("members are %s", strings.Join(known, ", "))
	}
	return nil
}

// textOf reads a string.
func textOf(v literal.Value, what string, into *string) error {
	if v.Kind != literal.String {
		return mismatch(v, what, "a string")
	}
	*into = v.Str
	return nil
}

// textMember reads a required member of an object, which is a string.
func textMember(v literal.Value, what, name string, into *string) error {
	m, ok := v.Member(name)
	if !ok {
		return wrong(v.Pos, "%s has no member %s", what, name)
	}
	return textOf(m.Value, name, into)
}

func actions() []string {
	return []string{
		"say", "think", "decline", "shell", "write", "read", "web", "search", "ask", "call", "calls", "json", "error",
	}
}

func modifiers() []string {
	return []string{"stall", "cut", "times", "retry_after", "message", "slow", "usage", "repeat"}
}

func parseStep(v literal.Value) (step, error) {
	st := step{do: trouble}
	err := objectOf(v, "a step", `an object such as {"say":"hello"}`, append(actions(), modifiers()...)...)
	if err != nil {
		return st, err
	}
	first := ""
	for _, m := range v.Members {
		if !slices.Contains(actions(), m.Key) {
			continue
		}
		if first != "" {
			return st, wrong(m.KeyPos, "a step does one thing, not both %s and %s", m.Key, first).
				Hint("make two steps of it")
		}
		first = m.Key
		if err := st.act(m); err != nil {
			return st, err
		}
	}
	if err := st.modify(v, first); err != nil {
		return st, err
	}
	if first == "" && len(st.faults) == 0 {
		return st, wrong(v.Pos, "the step does nothing").
			Hint("steps are %s, stall and cut", strings.Join(actions(), ", "))
	}
	return st, nil
}

// act reads the action of a step.
func (st *step) act(m literal.Member) error {
	v := m.Value
	st.do = action(m.Key)
	switch st.do {
	case write:
		if err := objectOf(v, m.Key, "an object with content and path", "content", "path"); err != nil {
			return err
		}
		return cmp.Or(textMember(v, m.Key, "content", &st.content), textMember(v, m.Key, "path", &st.text))
	case invoke:
		return st.actCall(v)
	case several:
		return st.actSeveral(v)
	case answerJSON:
		st.input = v.JSON()
	case "error":
		st.do = trouble
		return st.actError(v)
	default:
		return textOf(v, m.Key, &st.text)
	}
	return nil
}

func (st *step) actCall(v literal.Value) error {
	if err := objectOf(v, "call", "an object with name and input", "name", "input"); err != nil {
		return err
	}
	st.input = JSON("{}")
	if input, ok := v.Member("input"); ok {
		if k := input.Value.Kind; k != literal.Object && k != literal.String {
			return mismatch(input.Value, "input", "an object, or a string for a tool that takes text")
		}
		st.input = input.Value.JSON()
	}
	return textMember(v, "call", "name", &st.text)
}

func (st *step) actSeveral(v literal.Value) error {
	if v.Kind != literal.Array || len(v.Items) == 0 {
		return mismatch(v, "calls", "an array of steps that call a tool")
	}
	for _, item := range v.Items {
		inner, err := parseStep(item)
		if err != nil {
			return err
		}
		switch inner.do {
		case say, think, decline, trouble, several, answerJSON:
			return wrong(item.Pos, "calls holds only steps that call a tool").Hint("put it before the step with calls")
		}
		if len(inner.faults) > 0 {
			return wrong(item.Pos, "one of several calls cannot break by itself").
				Hint("put stall or cut into the step with calls")
		}
		st.calls = append(st.calls, inner)
	}
	return nil
}

func (st *step) actError(v literal.Value) error {
	if v.Kind == literal.String && v.Str == "context_full" {
		st.faults = []mishap{{fail: &Failure{ContextFull: true}}}
		return nil
	}
	status, ok := v.Int()
	if !ok || status < 400 || status > 599 {
		return wrong(v.Pos, "error must be a status from 400 to 599 or \"context_full\"")
	}
	st.faults = []mishap{{fail: &Failure{Status: int(status)}}}
	return nil
}

// modify reads the modifiers: first stall and cut, which times needs.
func (st *step) modify(v literal.Value, first string) error {
	for _, name := range modifiers() {
		m, ok := v.Member(name)
		if !ok {
			continue
		}
		var err error
		switch name {
		case "stall", "cut":
			err = st.breaks(m, first)
		case "times":
			err = st.counts(m)
		case "retry_after", "message":
			err = st.words(m)
		case "slow":
			err = st.slow.read(m.Value)
		case "usage":
			err = st.uses(m.Value)
		case "repeat":
			err = st.repeats(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (st *step) breaks(m literal.Member, first string) error {
	if len(st.faults) > 0 {
		return wrong(m.KeyPos, "only one of error, stall and cut can stand in a step").Hint("make two steps of it")
	}
	if first == "error" {
		return wrong(m.KeyPos, "%s and error cannot be in one step", m.Key)
	}
	b := Break{Hold: m.Key == "stall"}
	v := m.Value
	switch {
	case v.Kind == literal.String && slices.Contains([]Place{Headers, Opening, Middle}, Place(v.Str)):
		b.At = Place(v.Str)
	case v.Kind == literal.Object && len(v.Members) == 1:
		if err := only(v, m.Key, "events", "bytes"); err != nil {
			return err
		}
		n, ok := v.Members[0].Value.Int()
		if !ok || n < 0 || n > 1<<30 {
			return mismatch(v.Members[0].Value, v.Members[0].Key, "a number from 0")
		}
		b.At, b.N = Place(v.Members[0].Key), int(n)
	default:
		return wrong(v.Pos, "%s must be headers, start, middle, {\"events\":N} or {\"bytes\":N}", m.Key)
	}
	st.faults = []mishap{{brk: b}}
	return nil
}

// read reads a pace: a pause before each piece, or an object of pauses.
func (p *Pace) read(v literal.Value) error {
	if v.Kind == literal.String {
		return pause(v, "slow", &p.Piece)
	}
	const form = `a duration such as "50ms" or an object such as {"first":"10s"}`
	if err := objectOf(v, "slow", form, "first", "after", "piece", "byte"); err != nil {
		return err
	}
	into := map[string]*time.Duration{"first": &p.First, "after": &p.After, "piece": &p.Piece, "byte": &p.Byte}
	for _, m := range v.Members {
		if err := pause(m.Value, m.Key, into[m.Key]); err != nil {
			return err
		}
	}
	return nil
}

func pause(v literal.Value, what string, into *time.Duration) error {
	d, ok := text.Duration(v.Str)
	if v.Kind != literal.String || !ok || d < 0 || d > time.Hour {
		return wrong(v.Pos, "%s must be a duration such as \"50ms\"", what)
	}
	*into = d
	return nil
}

// slowed returns the step with a default pace.
func (st step) slowed(p Pace) step {
	st.slow = st.slow.over(p)
	for i, inner := range st.calls {
		st.calls[i] = inner.slowed(st.slow)
	}
	for i := range st.faults {
		st.faults[i].slow = st.slow
	}
	return st
}

func (st *step) repeats(m literal.Member) error {
	n, ok := m.Value.Int()
	if !ok || n < 1 || n > 1<<30 {
		return wrong(m.Value.Pos, "repeat must be a whole number from 1")
	}
	if st.do != say && st.do != think {
		return wrong(m.KeyPos, "repeat needs say or think in the same step")
	}
	st.repeat = int(n)
	return nil
}

func (st *step) uses(v literal.Value) error {
	if err := objectOf(v, "usage", "an object with input, output and cached", "input", "output", "cached"); err != nil {
		return err
	}
	st.usage = &Usage{}
	into := map[string]*int{"input": &st.usage.Input, "output": &st.usage.Output, "cached": &st.usage.Cached}
	for _, m := range v.Members {
		n, ok := m.Value.Int()
		if !ok || n < 0 || n > 1<<40 {
			return mismatch(m.Value, m.Key, "a whole number from 0")
		}
		*into[m.Key] = int(n)
	}
	return nil
}

func (st *step) counts(m literal.Member) error {
	n, ok := m.Value.Int()
	if !ok || n < 1 || n > 1<<20 {
		return wrong(m.Value.Pos, "times must be a whole number from 1")
	}
	if len(st.faults) == 0 {
		return wrong(m.KeyPos, "times needs error, stall or cut in the same step")
	}
	st.faults[0].times = int(n)
	return nil
}

func (st *step) words(m literal.Member) error {
	if len(st.faults) == 0 || st.faults[0].fail == nil {
		return wrong(m.KeyPos, "%s needs error in the same step", m.Key)
	}
	f := st.faults[0].fail
	if m.Key == "message" {
		return textOf(m.Value, m.Key, &f.Message)
	}
	seconds, ok := m.Value.Float()
	if !ok || seconds < 0 || seconds > 1e6 {
		return mismatch(m.Value, "retry_after", "a number of seconds")
	}
	f.RetryAfter = time.Duration(seconds * float64(time.Second))
	return nil
}
