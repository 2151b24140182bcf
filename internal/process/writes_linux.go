package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// keepWrites makes each write to a pipe, up to a page, one that is read alone. Without it the reader still gets all.
func keepWrites(pipe *os.File) {
	if flags, err := unix.FcntlInt(pipe.Fd(), unix.F_GETFL, 0); err == nil {
		_, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETFL, flags|unix.O_DIRECT)
	}
}
