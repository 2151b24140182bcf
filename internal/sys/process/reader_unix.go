//go:build unix

package process

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ReaderGone returns a channel that is closed when the reader of a pipe, a socket or a terminal goes away, even if
// nothing is being written. For any other file it is never closed.
func ReaderGone(out io.Writer) <-chan struct{} {
	gone := make(chan struct{})
	f, ok := out.(*os.File)
	if !ok {
		return gone
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return gone
	}
	fd := -1
	if conn.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }) != nil || err != nil {
		return gone
	}
	go func() { // until the process ends, if the reader stays
		defer unix.Close(fd)
		if hungUp(fd, -1) {
			close(gone)
		}
	}()
	return gone
}

// IsReaderGone reports whether the channel of ReaderGone would be closed by now.
func IsReaderGone(out io.Writer) (gone bool) {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { gone = hungUp(int(fd), 0) })
	}
	return gone
}

// hungUp waits until the other side of a file is gone, for ms milliseconds at most; -1: without a limit.
func hungUp(fd, ms int) bool {
	for {
		list := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(list, ms)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n > 0 && list[0].Revents&unix.POLLNVAL == 0 &&
			list[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	}
}
