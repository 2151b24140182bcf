package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/llm/model"
)

// parser parses server-sent events. It does no I/O: bytes in pieces of any size go in, events come out.
//
//	bytes ── feed ──▶ line ── take ──▶ data, name ── empty line: dispatch ──▶ each
//	                                       └── end of the connection: end ──▶ each, or the error Cut
type parser struct {
	each func(Event) (bool, error)

	line   []byte // the beginning of an incomplete line
	data   []byte
	some   bool // the event has data
	name   string
	last   string // an earlier name, to reuse the string
	feedCR bool   // the last line ended with CR; an LF that follows belongs to it
	begun  bool   // the first line, which may have a byte order mark, is over
	known  bool   // there was a line of an event stream
}

// mark is a byte order mark.
const mark = "\ufeff"

func fields() []string { return []string{"data", "event", "id", "retry"} }

// feed parses the next bytes.
func (p *parser) feed(chunk []byte) (done bool, err error) {
	for len(chunk) > 0 {
		if p.feedCR {
			p.feedCR = false
			if chunk[0] == '\n' {
				chunk = chunk[1:]
				continue
			}
		}
		i := bytes.IndexAny(chunk, "\r\n")
		if i < 0 {
			p.line = append(p.line, chunk...)
			return false, p.size(len(p.line))
		}
		line := chunk[:i]
		if len(p.line) > 0 {
			p.line = append(p.line, line...)
			line = p.line
		}
		p.feedCR = chunk[i] == '\r'
		chunk = chunk[i+1:]
		if err := p.size(len(line)); err != nil {
			return false, err
		}
		if done, err = p.take(line); done || err != nil {
			return done, err
		}
		p.line = reusable(p.line)
	}
	return false, nil
}

func (p *parser) size(more int) error {
	if len(p.data)+more > maxEvent {
		return &model.Error{Trouble: model.TooLarge, Message: "an event of the answer is larger than 16 MiB"}
	}
	return nil
}

// reusable returns a buffer for reuse, unless it is large.
func reusable(b []byte) []byte {
	if cap(b) > 1<<20 {
		return nil
	}
	return b[:0]
}

// take parses a line.
func (p *parser) take(line []byte) (bool, error) {
	line = p.first(line)
	if len(line) == 0 {
		return p.dispatch()
	}
	if line[0] == ':' { // a comment to keep the connection open
		p.known = true
		return false, nil
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		p.keep(line, value)
	case "event":
		if string(value) != p.last { // most events of a stream have the same name
			p.last = string(value)
		}
		p.name = p.last
	case "id", "retry":
	default:
		if !p.known {
			return false, garbage("the response is not a stream of events", line)
		}
	}
	p.known = true
	return false, nil
}

// first removes a byte order mark from the first line.
func (p *parser) first(line []byte) []byte {
	if !p.begun {
		p.begun = true
		return bytes.TrimPrefix(line, []byte(mark))
	}
	return line
}

// keep adds a line of data. It takes over a large line from p.line instead of copying it.
func (p *parser) keep(line, value []byte) {
	switch {
	case p.some:
		p.data = append(append(p.data, '\n'), value...)
	case len(p.line) > 1<<20 && len(line) > 1<<20:
		p.data, p.line = value, nil
	default:
		p.data = append(p.data, value...)
	}
	p.some = true
}

// dispatch passes on an event, unless it has no data.
func (p *parser) dispatch() (done bool, err error) {
	if len(p.data) > 0 {
		done, err = p.each(Event{Name: p.name, Data: p.data})
	}
	p.data, p.some, p.name = reusable(p.data), false, ""
	return done, err
}

// end is called when the connection has ended without an error. The last event may lack its blank line; it counts if it
// is complete.
func (p *parser) end() error {
	line := p.first(p.line)
	switch value, ok := bytes.CutPrefix(line, []byte("data:")); {
	case ok:
		p.keep(line, bytes.TrimPrefix(value, []byte(" ")))
	case len(line) > 0 && !p.known && !beginning(line):
		return garbage("the response is not a stream of events", line)
	}
	if d := bytes.TrimSpace(p.data); string(d) == "[DONE]" || len(d) > 0 && d[0] == '{' && json.Valid(d) {
		if done, err := p.dispatch(); done || err != nil {
			return err
		}
	}
	return &model.Error{Trouble: model.Cut, Message: "the answer ended before it was complete"}
}

// beginning reports whether a line of a stream may begin with these bytes.
func beginning(line []byte) bool {
	field, _, whole := strings.Cut(string(line[:min(len(line), 16)]), ":")
	return slices.ContainsFunc(fields(), func(f string) bool {
		return f == field || !whole && strings.HasPrefix(f, field)
	}) || whole && field == "" || strings.HasPrefix(mark, field)
}
