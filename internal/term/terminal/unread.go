package terminal

import (
	"io"
	"os"
)

// Unread reports whether something can be read from a pipe, a socket or a file at once.
func Unread(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		at, err := f.Seek(0, io.SeekCurrent)
		return err == nil && info.Size() > at
	case mode&(os.ModeNamedPipe|os.ModeSocket) != 0:
		return Waiting(f) > 0
	}
	return false
}
