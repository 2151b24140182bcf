package snapshot

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"

	"omniagent/internal/repo/git"
)

// writeBinary writes the change of a binary file as git does with --binary: both contents whole, so that the change can
// also be reversed. git apply checks the blob names of both.
func (r reader) writeBinary(out *bufio.Writer, c *Change, before, after []byte) {
	repository := r.repository(c)
	name := func(e *fileEntry, content []byte) string {
		if e == nil {
			return strings.Repeat("0", len(repository.BlobName(nil)))
		}
		return repository.BlobName(content)
	}
	fmt.Fprintf(out, "index %s..%s", name(c.before, before), name(c.after, after))
	if was := gitMode(c.before); was == gitMode(c.after) {
		fmt.Fprintf(out, " %s", was)
	}
	out.WriteString("\nGIT binary patch\n")
	writeLiteral(out, after)
	writeLiteral(out, before)
}

// repository returns the repository of a file, or nil if there is none or it cannot be read.
func (r reader) repository(c *Change) *git.Repository {
	for _, e := range []*fileEntry{c.before, c.after} {
		if e != nil && e.content != nil && e.content.repository != nil {
			if opened, err := r.open(r.at(e.content.repository.dir)); err == nil {
				return opened
			}
		}
	}
	return nil
}

// mostInLine is how many bytes a line encodes.
const mostInLine = 52

// writeLiteral writes a content: its size, then lines of compressed bytes. The first letter of each line is the number
// of its bytes.
func writeLiteral(out *bufio.Writer, content []byte) {
	fmt.Fprintf(out, "literal %d\n", len(content))
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(content) // a buffer takes everything
	_ = z.Close()
	for packed.Len() > 0 {
		line := packed.Next(mostInLine)
		if n := len(line); n <= 26 {
			out.WriteByte('A' + byte(n) - 1)
		} else {
			out.WriteByte('a' + byte(n) - 27)
		}
		for ; len(line) > 0; line = line[min(4, len(line)):] {
			writeBase85(out, line)
		}
		out.WriteByte('\n')
	}
	out.WriteByte('\n')
}

// writeBase85 writes the first four bytes as five letters. Missing bytes count as zero.
func writeBase85(out *bufio.Writer, data []byte) {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	var n uint32
	for i := range 4 {
		n <<= 8
		if i < len(data) {
			n |= uint32(data[i])
		}
	}
	var group [5]byte
	for i := range group {
		group[len(group)-1-i] = digits[n%uint32(len(digits))]
		n /= uint32(len(digits))
	}
	out.Write(group[:])
}
