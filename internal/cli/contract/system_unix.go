//go:build unix

package contract

import (
	"errors"
	"io"
	"syscall"
)

// readerGone reports that a write failed because nobody reads any more.
func readerGone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

func diskFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }
