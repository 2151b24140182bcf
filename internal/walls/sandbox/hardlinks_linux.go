package sandbox

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openOnly opens a file unless it is a protected one under a second name. It truncates the file after that check.
func (r *pathCall) openOnly(dir int, name string, flags int, mode uint32) (int, error) {
	access := flags & (unix.O_WRONLY | unix.O_RDWR)
	empties := flags&unix.O_TRUNC != 0
	later := empties && (access == unix.O_WRONLY || access == unix.O_RDWR)
	if later {
		flags &^= unix.O_TRUNC
	} else if empties && r.isTwin(resolved{dir: dir, name: name}) {
		return -1, refusedName
	}
	fd, err := unix.Openat(dir, name, flags, mode)
	if err != nil || flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL {
		return fd, err
	}
	var status unix.Stat_t
	if err = unix.Fstat(fd, &status); err == nil && r.names.twin(&status) {
		err = refusedName
	}
	if err == nil && later && status.Mode&unix.S_IFMT == unix.S_IFREG {
		err = unix.Ftruncate(fd, 0)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// isTwin reports whether a file is a protected one under a second name, by an earlier hard link. Few files have more
// than one name, so it rarely looks further. If it does, it checks all that is protected, however much that is: what it
// left out could be written.
func (r *pathCall) isTwin(s resolved) bool {
	var status unix.Stat_t
	if unix.Fstatat(s.dir, s.name, &status, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	return r.names.twin(&status)
}

func (g *guarded) twin(file *unix.Stat_t) bool {
	if file.Nlink < 2 || file.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	same := func(path string) (yes, directory bool) {
		var s unix.Stat_t
		if unix.Lstat(path, &s) != nil {
			return false, false
		}
		return s.Dev == file.Dev && s.Ino == file.Ino, s.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	for path := range g.kept {
		yes, directory := same(path)
		if yes {
			return true
		}
		if !directory {
			continue
		}
		found := false
		_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				if found, _ = same(path); found && !g.sample(path) {
					return fs.SkipAll
				}
				found = false
			}
			return nil
		})
		if found {
			return true
		}
	}
	return false
}
