// Package lines cuts bytes into lines of bounded length, and writes lines to a side that may not read.
//
// It promises that a line costs no more memory than its limit, however long it is; that the lines are the same wherever
// the bytes were cut; and that nobody waits for a side that does not read unless they ask to. What becomes of a line
// that is too long, or whose end never came, is the caller's to say: both are told, and neither is an error. It refuses
// to look into a line: a carriage return stays.
package lines

import (
	"bytes"
	"errors"
	"io"
)

// Line is a line without its end. The text is valid until more bytes are cut.
type Line struct {
	Text []byte
	Long bool // it is longer than the limit: Text is its beginning, and the rest is ignored
	Torn bool // it is the last one, and has no end
}

// keep is the room that is kept from one line to the next. An image that came once is not held for ever.
const keep = 1 << 20

// Cutter cuts bytes that come in pieces. A line that is too long is told as soon as it is.
type Cutter struct {
	Most int // bytes that a line may have, without its end

	part, spare []byte
	skips       bool // what comes is the rest of a line that is too long
}

// Cut returns the first line of data and what stands behind it. not ok: it takes all of data and waits for more.
func (c *Cutter) Cut(data []byte) (line Line, rest []byte, ok bool) {
	for {
		piece, rest, ends := bytes.Cut(data, []byte("\n"))
		switch room := c.Most - len(c.part); {
		case c.skips:
			c.skips, data = !ends, rest
			if ends {
				continue
			}
		case len(piece) > room:
			c.skips = !ends
			return Line{Text: c.joined(piece[:room]), Long: true}, rest, true
		case ends:
			return Line{Text: c.joined(piece)}, rest, true
		default:
			c.part = append(c.part, piece...)
		}
		return Line{}, nil, false
	}
}

// Last returns the line whose end never came, once no more bytes will come. not ok: there is none.
func (c *Cutter) Last() (line Line, ok bool) {
	line = Line{Text: c.part, Torn: true}
	c.part, c.skips = nil, false
	return line, len(line.Text) > 0
}

// joined is the line that piece completes. A next line may begin before anybody has looked at it, in other room.
func (c *Cutter) joined(piece []byte) []byte {
	if len(c.part) == 0 {
		return piece
	}
	line := append(c.part, piece...)
	c.part, c.spare = c.spare[:0], line
	if cap(line) > keep {
		c.spare = nil
	}
	return line
}

// Reader reads lines, as bufio.Scanner does:
//
//	for in.Next() {
//		… in.Text …
//	}
//	return in.Err()
type Reader struct {
	Line // what Next has read

	cut          Cutter
	from         io.Reader
	buffer, data []byte
	err          error
}

// NewReader returns a Reader of lines that have at most so many bytes.
func NewReader(from io.Reader, most int) *Reader {
	return &Reader{cut: Cutter{Most: most}, from: from, buffer: make([]byte, min(most+1, 64<<10))}
}

// Next reads a line. A torn last one is a line as well, also where reading fails.
func (r *Reader) Next() (ok bool) {
	for {
		if r.Line, r.data, ok = r.cut.Cut(r.data); ok {
			return true
		}
		if r.err != nil {
			r.Line, ok = r.cut.Last()
			return ok
		}
		var n int
		n, r.err = r.from.Read(r.buffer)
		r.data = r.buffer[:n]
	}
}

// Err is why Next read no further; nil: there is no more.
func (r *Reader) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}
