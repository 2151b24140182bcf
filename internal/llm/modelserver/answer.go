package modelserver

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/kit/ident"
)

// Backend decides what a model says. A script is one.
type Backend interface {
	// Answer says something with w; the end of the answer follows when it returns nil. An error that does not come from
	// w becomes a failure with status 500. It may be called for several requests at once.
	Answer(ctx context.Context, r *Request, w Writer) error
}

// Writer writes what a Backend says to the wire. Its methods return an error when the client is gone; the Backend
// returns then.
type Writer interface {
	Text(string) error    // more of the text; consecutive texts are one block
	Think(string) error   // more of the thinking, where the wire has it; elsewhere nothing
	Decline(string) error // the end of the answer: the model declines, with these words or with none
	Call(Call) error      // one call of a tool; several in a row are parallel
	Search(string) error  // a search that the model's side runs itself, where the wire has it
	Usage(Usage)          // what is said at the end; without it, an estimate
	Fail(Failure) error   // the end, as an error; a status when nothing was said yet, else an event
	Slow(Pace)            // the pauses of what follows; those that are zero stay the server's
	Break(Break)          // how the answer ends too early; call it first
}

// Call asks the agent to run a tool.
type Call struct {
	ID        string // made up when empty
	Name      string
	Namespace string
	Kind      string // as Tool.Kind
	Input     JSON   // a JSON object; of a custom tool a JSON string
}

// Usage counts tokens. Input are those that did not come from a cache.
type Usage struct {
	Input, Output, Cached int
}

// Failure is an error of the API.
type Failure struct {
	Status      int
	Message     string // empty: as the API words it
	RetryAfter  time.Duration
	ContextFull bool // the request is longer than the model's context
}

// Place is where an answer breaks.
type Place string

// The places. Events and bytes are counted from the beginning of the body.
const (
	Nowhere Place = ""
	Headers Place = "headers" // before the response begins
	Opening Place = "start"   // after its headers
	Middle  Place = "middle"  // after half of it
	Events  Place = "events"  // after N events
	Bytes   Place = "bytes"   // after N bytes
)

// Pace is how slowly a model answers.
type Pace struct {
	First time.Duration // before the first byte, headers included
	After time.Duration // a silence after the first piece
	Piece time.Duration // before each piece
	Byte  time.Duration // before each byte of the body
}

// over returns the pace, with the pauses of o where its own are zero.
func (p Pace) over(o Pace) Pace {
	return Pace{
		cmp.Or(p.First, o.First), cmp.Or(p.After, o.After), cmp.Or(p.Piece, o.Piece), cmp.Or(p.Byte, o.Byte),
	}
}

// Break ends an answer too early: it says nothing more and holds the connection, or drops it.
type Break struct {
	At   Place
	N    int
	Hold bool
}

// errGone means that the client is gone, or gets nothing more.
var errGone = errors.New("the connection has ended")

// block is a part of the answer that grows.
type block struct {
	kind  BlockKind
	index int
	id    string
	text  strings.Builder
	call  Call
}

// reply is the whole of an answer.
type reply struct {
	blocks []*block
	usage  Usage
}

func (s *reply) calls() bool { return s.has(Calling) }

func (s *reply) declines() bool { return s.has(declining) }

func (s *reply) has(kind BlockKind) bool {
	return slices.ContainsFunc(s.blocks, func(b *block) bool { return b.kind == kind })
}

// encoder writes an answer in the form of a wire. It has no policy and no I/O: it returns frames.
type encoder interface {
	contentType() string // of a stream
	start() [][]byte
	open(*block) [][]byte
	delta(b *block, piece string) [][]byte
	shut(*block) [][]byte
	end(*reply) [][]byte
	fail(Failure) [][]byte   // within a stream
	whole(*reply) []byte     // instead of a stream
	refuse(Failure) []byte   // the body of an error
	late(Failure) bool       // whether the API begins a stream before it says so
	prefix(BlockKind) string // of the id of a block; empty where the wire has no such block
}

// searching is the block of a search that the model's side runs, declining what the model says when it declines.
const (
	searching BlockKind = "search"
	declining BlockKind = "refusal"
)

// answer is the Writer. Of a stream:
//
//	new ── first block ──▶ started ── Text, Think, Call, Search ──▶ … ── finish ──▶ finished
//	 │                        │
//	 └── Fail: a status ──────┴── Fail: an event; a Break ──▶ finished, and no more is sent
//
// Any other answer is collected in reply, and sent as one body by finish.
type answer struct {
	ctx           context.Context
	w             http.ResponseWriter
	r             *Request
	enc           encoder
	name          func(prefix string) string
	reply         reply
	counted       bool // the usage was given
	hurry         bool // as Options.Hurry
	usual, pace   Pace // the server's, and what holds now
	said          bool // the first piece is out
	brk           Break
	headersSent   bool // headers are out
	streamStarted bool // the stream's first events are made
	finished      bool
	current       *block
	heldFrames    [][]byte // with a break in the middle: everything, until it is known where the middle is
	events        int
	bytes         int
}

func (a *answer) Usage(u Usage) { a.reply.usage, a.counted = u, true }
func (a *answer) Slow(p Pace)   { a.pace = p.over(a.usual) }
func (a *answer) Break(b Break) { a.brk = b }

func (a *answer) Text(s string) error { return a.grow(Text, s) }

func (a *answer) Think(s string) error {
	if a.enc.prefix(Thinking) == "" {
		return nil
	}
	return a.grow(Thinking, s)
}

func (a *answer) Decline(words string) error {
	if err := a.grow(declining, words); err != nil {
		return err
	}
	return a.shut()
}

func (a *answer) Search(query string) error {
	if a.enc.prefix(searching) == "" {
		return nil
	}
	b := &block{kind: searching}
	b.text.WriteString(query)
	if err := a.begin(b); err != nil {
		return err
	}
	return a.shut()
}

func (a *answer) Call(c Call) error {
	if absent(c.Input) {
		c.Input = JSON("{}")
	}
	if c.ID == "" {
		c.ID = a.name(a.r.Wire.callPrefix())
	}
	if err := a.begin(&block{kind: Calling, call: c}); err != nil {
		return err
	}
	input := string(c.Input)
	if c.Kind == "custom" {
		_ = decode(c.Input, "input", &input)
	}
	if err := a.add(input); err != nil {
		return err
	}
	return a.shut()
}

func (a *answer) grow(kind BlockKind, s string) error {
	if a.current == nil || a.current.kind != kind {
		if err := a.begin(&block{kind: kind}); err != nil {
			return err
		}
	}
	return a.add(s)
}

// add says more of the current block, in pieces.
func (a *answer) add(s string) error {
	for _, piece := range pieces(s) {
		if err := a.piece(piece); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) begin(b *block) error {
	if err := a.shut(); err != nil {
		return err
	}
	b.index, b.id = len(a.reply.blocks), a.name(a.enc.prefix(b.kind))
	a.reply.blocks = append(a.reply.blocks, b)
	a.current = b
	if !a.r.Stream {
		return a.ctx.Err()
	}
	if err := a.open(); err != nil {
		return err
	}
	return a.send(a.enc.open(b))
}

// open makes the first events of a stream.
func (a *answer) open() error {
	if a.streamStarted {
		return nil
	}
	a.streamStarted = true
	return a.send(a.enc.start())
}

func (a *answer) piece(s string) error {
	b := a.current
	b.text.WriteString(s)
	if err := a.wait(a.pace.Piece); err != nil {
		return err
	}
	if a.r.Stream {
		if err := a.send(a.enc.delta(b, s)); err != nil {
			return err
		}
	}
	if a.said {
		return nil
	}
	a.said = true
	return a.wait(a.pace.After)
}

func (a *answer) shut() error {
	b := a.current
	a.current = nil
	if b == nil || !a.r.Stream {
		return nil
	}
	return a.send(a.enc.shut(b))
}

// estimate returns the usage of an answer without one: four bytes a token.
func (a *answer) estimate() {
	if a.counted {
		return
	}
	n := 0
	for _, b := range a.reply.blocks {
		n += b.text.Len()
	}
	a.reply.usage = Usage{Input: len(a.r.Raw)/4 + 1, Output: n/4 + 1}
}

// finish ends the answer.
func (a *answer) finish() error {
	if a.finished {
		return nil
	}
	a.finished = true
	if a.r.Stream {
		if err := a.open(); err != nil {
			return err
		}
		if err := a.shut(); err != nil {
			return err
		}
		a.estimate()
		if err := a.send(a.enc.end(&a.reply)); err != nil {
			return err
		}
		return a.release()
	}
	a.estimate()
	return a.body(http.StatusOK, a.enc.whole(&a.reply))
}

// Fail ends the answer with an error.
func (a *answer) Fail(f Failure) error {
	if a.finished {
		return nil
	}
	a.finished = true
	if f.Status < 400 || f.Status > 599 {
		f.Status = http.StatusInternalServerError
	}
	if a.r.Stream && a.enc.late(f) {
		if err := a.open(); err != nil {
			return err
		}
	}
	if a.headersSent || a.streamStarted {
		if err := a.send(a.enc.fail(f)); err != nil {
			return err
		}
		return a.release()
	}
	switch {
	case a.hurry && f.RetryAfter == 0:
		a.w.Header().Set("Retry-After-Ms", "1")
	case f.RetryAfter > 0:
		a.w.Header().Set("Retry-After", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
	}
	if f.ContextFull {
		f.Status = http.StatusBadRequest
	}
	return a.body(f.Status, a.enc.refuse(f))
}

// randomName returns an id that no other call of a conversation has.
func randomName(prefix string) string { return prefix + "_" + ident.Hex(12) }
