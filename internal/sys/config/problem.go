package config

import (
	"errors"
	"fmt"
	"strconv"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
)

// problems gathers what is wrong, in the order in which it was found.
type problems struct {
	list  []fault.Problem
	first *fault.Fault
}

func (p *problems) add(one fault.Problem) *fault.Fault {
	p.list = append(p.list, one)
	f := fault.New(fault.ConfigInvalid, "%s", one.Message)
	if p.first == nil {
		p.first = f
	}
	return f
}

// inFile notes a problem with a file; pos may be zero if it concerns the whole file.
func (p *problems) inFile(path string, pos literal.Pos, message, value string) *fault.Fault {
	place := path
	if pos.Line > 0 {
		place = fmt.Sprintf("%s:%v", path, pos)
	}
	f := p.add(fault.Problem{Param: place, Code: fault.ConfigInvalid, Message: place + ": " + message, Value: value})
	inFileHint(f.With("path", path), path)
	if pos.Line > 0 {
		f.With("line", pos.Line).With("column", pos.Col)
	}
	return f
}

func inFileHint(f *fault.Fault, path string) {
	f.Hint("omniagent config path shows the files; %s is left as it is", path)
}

func (p *problems) syntax(path string, err error) {
	if syntax, is := errors.AsType[*literal.SyntaxError](err); is {
		p.inFile(path, syntax.Pos, syntax.Message, "")
		return
	}
	p.inFile(path, literal.Pos{}, err.Error(), "")
}

// value notes a value in a file that is invalid for its key.
func (p *problems) value(path string, v literal.Value, key Key, err error) {
	p.inFile(path, v.Pos, key.Name+" "+err.Error(), v.Str)
	p.list[len(p.list)-1].Corrected = key.corrected(v.Str)
}

// atSource notes a value of a flag or a variable that is invalid for its key.
func (p *problems) atSource(key Key, where, text string, err error) {
	f := p.add(fault.Problem{
		Param: where, Code: fault.ConfigInvalid, Value: text, Corrected: key.corrected(text),
		Message: fmt.Sprintf("%s: %s %s", where, key.Name, err.Error()),
	})
	f.With("key", key.Name).With("source", where)
	f.FixBy("correct "+where, "").Hint("Set %s to a value that the message allows, or leave it out.", where)
}

func (p *problems) context(origin, name string, in Value, message, near string) {
	if in.File != "" {
		p.inFile(in.File, in.Pos, message, name).
			Hint("omniagent config unset %s removes it; with --global, from your own file", contextKeyName)
	} else {
		f := p.add(fault.Problem{
			Param: origin, Code: fault.ConfigInvalid, Value: name, Message: origin + ": " + message,
		})
		f.FixBy("correct "+origin, "")
		f.With("source", origin).
			Hint("omniagent config path shows the files; a context is a table [context.NAME] in one of them")
	}
	p.list[len(p.list)-1].Corrected = near
}

func (k Key) corrected(written string) string {
	if k.Type != Enum || k.Also.Refusal(written) != "" {
		return ""
	}
	return text.Nearest(written, k.Enum)
}

// fault returns nil if there are no problems. Otherwise it describes the first and carries all.
func (p *problems) fault() error {
	if p.first == nil {
		return nil
	}
	p.first.Problems = p.list
	if more := len(p.list) - 1; more > 0 {
		p.first.Message += fmt.Sprintf(" (and %d more)", more)
	}
	return p.first
}

// invalid returns the fault for one problem with one file.
func invalid(path string, err error) *fault.Fault {
	var p problems
	p.syntax(path, err)
	p.first.Problems = p.list
	return p.first
}

// quote shortens and quotes a word for a message.
func quote(s string) string {
	clean, _ := text.Clean(s)
	s = redact.String(clean) // before cutting or escaping: half a secret is not recognised
	return strconv.Quote(text.Cut(s, 60))
}
