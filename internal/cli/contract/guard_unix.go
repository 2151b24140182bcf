//go:build unix

package contract

import (
	"os"

	"golang.org/x/sys/unix"
)

// stdoutGuard reserves standard output for the answer. It replaces descriptor 1 by a pipe before anything else runs, so
// that output of a library or a stray print is caught and does not break the JSON.
type stdoutGuard struct {
	real *os.File
	pipe *os.File
	text *strayText
}

func guardStdout() *stdoutGuard {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil
	}
	real := os.NewFile(uintptr(fd), "/dev/stdout")
	r, w, err := os.Pipe()
	if err != nil {
		_ = real.Close()
		return nil
	}
	if err := replaceStdout(int(w.Fd())); err != nil {
		_ = real.Close()
		return nil
	}
	_ = w.Close()
	g := &stdoutGuard{real: real, pipe: r, text: &strayText{done: make(chan struct{})}}
	go g.text.read(r)
	return g
}

// collect ends the capture and returns what was caught. Later output of an abandoned handler is lost.
func (g *stdoutGuard) collect() string {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		null = g.pipe // the read end: writing to it fails
	}
	if replaceStdout(int(null.Fd())) != nil {
		return ""
	}
	return g.text.output()
}
