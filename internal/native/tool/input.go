package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// input is the object that a model passed to a tool. It accepts numbers and lists written as strings, filePath for
// file_path, and the whole object written as a string. It collects all errors, so that the model gets them at once,
// together with a correct input.
type input struct {
	tool, example string
	members       []member
	problems      []string
	broken        bool // it is not an object, so missing members are not reported
}

// member is a member of the object. Members keep their order, so that a host sees what the model wrote.
type member struct {
	name  string
	value json.RawMessage
}

// input reads the object that a model gave.
func (s *spec) input(raw json.RawMessage) *input {
	in := &input{tool: s.Name, example: s.example}
	raw = bytes.TrimSpace(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
	if len(raw) == 0 || string(raw) == "null" {
		return in
	}
	var text string
	if raw[0] == '"' && json.Unmarshal(raw, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "{") {
		raw = bytes.TrimSpace([]byte(text))
	}
	members, err := objectMembers(raw)
	if err != nil {
		in.problem("the input must be a JSON object, but %v", err)
		in.broken = true
		return in
	}
	for _, m := range members {
		i := slices.IndexFunc(in.members, func(had member) bool { return had.name == m.name })
		if i >= 0 {
			in.members[i].value = m.value // the last duplicate wins, as usual in JSON
			continue
		}
		in.members = append(in.members, m)
	}
	in.rename(s.names, s.others)
	return in
}

func (in *input) rename(names []string, others map[string]string) {
	for i, m := range in.members {
		known := others[m.name]
		if known == "" && !slices.Contains(names, m.name) {
			j := slices.IndexFunc(names, func(name string) bool { return squash(name) == squash(m.name) })
			if j < 0 {
				continue
			}
			known = names[j]
		}
		if known != "" && in.raw(known) == nil {
			in.members[i].name = known
		}
	}
}

// squash maps file_path, filePath and File-Path to one name.
func squash(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// objectMembers splits a JSON object, in its order.
func objectMembers(raw []byte) ([]member, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, errors.New("came " + kindOf(raw))
	}
	if !json.Valid(raw) {
		return nil, errors.New("it is not valid JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	var members []member
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		members = append(members, member{name, value})
	}
	return members, nil
}

// raw returns the value of a member, or nil if it is absent or null.
func (in *input) raw(name string) json.RawMessage { return valueOf(in.members, name) }

func valueOf(members []member, name string) json.RawMessage {
	for _, m := range members {
		if m.name == name && string(m.value) != "null" {
			return m.value
		}
	}
	return nil
}

func (in *input) set(name string, value any) {
	data, err := text.JSON(value)
	for i := range in.members {
		if err == nil && in.members[i].name == name {
			in.members[i].value = data
		}
	}
}

// add adds a member that the model left out.
func (in *input) add(name, value string) {
	in.members = slices.DeleteFunc(in.members, func(m member) bool { return m.name == name })
	in.members = append(in.members, member{name, quoted(value)})
}

// need records a problem if a required member is missing.
func (in *input) need(name, what string) {
	if in.raw(name) == nil && !in.broken {
		in.problem("%q is missing: it must be %s", name, what)
	}
}

func (in *input) problem(format string, args ...any) {
	in.problems = append(in.problems, fmt.Sprintf(format, args...))
}

func (in *input) wrong(name, what string, value json.RawMessage) {
	in.problem("%q must be %s, but came %s", name, what, kindOf(value))
}

// text returns a string, which may be empty; need means that it is required.
func (in *input) text(name string, need bool) string {
	value := in.raw(name)
	if value == nil {
		if need {
			in.need(name, "a string")
		}
		return ""
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		in.wrong(name, "a string", value)
	}
	return s
}

// whole returns an integer that is at least least, or usual if the member is absent.
func (in *input) whole(name string, usual, least int) int {
	value := in.raw(name)
	if value == nil {
		return usual
	}
	written := string(value)
	var s string
	quoted := json.Unmarshal(value, &s) == nil
	if quoted {
		written = strings.TrimSpace(s)
	}
	if quoted && written == "" {
		return usual
	}
	n, err := strconv.ParseFloat(written, 64)
	what := "a whole number"
	if least > math.MinInt32 {
		what = fmt.Sprintf("a whole number from %d on", least)
	}
	switch {
	case err != nil || n != math.Trunc(n):
		in.wrong(name, what, value)
		return usual
	case n < float64(least) || n > math.MaxInt32:
		in.problem("%q must be %s, but came %s", name, what, clip(written))
		return usual
	}
	if quoted {
		in.set(name, int(n))
	}
	return int(n)
}

// flag returns a boolean, or false if the member is absent.
func (in *input) flag(name string) bool {
	value := in.raw(name)
	if value == nil {
		return false
	}
	var b bool
	if json.Unmarshal(value, &b) == nil {
		return b
	}
	var s string
	if json.Unmarshal(value, &s) == nil {
		if b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(s))); err == nil || s == "" {
			in.set(name, b)
			return b
		}
	}
	in.wrong(name, "true or false", value)
	return false
}

// list returns the items of a list; need means that it is required.
func (in *input) list(name string, need bool) []json.RawMessage {
	value := in.raw(name)
	if value == nil {
		if need {
			in.need(name, "a list")
		}
		return nil
	}
	var s string
	quoted := json.Unmarshal(value, &s) == nil
	inner := value
	if quoted {
		inner = json.RawMessage(strings.TrimSpace(s))
	}
	var items []json.RawMessage
	if json.Unmarshal(inner, &items) != nil {
		in.wrong(name, "a list", value)
		return nil
	}
	if quoted {
		in.set(name, inner)
	}
	return items
}

// err returns all problems as an error for the model, or nil.
func (in *input) err() error {
	if len(in.problems) == 0 {
		return nil
	}
	const most = 5 // more do not help
	problems := in.problems
	if left := len(problems) - most; left > 0 {
		problems = append(slices.Clone(problems[:most]), fmt.Sprintf("and %d more problems", left))
	}
	return fault.New(fault.ArgError, "%s cannot be called like this: %s. A right input: %s", in.tool,
		strings.Join(problems, "; "), in.example)
}

// json returns the input with the names that hosts know.
func (in *input) json() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range in.members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoted(m.name))
		b.WriteByte(':')
		if json.Compact(&b, m.value) != nil {
			b.WriteString("null")
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

// kindOf describes a JSON value, with the value if it is short.
func kindOf(value []byte) string {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "the string " + clip(string(value))
	case 't', 'f':
		return clip(string(value))
	case 'n':
		return "null"
	}
	return "the number " + clip(string(value))
}

// clip returns the beginning of a value, for a message.
func clip(s string) string {
	const most = 60
	if runes := []rune(s[:min(len(s), 4*most)]); len(runes) > most || len(s) > 4*most {
		return strings.ToValidUTF8(string(runes[:min(most, len(runes))]), "\uFFFD") + "…"
	}
	return s
}

// failed returns the result of a call that failed.
func failed(err error) Result {
	f := fault.Of(err)
	message := f.Error()
	if f.Suggestion != "" {
		message += ". " + f.Suggestion
	}
	return Result{Text: text.Visible(message), Failed: true}
}
