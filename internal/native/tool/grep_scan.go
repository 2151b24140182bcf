package tool

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	scanWindow = 64 << 10 // bytes of a file at a time; a window with a zero byte is binary
	scanLine   = 8 << 20  // a longer line is searched in pieces of this size
	scanWhole  = 4 << 20  // a larger file is not searched for a multi-line pattern
	scanFinds  = 100_000  // matches of a multi-line pattern in one file
)

// scanner searches files, one after the other.
type scanner struct {
	pattern *grepPattern
	window  []byte
	hints   needleHints
}

// errTooLarge means that a file is too large to be read as a whole.
var errTooLarge = errors.New("too large for a pattern over several lines")

// scan searches a file. It stops at a window with a zero byte, which is not text. If the caller named the file, it
// continues, but does not show matches after the zero byte.
func (s *scanner) scan(ctx context.Context, file io.Reader, named bool, out *grepLines) error {
	if len(s.window) != scanWindow { // a long line has enlarged it
		s.window = make([]byte, scanWindow)
	}
	file, end, ended, err := s.begin(file)
	if err != nil {
		return err
	}
	if s.pattern.spanning {
		return s.whole(s.window[:end], ended, named, out)
	}
	for first, fresh := true, 0; ; first = false {
		// Zeros in a small file matter only if something is found.
		small := first && ended && !named
		if !small && s.isBinary(fresh, end, named, out) {
			return nil
		}
		stop := end
		if i := bytes.LastIndexByte(s.window[:end], '\n'); !ended && i >= 0 {
			stop = i + 1
		}
		if !s.lines(s.window[:stop], small, out) || ended {
			out.finish(s.window[:stop])
			return nil
		}
		out.next(s.window[:stop])
		if err := ctx.Err(); err != nil {
			return err
		}
		fresh = copy(s.window, s.window[stop:end])
		if end, ended, err = s.fill(file, fresh, scanLine, true); err != nil {
			return err
		}
	}
}

// begin fills the window for the first time. It drops the byte order mark of UTF-8, and decodes UTF-16.
func (s *scanner) begin(file io.Reader) (reader io.Reader, end int, ended bool, err error) {
	limit := scanLine
	if s.pattern.spanning {
		limit = scanWhole
	}
	end, ended, err = s.fill(file, 0, limit, !s.pattern.spanning)
	text := s.window[:end]
	switch {
	case err != nil:
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		end = copy(s.window, text[3:])
	case bytes.HasPrefix(text, []byte("\xff\xfe")):
		file = &utf16Reader{
			file:  io.MultiReader(bytes.NewReader(bytes.Clone(text[2:])), file),
			order: binary.LittleEndian,
		}
		end, ended, err = s.fill(file, 0, limit, !s.pattern.spanning)
	case bytes.HasPrefix(text, []byte("\xfe\xff")):
		file = &utf16Reader{file: io.MultiReader(bytes.NewReader(bytes.Clone(text[2:])), file), order: binary.BigEndian}
		end, ended, err = s.fill(file, 0, limit, !s.pattern.spanning)
	}
	return file, end, ended, err
}

// fill reads until the window is full. It enlarges the window up to limit, but if lines is true only until it has a
// complete line.
func (s *scanner) fill(file io.Reader, end, limit int, lines bool) (int, bool, error) {
	for {
		if end == len(s.window) {
			if end >= limit || lines && bytes.LastIndexByte(s.window, '\n') >= 0 {
				return end, false, nil
			}
			larger := make([]byte, min(2*end, limit))
			copy(larger, s.window)
			s.window = larger
		}
		n, err := file.Read(s.window[end:])
		end += n
		if errors.Is(err, io.EOF) {
			return end, true, nil
		}
		if err != nil {
			return end, false, err
		}
	}
}

// isBinary looks for zero bytes in the new part of the window. In a named file they end lines.
func (s *scanner) isBinary(fresh, end int, named bool, out *grepLines) bool {
	zero := bytes.IndexByte(s.window[fresh:end], 0)
	if zero < 0 {
		return false
	}
	out.binary = true
	if !named {
		return true
	}
	for i, c := range s.window[fresh:end] {
		if c == 0 {
			s.window[fresh+i] = '\n'
		}
	}
	return false
}

// lines searches whole lines. It reports whether to continue.
func (s *scanner) lines(text []byte, small bool, out *grepLines) bool {
	s.hints.reset()
	for from := 0; ; {
		begin, end, match := s.pattern.find(text, from, &s.hints)
		if begin < 0 {
			return true
		}
		if small && bytes.IndexByte(text, 0) >= 0 {
			return false
		}
		small = false
		if !out.match(text, begin, end, match) {
			return false
		}
		from = end + 1
	}
}

// whole searches a window that holds the whole file for a multi-line pattern.
func (s *scanner) whole(text []byte, ended, named bool, out *grepLines) error {
	if !ended {
		return errTooLarge
	}
	s.hints.reset()
	if len(s.pattern.needles) > 0 && s.hints.next(s.pattern.needles, text, 0) < 0 ||
		s.isBinary(0, len(text), named, out) {
		return nil
	}
	done := 0 // lines are reported up to this position
	for _, loc := range s.pattern.lines.FindAllIndex(text, scanFinds) {
		at, stop := max(loc[0], done), loc[1]
		if stop > loc[0] && text[stop-1] == '\n' {
			stop-- // the match does not include the next line
		}
		for at <= stop && at < len(text) {
			begin, end := lineAround(text, done, at)
			if !out.match(text, begin, end, at-begin) {
				out.finish(text)
				return nil
			}
			done = min(end+1, len(text))
			at = end + 1
		}
	}
	out.finish(text)
	return nil
}

// utf16Reader decodes UTF-16 to UTF-8.
type utf16Reader struct {
	file  io.Reader
	order binary.ByteOrder
	raw   [8 << 10]byte
	have  int // bytes of raw that are not decoded yet
	text  []byte
	err   error
}

func (u *utf16Reader) Read(b []byte) (int, error) {
	for len(u.text) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		n, err := u.file.Read(u.raw[u.have:])
		u.have += n
		u.err = err
		u.decode()
	}
	n := copy(b, u.text)
	u.text = u.text[n:]
	return n, nil
}

// decode decodes complete units. The first half of a surrogate pair waits for the second one, unless the input has
// ended.
func (u *utf16Reader) decode() {
	at := 0
	u.text = u.text[:0]
	for ; u.have-at >= 2; at += 2 {
		r := rune(u.order.Uint16(u.raw[at:]))
		if utf16.IsSurrogate(r) {
			if u.have-at < 4 && u.err == nil {
				break
			}
			if u.have-at >= 4 {
				if pair := utf16.DecodeRune(r, rune(u.order.Uint16(u.raw[at+2:]))); pair != utf8.RuneError {
					r = pair
					at += 2
				}
			}
		}
		u.text = utf8.AppendRune(u.text, r)
	}
	u.have = copy(u.raw[:], u.raw[at:u.have])
	if u.err != nil && u.have > 0 {
		u.text = utf8.AppendRune(u.text, utf8.RuneError)
		u.have = 0
	}
}
