package copilot

import (
	"bufio"
	"errors"
	"io"
)

// longest is how much of one line is kept. A prompt of 60 MB makes a line of 120.
const longest = 4 << 20

// lines calls f with every line, and with what there is of a last one without an end. Of a longer one than we keep it
// gets the beginning.
func lines(r io.Reader, f func(line []byte, whole bool)) {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	whole := true
	for {
		part, err := in.ReadSlice('\n')
		if room := longest - len(line); len(part) > room {
			part, whole = part[:room], false
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if len(line) > 0 {
			f(line, whole)
		}
		if err != nil {
			return
		}
		line, whole = line[:0], true
		if cap(line) > 1<<20 {
			line = nil
		}
	}
}
