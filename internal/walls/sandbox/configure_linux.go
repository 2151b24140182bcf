package sandbox

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// copyPrefix begins the names of new configurations until they are renamed. Every supervisor protects such names
// everywhere: a command that had one open could write the configuration.
const copyPrefix = ".omniagent-config-"

// configure does what git does at the end of a change of its configuration: it moves config.lock to config, if a
// command may make the change. A command may still have the lock open, so configure writes the text that it has checked
// to a file which no command can open.
func (r *pathCall) configure(from, to resolved) error {
	if !r.ownLock(from) {
		return refusedName
	}
	text, mode, err := content(from)
	if err != nil {
		return err
	}
	old, _, err := content(to)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if !mayBecome(string(old), string(text), r.writable) {
		return refusedName
	}
	sweepCopies(to.dir)
	name := copyPrefix + rand.Text()
	fd, err := unix.Openat(to.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|ours, 0)
	if err != nil {
		return err
	}
	copied := os.NewFile(uintptr(fd), name)
	_, err = copied.Write(text)
	if err = errors.Join(err, copied.Chmod(os.FileMode(mode&0o777)), copied.Close()); err == nil {
		err = unix.Renameat(to.dir, name, to.dir, to.name)
	}
	if err != nil {
		_ = unix.Unlinkat(to.dir, name, 0)
		return err
	}
	return r.removeLock(from)
}

// sweepCopies removes copies older than a minute, which a killed supervisor left.
func sweepCopies(dir int) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	file := os.NewFile(uintptr(fd), ".")
	defer file.Close()
	names, _ := file.Readdirnames(-1)
	for _, name := range names {
		var s unix.Stat_t
		if strings.HasPrefix(name, copyPrefix) && unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW) == nil &&
			time.Since(time.Unix(s.Mtim.Unix())) > time.Minute {
			_ = unix.Unlinkat(dir, name, 0)
		}
	}
}

// content reads a file of configuration.
func content(s resolved) (text []byte, mode uint32, err error) {
	fd, err := unix.Openat(s.dir, s.name, unix.O_RDONLY|ours, 0)
	if err != nil {
		return nil, 0, err
	}
	file := os.NewFile(uintptr(fd), s.name)
	defer file.Close()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, 0, unix.EACCES
	}
	text, err = io.ReadAll(io.LimitReader(file, longestConfig+1))
	if err == nil && len(text) > longestConfig {
		err = unix.EFBIG
	}
	return text, info.Mode, err
}
