package undo

import (
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// leases are held on the packs that a repository and the store share by hard links. The kernel blocks a program that
// opens such a file for writing, or truncates it, until the lease is given up, and before that the store makes a copy
// of its own. So a pack is copied only when something is about to damage it.
type leases struct {
	signals chan os.Signal
	done    chan struct{}
	group   sync.WaitGroup
	held    []lease
	left    int64 // bytes that are copied when the leases are given up
}

type lease struct {
	fd   int
	pack string
	own  func() error // makes the copy of the store
	size int64
}

const mostLeases = 1024 // each of them is an open file

// newLeases prepares to take leases.
func newLeases(left int64) *leases {
	l := &leases{signals: make(chan os.Signal, 1), done: make(chan struct{}), left: left}
	signal.Notify(l.signals, unix.SIGIO) // before the first lease: without a handler the signal is ignored
	return l
}

// take takes a lease on a file, and reports whether it succeeded.
func (l *leases) take(path string, own func() error) bool {
	if len(l.held) == mostLeases {
		return false
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		_ = unix.Close(fd)
		return false
	}
	var is unix.Stat_t
	_ = unix.Fstat(fd, &is)
	l.held = append(l.held, lease{fd, path, own, is.Size})
	return true
}

// watch serves the leases until close.
func (l *leases) watch() {
	l.group.Go(func() {
		for {
			select {
			case <-l.signals:
				l.serve()
			case <-l.done:
				return
			}
		}
	})
}

// serve gives up the leases that another program waits for.
func (l *leases) serve() {
	kept := l.held[:0]
	for _, h := range l.held {
		if is, err := unix.FcntlInt(uintptr(h.fd), unix.F_GETLEASE, 0); err == nil && is == unix.F_RDLCK {
			kept = append(kept, h)
			continue
		}
		_ = h.own() // if it fails, the checksum of the pack reveals it
		_ = unix.Close(h.fd)
	}
	l.held = kept
}

// close gives up all leases. Before that the store makes copies of its own, as far as left allows: until the next turn
// nothing would notice a write to a pack.
func (l *leases) close() {
	signal.Stop(l.signals)
	close(l.done)
	l.group.Wait()
	l.serve() // those who wait already
	for _, h := range l.held {
		if l.left -= h.size; l.left >= 0 {
			_ = h.own() // where it fails, the checksum tells
		}
		_ = unix.Close(h.fd)
	}
	l.held = nil
}
