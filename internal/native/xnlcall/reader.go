package xnlcall

import (
	"strings"

	"omniagent/internal/kit/xnl"
	"omniagent/internal/llm/model"
)

// The markers around blocks of calls, and around quotations of them.
const (
	unquoteStart = "!unquote_start"
	unquoteEnd   = "!unquote_end"
	quoteStart   = "!quote_start"
	quoteEnd     = "!quote_end"
)

// reader divides the text of an answer, as it arrives, into prose for a person and calls.
//
//	prose ── !quote_start ─▶ quote ── !quote_end ─▶ prose
//	  └───── !unquote_start ─▶ block ── !unquote_end ─▶ prose
//
// It holds back only what may be the beginning of a marker.
type reader struct {
	names    names
	segments []segment
	text     strings.Builder // the last segment, while it is open
	fresh    strings.Builder // prose that was not returned yet

	state   position
	pending string // may be the beginning of a marker
	begun   bool   // this line has more than blanks

	raw    strings.Builder // the block
	stream xnl.Stream
	calls  []*writtenCall // of the block
	wrong  string         // why the block is invalid
	last   *writtenCall   // of the block that has just been closed
}

// position is the state of the reader.
type position uint8

const (
	prose position = iota
	quote
	block
)

// segment is a part of the answer: a text, or a call.
type segment struct {
	text string
	call *writtenCall
}

func newReader(n names) *reader { return &reader{names: n} }

// feed adds the next piece of the answer and returns the prose that is complete.
func (r *reader) feed(piece string) (shown string) {
	r.pending += piece
	for r.pending != "" && r.step(false) {
	}
	return r.shown()
}

// end ends the answer and returns the rest of the prose.
func (r *reader) end(stop model.Stop) (shown string) {
	for r.pending != "" && r.step(true) {
	}
	r.show(len(r.pending))
	if r.state == block {
		r.wrong = unquoteEnd + " is missing after " + unquoteStart + ", so nothing of the block was run"
		if stop == model.Length {
			r.wrong += "; the answer was cut off, because it was as long as an answer may be"
		}
		r.close()
	}
	r.flush()
	return r.shown()
}

func (r *reader) shown() string {
	s := r.fresh.String()
	r.fresh.Reset()
	return s
}

// flush ends the current segment of text.
func (r *reader) flush() {
	if r.text.Len() > 0 {
		r.segments = append(r.segments, segment{text: r.text.String()})
		r.text.Reset()
	}
}

// pass removes and returns the next n pending bytes, and updates begun.
func (r *reader) pass(n int) string {
	passed := r.pending[:n]
	r.pending = r.pending[n:]
	line := passed
	if i := strings.LastIndexByte(passed, '\n'); i >= 0 {
		r.begun, line = false, passed[i:]
	}
	r.begun = r.begun || strings.TrimSpace(line) != ""
	return passed
}

// show moves the next n pending bytes to the prose.
func (r *reader) show(n int) {
	if r.state == block { // the answer ends in a block that is not closed
		r.take(n)
		return
	}
	s := r.pass(n)
	r.text.WriteString(s)
	r.fresh.WriteString(s)
}

// step processes a part of the pending text. It returns false if it needs more text first. ended means that there is no
// more.
func (r *reader) step(ended bool) bool {
	switch r.state {
	case quote:
		return r.inQuote(ended)
	case block:
		return r.inBlock(ended)
	}
	if r.last != nil { // the line break after a block belongs to it
		if r.pending[0] == '\n' {
			r.last.raw += r.pass(1)
			r.last = nil
			return true
		}
		r.last = nil
	}
	return r.inProse(ended)
}

func (r *reader) inProse(ended bool) bool {
	i := strings.IndexByte(r.pending, '!')
	if i != 0 {
		if i < 0 {
			i = len(r.pending)
		}
		r.show(i)
		return true
	}
	if !ended && (strings.HasPrefix(unquoteStart, r.pending) || strings.HasPrefix(quoteStart, r.pending)) {
		return false
	}
	// In the middle of a line, a marker counts only at the end of the line, because a sentence may mention it.
	after, quotes := strings.CutPrefix(r.pending, quoteStart)
	if quotes && !r.begun && after != "" && strings.IndexByte(" \t\r\n<", after[0]) >= 0 {
		r.quote()
		return true
	}
	calls := false
	if !quotes {
		after, calls = strings.CutPrefix(r.pending, unquoteStart)
	}
	rest := strings.TrimLeft(after, " \t\r")
	switch {
	case !quotes && !calls:
	case rest == "" && !ended:
		return false
	case quotes && (rest == "" || rest[0] == '\n'):
		r.quote()
		return true
	case calls && (rest == "" || rest[0] == '\n' || rest[0] == '<'):
		r.open()
		return true
	}
	r.show(1)
	return true
}

func (r *reader) quote() {
	r.show(len(quoteStart))
	r.state = quote
}

func (r *reader) inQuote(ended bool) bool {
	i := strings.IndexByte(r.pending, '!')
	switch {
	case i < 0:
		r.show(len(r.pending))
	case i > 0:
		r.show(i)
	case !ended && strings.HasPrefix(quoteEnd, r.pending):
		return false
	case !r.begun && strings.HasPrefix(r.pending, quoteEnd):
		r.show(len(quoteEnd))
		r.state = prose
	default:
		r.show(1)
	}
	return true
}

// open begins a block at the pending marker.
func (r *reader) open() {
	r.flush()
	r.state, r.calls, r.wrong = block, nil, ""
	r.raw.Reset()
	r.stream = xnl.Stream{}
	r.raw.WriteString(r.pass(len(unquoteStart)))
}

// take moves the next n pending bytes to the block.
func (r *reader) take(n int) {
	s := r.pass(n)
	r.raw.WriteString(s)
	if r.wrong != "" {
		return
	}
	nodes, err := r.stream.Feed(s)
	r.add(nodes, err)
}

// add adds the calls of a block, or records why it is invalid.
func (r *reader) add(nodes []*xnl.Node, err error) {
	for _, n := range nodes {
		r.calls = append(r.calls, r.names.call(n))
	}
	if err != nil {
		r.wrong = reason(err) + ", so nothing of the block was run"
	}
}

// inBlock looks for the end of the block. It must be at the beginning of a line, because texts in calls may contain it
// elsewhere.
func (r *reader) inBlock(ended bool) bool {
	if r.begun {
		if i := strings.IndexByte(r.pending, '\n'); i >= 0 {
			r.take(i + 1)
			return true
		}
		r.take(len(r.pending))
		return false
	}
	blanks := len(r.pending) - len(strings.TrimLeft(r.pending, " \t\r\n"))
	rest := r.pending[blanks:]
	switch {
	case strings.HasPrefix(rest, unquoteEnd):
		r.raw.WriteString(r.pass(blanks + len(unquoteEnd)))
		r.close()
	case !ended && strings.HasPrefix(unquoteEnd, rest):
		return false
	default:
		r.take(blanks + min(len(rest), 1))
	}
	return true
}

// close ends the block. Its first call keeps the text, so that the model gets it back unchanged.
func (r *reader) close() {
	if r.wrong == "" {
		r.add(r.stream.End())
	}
	r.state, r.begun = prose, true
	var carrier *writtenCall
	if r.wrong == "" {
		carrier = r.accept()
	}
	if carrier == nil {
		carrier = &writtenCall{}
		carrier.reject(r.wrong + resend)
		if r.wrong == "" {
			carrier.reject("the block has no call that was not there before" + resend)
		}
		r.segments = append(r.segments, segment{call: carrier})
	}
	carrier.raw, r.last = r.raw.String(), carrier
}

// accept adds the calls of the block to the answer, and returns the first new one. A call with the id of an earlier one
// replaces that one.
func (r *reader) accept() (first *writtenCall) {
	for _, c := range r.calls {
		if had := r.called(c.id); had != nil {
			c.raw = had.raw
			*had = *c
			continue
		}
		r.segments = append(r.segments, segment{call: c})
		if first == nil {
			first = c
		}
	}
	return first
}

func (r *reader) called(id string) *writtenCall {
	for _, s := range r.segments {
		if s.call != nil && s.call.id == id && id != "" {
			return s.call
		}
	}
	return nil
}
