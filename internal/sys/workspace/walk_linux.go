//go:build !portable

package workspace

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
)

// openDir is an open directory.
type openDir struct{ fd int }

const openFolder = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func startAt(d *Dir, name string) (openDir, error) {
	f, err := in(d, name, func(r *os.Root, name string) (*os.File, error) {
		return r.OpenFile(name, os.O_RDONLY|openWithoutBlocking, 0)
	})
	if err != nil {
		return openDir{}, err
	}
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return openDir{}, err
	}
	var p openDir
	var failed error
	err = conn.Control(func(fd uintptr) { p, failed = openDir{int(fd)}.enter(".") })
	return p, errors.Join(err, failed)
}

// actual returns the path of the directory, as the kernel knows it.
func (p openDir) actual() (string, error) { return pathOf(p.fd) }

func (p openDir) close() { _ = unix.Close(p.fd) }

func (p openDir) enter(name string) (openDir, error) {
	fd, err := openat(p.fd, name, openFolder)
	return openDir{fd}, err
}

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, 0)
		if err != unix.EINTR { //nolint:errorlint // a plain number
			return fd, err
		}
	}
}

func (p openDir) has(name string) bool {
	var stat unix.Stat_t
	return unix.Fstatat(p.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// placeAt opens a directory by its path. Links are only followed in its parents.
func placeAt(path string) (openDir, error) { return openDir{unix.AT_FDCWD}.enter(path) }

// file opens a regular file. It refuses anything that has replaced the file since the directory was read, because
// searching a FIFO with a writer would never end.
func (p openDir) file(name string) (io.ReadCloser, error) {
	fd, err := openat(p.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err = unix.Fstat(fd, &stat); err == nil && stat.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fault.New(fault.Unsafe, "%s is not a regular file", printable(name))
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return descriptor(fd), nil
}

// keepsTime lists file systems that do, because some do not, and network file systems may do it late.
func (p openDir) keepsTime() bool {
	var s unix.Statfs_t
	if unix.Fstatfs(p.fd, &s) != nil {
		return false
	}
	switch s.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}

func (p openDir) modified(name string) (time.Time, bool) {
	var stat unix.Stat_t
	if err := unix.Fstatat(p.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil ||
		stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return time.Time{}, false
	}
	return time.Unix(stat.Mtim.Unix()), true
}

func (p openDir) status(name string) (Status, uint64, error) {
	var stat unix.Stat_t
	if err := unix.Fstatat(p.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Status{}, 0, err
	}
	return Status{
		FileMode(stat.Mode), stat.Size, stat.Mtim.Nano(), stat.Ctim.Nano(), stat.Ino, stat.Dev,
	}, uint64(stat.Nlink), nil //nolint:unconvert // it is smaller on some systems
}

func (p openDir) target(name string) (string, error) {
	for size := 256; ; size *= 4 {
		buffer := make([]byte, size)
		if n, err := unix.Readlinkat(p.fd, name, buffer); err != nil || n < size {
			return string(buffer[:max(n, 0)]), err
		}
	}
}

// descriptor reads a file without the overhead of os.File.
type descriptor int

func (d descriptor) Read(b []byte) (int, error) {
	for {
		switch n, err := unix.Read(int(d), b); {
		case err == unix.EINTR: //nolint:errorlint // a plain number
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (d descriptor) Close() error { return unix.Close(int(d)) }

// lister reads directories into a buffer.
type lister struct {
	buffer  []byte
	entries []Entry
}

func newLister() *lister { return &lister{buffer: make([]byte, 64<<10)} }

// read returns at least most further entries, or all remaining ones. They are valid until the next call.
func (l *lister) read(p *openDir, most int) (entries []Entry, done bool, err error) {
	entries = l.entries[:0]
	defer func() { l.entries = entries }()
	for len(entries) < most {
		n, err := unix.Getdents(p.fd, l.buffer)
		switch {
		case err == unix.EINTR: //nolint:errorlint // a plain number
			continue
		case err != nil:
			return entries, true, err
		case n <= 0:
			return entries, true, nil
		}
		entries = p.parse(entries, l.buffer[:n])
	}
	return entries, false, nil
}

// parse parses the kernel's buffer. Each entry has the inode and the offset of the next one (8 bytes each), the length
// of the record (2), the type (1) and the name with a terminating zero. All names of a buffer share one string.
func (p *openDir) parse(entries []Entry, raw []byte) []Entry {
	const lengthAt, typeAt, nameAt = 16, 18, 19
	text := string(raw)
	for at := 0; at+nameAt < len(raw); {
		length := int(binary.NativeEndian.Uint16(raw[at+lengthAt:]))
		if length <= nameAt || at+length > len(raw) {
			break
		}
		name := text[at+nameAt : at+length]
		if i := strings.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		if name != "." && name != ".." && name != "" {
			entries = append(entries, Entry{name, p.typeOf(raw[at+typeAt], name)})
		}
		at += length
	}
	return entries
}

func (p *openDir) typeOf(kind byte, name string) EntryType {
	switch kind {
	case unix.DT_REG:
		return FileEntry
	case unix.DT_DIR:
		return DirectoryEntry
	case unix.DT_UNKNOWN: // some file systems do not report it
		var stat unix.Stat_t
		if unix.Fstatat(p.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil {
			switch stat.Mode & unix.S_IFMT {
			case unix.S_IFREG:
				return FileEntry
			case unix.S_IFDIR:
				return DirectoryEntry
			}
		}
	}
	return OtherEntry
}
