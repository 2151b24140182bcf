package xnl

import (
	"fmt"
	"unicode/utf8"
)

// The codes of errors.
const (
	UnexpectedEOF   = "UNEXPECTED_EOF"
	UnexpectedToken = "UNEXPECTED_TOKEN"
	InvalidLiteral  = "INVALID_LITERAL"
	InvalidContent  = "INVALID_CONTENT"
	MismatchedTag   = "MISMATCHED_TAG"
)

// Error is why a text is not XNL, and where. Position and Column count UTF-16 units, as editors do; Line and Column
// begin at 1.
type Error struct {
	Code     string `json:"code"`
	Reason   string `json:"-"`
	Position int    `json:"position"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (at %d:%d)", e.Reason, e.Line, e.Column) }

// fail gives up at an offset. Parse returns the error.
func (p *parser) fail(code string, offset int, format string, args ...any) {
	e := &Error{Code: code, Reason: fmt.Sprintf(format, args...), Line: 1, Column: 1}
	for at := 0; at < min(offset, len(p.text)); {
		r, size := utf8.DecodeRuneInString(p.text[at:])
		units := 1
		if r > 0xFFFF {
			units = 2
		}
		e.Position, e.Column = e.Position+units, e.Column+units
		if r == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
		at += size
	}
	panic(e)
}

// catch turns the panic of fail into an error.
func catch(err *error) {
	switch refused := recover().(type) {
	case nil:
	case *Error:
		*err = refused
	default:
		panic(refused)
	}
}
