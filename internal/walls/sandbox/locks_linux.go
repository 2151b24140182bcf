package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Git writes config.lock and then renames it to config. A process that has the lock open can write the configuration
// from then on, and one that replaces the lock decides what the configuration becomes. So a command may write, move and
// remove only locks that were made for it, never that of a person's git.

// mostLocks is how many locks of commands there may be at a time.
const mostLocks = 64

// makeLock creates a lock for the caller, and remembers its inode. The open descriptor keeps the inode number in use.
func (r *pathCall) makeLock(s resolved, d change) error {
	if d.flags&unix.O_CREAT == 0 {
		return s.refusal(false)
	}
	flags := int(d.flags)&^unix.O_TRUNC | unix.O_EXCL
	r.mayHave(r.mask())
	fd, err := unix.Openat(s.dir, s.name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, d.mode&0o7777)
	if err != nil {
		return err
	}
	var made unix.Stat_t
	held, err := unix.Open(own(fd), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Fstat(held, &made)
	}
	r.locking.Lock()
	defer r.locking.Unlock()
	if err == nil && len(r.locks) >= mostLocks && !r.forgetLocks() {
		err = unix.EAGAIN
	}
	if err != nil {
		_ = unix.Close(held)
		_ = unix.Close(fd)
		return errors.Join(err, unix.Unlinkat(s.dir, s.name, 0))
	}
	r.locks[inode{made.Dev, made.Ino}] = held
	r.ledger.add(entryWrote, r.began, s.path, "", &unix.Stat_t{}, &unix.Stat_t{})
	return r.hand(fd, int(d.flags))
}

// forgetLocks forgets locks that have no name any more, and reports whether there were some.
func (s *supervisor) forgetLocks() (some bool) {
	for id, held := range s.locks {
		var status unix.Stat_t
		if unix.Fstat(held, &status) != nil || status.Nlink == 0 {
			_ = unix.Close(held)
			delete(s.locks, id)
			some = true
		}
	}
	return some
}

// leave removes the locks of commands that were killed.
func (s *supervisor) leave() {
	s.locking.Lock()
	defer s.locking.Unlock()
	for id, held := range s.locks {
		path, err := os.Readlink(own(held))
		if there, errThere := inodeOf(path); err == nil && errThere == nil && there == id {
			_ = unix.Unlink(path)
		}
	}
}

// ownLock reports whether a lock was made for a command.
func (s *supervisor) ownLock(at resolved) bool {
	var status unix.Stat_t
	if unix.Fstatat(at.dir, at.name, &status, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	return s.isOwnLock(&status)
}

func (s *supervisor) isOwnLock(there *unix.Stat_t) bool {
	s.locking.Lock()
	defer s.locking.Unlock()
	_, known := s.locks[inode{there.Dev, there.Ino}]
	return known
}

// removeLock removes the caller's lock.
func (r *pathCall) removeLock(s resolved) error {
	if !r.ownLock(s) {
		return s.refusal(false)
	}
	err := unix.Unlinkat(s.dir, s.name, 0)
	r.locking.Lock()
	defer r.locking.Unlock()
	r.forgetLocks()
	return err
}
