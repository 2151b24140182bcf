package session

import (
	"bytes"
	"io"
)

const (
	chunk = 128 << 10
	// longestLine exceeds all records. A longer line is damaged, and not held in memory.
	longestLine = 64 << 20
)

// lineReader reads the lines of a file, in chunks. It cannot use lines.Reader, because it needs the offset of a line,
// and the length of one that is too long.
type lineReader struct {
	at      int64 // where the next line begins; the caller goes on by the size of a line
	start   int64 // where pending was read from; not after at
	pending []byte
}

// seek continues at an offset.
func (r *lineReader) seek(at int64) { r.at, r.start, r.pending = at, at, r.pending[:0] }

// line returns the next line without its newline, and its size with the newline. If the line is longer than any record,
// it returns only the beginning. end is the end of the last complete line; if it is -1, a line with a newline is
// complete. If there is no complete line yet, line returns io.EOF, and the size of what there is.
func (r *lineReader) line(file io.ReaderAt, end int64) (line []byte, size int, err error) {
	held := r.pending[min(r.at-r.start, int64(len(r.pending))):]
	for want := len(held) + chunk; ; want *= 2 {
		if i := bytes.IndexByte(held, '\n'); i >= 0 {
			return held[:i], i + 1, nil
		}
		if len(held) >= longestLine {
			size, err := r.endless(file, end)
			return held, size, err
		}
		if want = min(want, longestLine); end >= 0 {
			want = int(min(int64(want), end-r.at))
		}
		if want <= len(held) {
			return nil, len(held), io.EOF
		}
		// Read an unfinished line again, because it may have been cut off since.
		if cap(r.pending) < want || cap(r.pending) > 8*chunk && want < 2*chunk {
			r.pending = make([]byte, want+want/8) // with room for the next unfinished line
		}
		n, err := file.ReadAt(r.pending[:want], r.at)
		r.start, r.pending, held = r.at, r.pending[:n], r.pending[:n]
		if n < want && bytes.IndexByte(held, '\n') < 0 {
			r.pending = r.pending[:0]
			if end >= 0 {
				err = io.EOF
			}
			return nil, n, err
		}
	}
}

// endless returns the size of a line that is longer than any record.
func (r *lineReader) endless(file io.ReaderAt, end int64) (size int, err error) {
	buffer := make([]byte, chunk)
	for {
		n, err := file.ReadAt(buffer, r.at+int64(size))
		if i := bytes.IndexByte(buffer[:n], '\n'); i >= 0 {
			return size + i + 1, nil
		}
		size += n
		if end >= 0 && r.at+int64(size) >= end {
			err = io.EOF
		}
		if err != nil {
			return size, err
		}
	}
}
