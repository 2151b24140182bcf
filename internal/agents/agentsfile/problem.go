package agentsfile

import (
	"errors"
	"fmt"
	"strconv"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
)

// maxProblems limits the number of listed problems.
const maxProblems = 100

// problems collects the errors of one file, in order.
type problems struct {
	path  string
	first literal.Pos
	list  []fault.Problem
	count int
}

// add records a problem. A zero pos means the whole file.
func (p *problems) add(pos literal.Pos, message, value, corrected string) {
	if p.count++; p.count > maxProblems {
		return
	}
	if p.count == 1 {
		p.first = pos
	}
	place := clean(p.path)
	if pos.Line > 0 {
		place = fmt.Sprintf("%s:%v", place, pos)
	}
	p.list = append(p.list, fault.Problem{
		Param: place, Code: fault.ConfigInvalid, Message: place + ": " + clean(message), Value: cut(value),
		Corrected: corrected,
	})
}

func (p *problems) syntax(err error) {
	var syntax *literal.SyntaxError
	if errors.As(err, &syntax) {
		p.add(syntax.Pos, syntax.Message, "", "")
		return
	}
	p.add(literal.Pos{}, err.Error(), "", "")
}

// fault returns nil if there are no problems. Otherwise its message is the first problem, and it contains all.
func (p *problems) fault(remedy string) error {
	if p.count == 0 {
		return nil
	}
	message := p.list[0].Message
	if more := p.count - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	f := fault.New(fault.ConfigInvalid, "%s", message).Hint("%s", remedy).With("path", p.path)
	if p.first.Line > 0 {
		f.With("line", p.first.Line).With("column", p.first.Col)
	}
	f.Problems = p.list
	return f
}

// clean returns a text of the file without control characters and secrets.
func clean(s string) string {
	printable, _ := text.Clean(s)
	return redact.String(printable)
}

// cut cleans a text and shortens it, in this order, because a part of a secret would not be recognised.
func cut(s string) string { return text.Cut(clean(s), 60) }

func quote(s string) string { return strconv.Quote(cut(s)) }
