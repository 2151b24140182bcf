package workspace

import (
	"bytes"
	"cmp"
	"os"

	"omniagent/internal/kit/fault"
)

// Append appends one line to a journal, which it creates with perm (0 means 0600) if necessary. line may end with a
// newline, but must not contain another. The line is a single write, so that lines of several processes never mix. If
// the last line is truncated because its writer died, the new line still begins on a new line. Readers find a line that
// does not parse and, rarely, an empty one. The line survives the death of the process, but not a power failure: that
// would need a sync for each line.
func Append(path string, line []byte, perm os.FileMode) error {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if bytes.IndexByte(line, '\n') >= 0 {
		return fault.New(fault.ArgError, "a line for %s contains a newline", path).With("path", path)
	}
	perm = cmp.Or(perm, 0o600)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|openWithoutBlocking, perm)
	if err != nil {
		return toFault("append to", path, err)
	}
	err = appendLine(f, path, line)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return toFault("append to", path, err)
	}
	return nil
}

func appendLine(f *os.File, path string, line []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notRegular(path, info)
	}
	text := make([]byte, 0, len(line)+2)
	if size := info.Size(); size > 0 {
		last := []byte{'\n'}
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		// Write it together with the line: two writers at once leave at worst an empty line, and need no lock, which a
		// stopped process could hold forever.
		if last[0] != '\n' {
			text = append(text, '\n')
		}
	}
	text = append(append(text, line...), '\n')
	_, err = f.Write(text)
	return err
}
