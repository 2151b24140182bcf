package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A FIFO without a reader cannot be opened for writing, nor can a file on which somebody holds a lease. The caller then
// waits, and the supervisor tries again. It must not block in the open itself: a FIFO that it held open for a process
// that has gone would seem to have a writer.

// waiting is a file that is to be opened as soon as it can be.
type waiting struct {
	request *pathCall
	dir     int
	name    string
	flags   int
}

const (
	mostWaiting = 256
	pause       = 2 * time.Millisecond
)

// wait queues an open for keepTrying.
func (r *pathCall) wait(s resolved, flags int) error {
	dir, err := unix.FcntlInt(uintptr(s.dir), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	later := r.newRequest()
	later.id, later.pid = r.id, r.pid
	select {
	case r.later <- waiting{later, dir, s.name, flags &^ (unix.O_CREAT | unix.O_EXCL)}:
		return errAnswered
	default:
		_ = unix.Close(dir)
		return unix.EAGAIN
	}
}

// open tries once more. It reports whether the caller has its answer, or no longer waits.
func (w waiting) open() bool {
	r := w.request
	r.moves.RLock()
	defer r.moves.RUnlock()
	path, err := r.pathOf(w.dir) // it may have been moved
	if !r.valid() || err != nil || !r.names.mayWrite(filepath.Join(path, w.name)) {
		r.send(&answer{id: r.id, errno: -int32(unix.EACCES)})
		_ = unix.Close(w.dir)
		return true
	}
	r.began = time.Now()
	was := r.look(resolved{dir: w.dir, name: w.name})
	fd, err := r.openOnly(w.dir, w.name, w.flags|ours, 0)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EAGAIN) {
		if !r.signalled() {
			return false
		}
		err = unix.EINTR
	}
	_ = unix.Close(w.dir)
	if err == nil {
		r.ledger.add(entryWrote, r.began, filepath.Join(path, w.name), "", &was, &unix.Stat_t{})
		err = r.give(fd, w.flags)
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		r.send(&answer{id: r.id, errno: -int32(errno)})
	}
	return true
}

// signalled reports whether the caller has a pending signal, which would interrupt its open.
func (r *pathCall) signalled() bool {
	proc, err := r.proc()
	if err != nil {
		return false
	}
	text, _ := os.ReadFile(proc + "/status")
	var pending, blocked, caught uint64
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		set, _ := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		switch key {
		case "SigPnd", "ShdPnd":
			pending |= set
		case "SigBlk":
			blocked = set
		case "SigCgt":
			caught = set
		}
	}
	return pending&^blocked&caught != 0
}

// keepTrying opens the queued files as soon as they can be opened.
func (s *supervisor) keepTrying(begun chan<- error) {
	err := bare()
	if begun <- err; err != nil {
		return
	}
	clock := time.NewTicker(pause)
	clock.Stop()
	var list []waiting
	for {
		select {
		case w := <-s.later:
			if len(list) >= mostWaiting {
				w.request.send(&answer{id: w.request.id, errno: -int32(unix.EAGAIN)})
				_ = unix.Close(w.dir)
				continue
			}
			if list = append(list, w); len(list) == 1 {
				clock.Reset(pause)
			}
			continue
		case <-clock.C:
		}
		var left []waiting
		for _, w := range list {
			if !w.open() {
				left = append(left, w)
			}
		}
		if list = left; len(list) == 0 {
			clock.Stop()
		}
	}
}
