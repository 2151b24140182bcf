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
		for {
			list := []unix.PollFd{{Fd: int32(fd)}}
			n, err := unix.Poll(list, -1)
			switch {
			case errors.Is(err, unix.EINTR):
			case err != nil || n < 1 || list[0].Revents&unix.POLLNVAL != 0:
				return
			case list[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
				close(gone)
				return
			default:
				return
			}
		}
	}()
	return gone
}
