//go:build unix

package terminal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attach makes a device of a terminal without changing anything.
func (d *device) attach(in *os.File) { d.fd = int(in.Fd()) }

// name tells one terminal from another, as long as the system runs.
func (d *device) name() string {
	var s unix.Stat_t
	if unix.Fstat(d.fd, &s) != nil {
		return ""
	}
	return fmt.Sprintf("%x-%x", uint64(s.Dev), uint64(s.Rdev)) //nolint:unconvert // the types differ by system
}

// states returns both states as bytes.
func (d *device) states() (before, raw []byte) { return bytesOf(d.before), bytesOf(d.raw) }

func bytesOf(s unix.Termios) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.NativeEndian, termiosFields(&s))
	return b.Bytes()
}

// repair puts the terminal back if it is still in the raw state.
func (d *device) repair(before, raw []byte) bool {
	now, err := unix.IoctlGetTermios(d.fd, getTermios)
	if err != nil || !bytes.Equal(bytesOf(*now), raw) {
		return false
	}
	fields := termiosFields(now)
	if binary.Read(bytes.NewReader(before), binary.NativeEndian, &fields) != nil {
		return false
	}
	fields.apply(now)
	return unix.IoctlSetTermios(d.fd, setTermios, now) == nil
}

// fields are the parts of a state that both systems have, in one size.
type fields struct {
	Iflag, Oflag, Cflag, Lflag uint64
	Cc                         [32]byte
}

func termiosFields(s *unix.Termios) fields {
	f := fields{Iflag: uint64(s.Iflag), Oflag: uint64(s.Oflag), Cflag: uint64(s.Cflag), Lflag: uint64(s.Lflag)}
	copy(f.Cc[:], s.Cc[:])
	return f
}

// alive reports whether a process still runs, and is the one that was born then.
func alive(pid int, when string) bool {
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	return born(pid) == when
}

// born returns when a process was started, as the system counts; "" where it does not tell.
func born(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before it may have anything
	if fields := strings.Fields(rest); len(fields) > 19 {
		return fields[19]
	}
	return ""
}
