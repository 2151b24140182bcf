package terminal

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
	countInput = unix.TIOCINQ
)

func forget(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }

func (f fields) apply(s *unix.Termios) {
	s.Iflag, s.Oflag, s.Cflag, s.Lflag = uint32(f.Iflag), uint32(f.Oflag), uint32(f.Cflag), uint32(f.Lflag)
	copy(s.Cc[:], f.Cc[:])
}
