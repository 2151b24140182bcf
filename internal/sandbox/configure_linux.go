package sandbox

import (
	"crypto/rand"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// configure does what git does at the end of a change of its configuration: it moves config.lock to config, if the
// change is one that a command may make. A command may still have the lock open, so what is checked is a copy.
func configure(from, to spot) error {
	text, mode, err := content(from)
	if err != nil {
		return err
	}
	old, _, err := content(to)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if !mayBecome(string(old), string(text)) {
		return refusedName
	}
	name := ".config-" + rand.Text()
	fd, err := unix.Openat(to.dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|ours, mode&0o777)
	if err != nil {
		return err
	}
	copied := os.NewFile(uintptr(fd), name)
	_, err = copied.Write(text)
	if err = errors.Join(err, copied.Close()); err == nil {
		err = unix.Renameat(to.dir, name, to.dir, to.name)
	}
	if err != nil {
		_ = unix.Unlinkat(to.dir, name, 0)
		return err
	}
	return unix.Unlinkat(from.dir, from.name, 0)
}

// content reads a file of configuration.
func content(s spot) (text []byte, mode uint32, err error) {
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
