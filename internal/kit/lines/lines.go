// Package lines cuts bytes into lines of bounded length, and writes lines to a reader that may not read.
//
// It promises that a line takes no more memory than its limit, however long it is; that the lines do not depend on
// where the input was split; and that only those who ask to wait for a slow reader. A line that is too long, or that
// has no end, is reported to the caller and is not an error. A carriage return stays in the line.
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

// keep is the size of the buffer that is kept from one line to the next, so that the memory of one large line is
// released.
const keep = 1 << 20

// Cutter cuts bytes that come in pieces. It returns a line that is too long as soon as it exceeds the limit.
type Cutter struct {
	Most int // bytes that a line may have, without its end

	part, spare []byte
	skips       bool // what comes is the rest of a line that is too long
}

// Cut returns the first line of data and what follows it. If ok is false, it has taken all of data and needs more.
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

// Last returns the unfinished last line, once no more bytes will come. ok is false if the last line is finished.
func (c *Cutter) Last() (line Line, ok bool) {
	line = Line{Text: c.part, Torn: true}
	c.part, c.skips = nil, false
	return line, len(line.Text) > 0
}

// joined returns the line that piece completes. It swaps two buffers, so that the line stays valid while the next one
// begins.
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
