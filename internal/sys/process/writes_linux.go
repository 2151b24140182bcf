package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// keepWrites makes a pipe keep writes of up to a page apart, so that each read returns one. It ignores errors: then a
// read returns whatever has arrived.
func keepWrites(pipe *os.File) {
	if flags, err := unix.FcntlInt(pipe.Fd(), unix.F_GETFL, 0); err == nil {
		_, _ = unix.FcntlInt(pipe.Fd(), unix.F_SETFL, flags|unix.O_DIRECT)
	}
}
