package sandbox

import (
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// resolved is where a path leads: a name in an open directory. The caller has to close it.
type resolved struct {
	dir   int    // the directory, opened with O_PATH; -1: none
	name  string // ".": the directory itself
	path  string // of the directory and the name, as the kernel reports it
	slash bool   // the path ended with one
	own   int    // the descriptor of the caller to which the path leads instead; -1: none
}

func (s resolved) close() {
	if s.dir >= 0 {
		_ = unix.Close(s.dir)
	}
}

// following says whether the last element of a path is followed if it is a link.
type following int

const (
	never following = iota
	later           // only outside the workspace: inside, the next call fails for a link
	always
)

func followed(yes bool) following {
	if yes {
		return always
	}
	return never
}

// resolve resolves a path of the caller; follow says whether the last element is followed. It fails with errGoOn if the
// path leads out of the workspace.
func (r *pathCall) resolve(dir int32, path string, follow following) (resolved, error) {
	s, err := r.anywhere(dir, path, follow)
	if err != nil || s.own >= 0 {
		return s, err
	}
	if !r.inside(s.path) {
		s.close()
		return s, errGoOn
	}
	if !r.valid() {
		s.close()
		return s, errAnswered
	}
	return s, nil
}

// anywhere is resolve for paths that may lead out of the workspace.
func (r *pathCall) anywhere(dir int32, path string, follow following) (resolved, error) {
	at, owned := unix.AT_FDCWD, false
	drop := func() {
		if owned {
			_ = unix.Close(at)
		}
	}
	if path == "" {
		return resolved{}, unix.ENOENT
	}
	if n, ok := descriptor(path); ok {
		return resolved{dir: -1, own: n}, nil
	}
	if dir, path = beginning(dir, path); strings.HasPrefix(path, "/proc/") { // it differs for each process
		return resolved{}, errGoOn
	}
	if path[0] != '/' {
		base, err := r.base(dir)
		if err != nil {
			return resolved{}, err
		}
		at, owned = base, true
	}
	for range mostLinks + 1 {
		s, target, err := r.step(at, path, follow)
		if err != nil {
			drop()
			return s, err
		}
		owned = owned && s.dir != at // it is handed on
		if target == "" {
			drop()
			return s, nil
		}
		if n, ok := descriptor(target); ok {
			drop()
			s.close()
			return resolved{dir: -1, own: n}, nil
		}
		drop()
		if strings.HasPrefix(target, "/proc/") {
			s.close()
			return s, errGoOn
		}
		if strings.HasSuffix(target, "/") {
			s.slash = true
		}
		if at, owned, path = s.dir, true, target; s.slash {
			path += "/"
		}
	}
	drop()
	return resolved{}, unix.ELOOP
}

// step finds the directory of the last element of a path. If that is a link which is to be followed, it returns where
// it leads.
func (r *pathCall) step(at int, path string, follow following) (s resolved, target string, err error) {
	s = resolved{dir: -1, own: -1}
	trimmed := strings.TrimRight(path, "/")
	s.slash = len(trimmed) < len(path)
	parent, name := ".", trimmed
	if i := strings.LastIndexByte(trimmed, '/'); i >= 0 {
		parent, name = trimmed[:i+1], trimmed[i+1:]
	} else if trimmed == "" {
		parent, name = "/", "."
	}
	if name == "." || name == ".." {
		parent, name = trimmed+"/", "."
	}
	if s.dir = at; parent != "." { // at is a directory
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
		if s.dir, err = unix.Openat2(at, parent, &how); err != nil {
			s.dir = -1
			if errors.Is(err, unix.ELOOP) {
				err = errGoOn // over /proc, where each process has its own
			}
			return s, "", err
		}
	}
	s.name = name
	real, err := r.pathOfDir(s.dir)
	if err != nil || strings.HasPrefix(real, "/proc/") || real[0] != '/' {
		if s.dir != at {
			s.close()
		}
		return s, "", errGoOn
	}
	if s.path = real; name == "." {
		return s, "", nil
	}
	if s.path = strings.TrimSuffix(real, "/") + "/" + name; follow == never || follow == later && r.inside(s.path) {
		return s, "", nil
	}
	if n, err := unix.Readlinkat(s.dir, name, r.block[:]); err == nil && n > 0 {
		return s, string(r.block[:n]), nil
	}
	return s, "", nil
}

// pathOfDir returns the path of an open directory, as the kernel knows it. Changing to it and asking takes a fifth of
// the time that /proc takes.
func (r *pathCall) pathOfDir(fd int) (string, error) {
	if r.top >= 0 && unix.Fchdir(fd) == nil {
		n, err := unix.Getcwd(r.block[:])
		_ = unix.Fchdir(r.top) // a working directory keeps its file system from being unmounted
		if err == nil && n > 1 && r.block[0] == '/' {
			return string(r.block[:n-1]), nil
		}
	}
	return r.pathOf(fd)
}

// pathOf returns the path of an open file, as the kernel knows it.
func (r *pathCall) pathOf(fd int) (string, error) {
	n, err := unix.Readlink(own(fd), r.block[:])
	if errors.Is(err, unix.ENAMETOOLONG) {
		return r.deepPath(fd)
	}
	if err != nil || n == 0 {
		return "", unix.EACCES
	}
	return string(r.block[:n]), nil
}

// deepPath returns a path for a directory whose own would be too long: that of a directory above it, and a name that no
// file has. No protected name lies that deep, except below another.
func (r *pathCall) deepPath(fd int) (string, error) {
	at, err := unix.Openat(fd, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for err == nil {
		n, errPath := unix.Readlink(own(at), r.block[:])
		if errPath == nil && n > 0 {
			_ = unix.Close(at)
			return string(r.block[:n]) + "/\x00", nil
		}
		up, errUp := unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		_ = unix.Close(at)
		if at, err = up, errUp; !errors.Is(errPath, unix.ENAMETOOLONG) {
			err = unix.EACCES
		}
	}
	return "", unix.EACCES
}

// own returns the path of our own descriptor.
func own(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// descriptor returns the number of the descriptor of the caller that a path names.
func descriptor(path string) (int, bool) {
	for i, name := range []string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if path == name {
			return i, true
		}
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"} {
		if number, found := strings.CutPrefix(path, dir); found {
			n, err := strconv.ParseUint(number, 10, 31)
			return int(n), err == nil
		}
	}
	return 0, false
}

// beginning splits a path that starts at a directory of the caller in /proc into that directory and the rest.
func beginning(dir int32, path string) (int32, string) {
	for _, at := range []string{"/proc/self/cwd/", "/proc/thread-self/cwd/"} {
		if rest, found := strings.CutPrefix(path, at); found && strings.Trim(rest, "/") != "" {
			return here, strings.TrimLeft(rest, "/")
		}
	}
	for _, at := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"} {
		if rest, found := strings.CutPrefix(path, at); found {
			number, rest, _ := strings.Cut(rest, "/")
			n, err := strconv.ParseUint(number, 10, 31)
			if rest = strings.TrimLeft(rest, "/"); err == nil && rest != "" {
				return int32(n), rest
			}
		}
	}
	return dir, path
}

// base opens the directory from which a relative path begins.
func (r *pathCall) base(dir int32) (int, error) {
	name := "cwd"
	if dir != unix.AT_FDCWD {
		name = "fd/" + strconv.Itoa(int(dir))
	}
	fd, err := r.ofCaller(name, unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOTDIR) {
		return -1, err
	}
	if err != nil {
		return -1, errGoOn
	}
	return fd, nil
}

// held opens, with O_PATH, the file of a descriptor of the caller. It fails with errGoOn outside the workspace.
func (r *pathCall) held(number int) (fd int, path string, err error) {
	if fd, path, err = r.opened(number); err == nil && !r.inside(path) {
		_ = unix.Close(fd)
		return -1, "", errGoOn
	}
	return fd, path, err
}

// opened is held without the check for the workspace.
func (r *pathCall) opened(number int) (fd int, path string, err error) {
	fd, err = r.ofCaller("fd/"+strconv.Itoa(number), 0)
	if err != nil {
		return -1, "", errGoOn
	}
	if path, err = r.pathOf(fd); err != nil || !r.valid() {
		_ = unix.Close(fd)
		return -1, "", errGoOn
	}
	return fd, path, nil
}

// inside reports whether a path is or lies in a directory where the supervisor acts.
func (r *pathCall) inside(path string) bool {
	for _, root := range r.roots { // both are as the kernel says them, so nothing has to be cleaned
		if rest, found := strings.CutPrefix(path, root); found && (rest == "" || rest[0] == '/' || root == "/") {
			return true
		}
	}
	return false
}
