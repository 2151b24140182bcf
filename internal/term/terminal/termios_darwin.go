package terminal

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
	countInput = 0x4004667f // FIONREAD
)

func forget(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, 1) } // 1: FREAD

func (f fields) apply(s *unix.Termios) {
	s.Iflag, s.Oflag, s.Cflag, s.Lflag = f.Iflag, f.Oflag, f.Cflag, f.Lflag
	copy(s.Cc[:], f.Cc[:])
}
