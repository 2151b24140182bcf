package sandbox

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// act is a kind of change.
type act int

const (
	opensFile act = iota + 1
	truncates
	makesDirectory
	makesNode
	makesLink
	makesName
	moves
	removes
	masks
	marks
)

// change is what a system call asks for. A change with two paths has the old one first.
type change struct {
	act   act
	dirs  [2]int32
	paths [2]uint64
	flags uint64
	mode  uint32
	size  int64
	apply applying // what changes an attribute
}

// applying changes an attribute of an open file. fd may be open with O_PATH.
type applying func(r *pathCall, fd int) error

// here is the working directory, for calls without a directory.
const here = int32(unix.AT_FDCWD)

// do makes the change. It returns errGoOn if the kernel has to make it.
func (r *pathCall) do(d change) error {
	if d.act == moves {
		r.moves.Lock()
		defer r.moves.Unlock()
		return r.move(d)
	}
	r.moves.RLock()
	defer r.moves.RUnlock()
	switch d.act {
	case opensFile:
		return r.open(d)
	case makesName:
		return r.link(d)
	case makesLink:
		return r.symlink(d)
	case masks:
		r.unmask.Add(1)
		return errGoOn
	case marks:
		if !r.attributes {
			r.seeMark(d)
			return errGoOn
		}
		return r.mark(d)
	}
	path, err := r.text(d.paths[0])
	if err != nil {
		return err
	}
	s, err := r.resolve(d.dirs[0], path, followed(d.act == truncates)) // truncate follows, the calls below do not
	if err != nil {
		return r.kernels(err, d.act == truncates)
	}
	defer s.close()
	switch {
	case s.own >= 0:
		return errGoOn
	case s.name == ".":
		return dotted(d)
	}
	switch d.act {
	case truncates:
		return r.truncate(s, d.size)
	case makesDirectory:
		if !r.names.mayMakeDirectory(s.path) || r.names.isFreshDirectory(s.path) && s.kind() == 0 {
			return s.refusal(true)
		}
		r.mayHave(r.mask())
		return r.entered(s, func() error { return unix.Mkdirat(s.dir, s.name, d.mode&0o7777) })
	case makesNode:
		kind := d.mode & unix.S_IFMT
		if !slices.Contains([]uint32{0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK}, kind) {
			return unix.EPERM
		}
		if err := r.mayMake(s); err != nil {
			return err
		}
		r.mayHave(r.mask())
		return r.entered(s, func() error { return unix.Mknodat(s.dir, s.name, d.mode, 0) })
	case removes:
		return r.remove(s, int(d.flags))
	}
	return errGoOn
}

// fresh reports whether a name does not exist yet and commands may not create it, see autorun.Policy.
func (r *pathCall) fresh(s resolved) bool { return r.names.isFresh(s.path) && s.kind() == 0 }

// bringsFresh reports whether a move would create such a name, or move a directory that may contain some.
func (r *pathCall) bringsFresh(from, to resolved) bool {
	return r.fresh(to) || from.kind() == unix.S_IFDIR && r.names.isFreshTree(to.path)
}

func (r *pathCall) remove(s resolved, flags int) error {
	switch {
	case r.names.lock(s.path) && !r.names.protects(s.path):
		return r.entered(s, func() error { return r.removeLock(s) })
	case !r.names.mayRemove(s.path):
		return s.refusal(false)
	case s.slash && flags == 0:
		return s.file()
	}
	return r.entered(s, func() error { return unix.Unlinkat(s.dir, s.name, flags) })
}

// mayMake returns an error if a command may not create a name as something other than a directory.
func (r *pathCall) mayMake(s resolved) error {
	if !r.names.mayMove(s.path) || r.fresh(s) {
		return s.refusal(true)
	}
	if s.slash {
		if s.kind() == 0 {
			return unix.ENOENT
		}
		return unix.EEXIST
	}
	return nil
}

// kind returns the file type of what exists there, or 0.
func (s resolved) kind() uint32 {
	var status unix.Stat_t
	if unix.Fstatat(s.dir, s.name, &status, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return 0
	}
	return status.Mode & unix.S_IFMT
}

// file returns the error for a path that ends with a slash where a file is meant.
func (s resolved) file() error {
	switch s.kind() {
	case 0:
		return unix.ENOENT
	case unix.S_IFDIR:
		return unix.EISDIR
	}
	return unix.ENOTDIR
}

// refusal returns the error for a protected name. Errors that do not come from the protection take precedence.
func (s resolved) refusal(makes bool) error {
	switch exists := s.kind() != 0; {
	case makes && exists:
		return unix.EEXIST
	case !makes && !exists:
		return unix.ENOENT
	}
	return refusedName
}

// kernels refuses a truncation that would be left to the kernel where Landlock does not check it.
func (r *pathCall) kernels(err error, truncates bool) error {
	if truncates && r.blunt && errors.Is(err, errGoOn) {
		return unix.EACCES
	}
	return err
}

// refusedName is the error for a protected name, the same as on a read-only file system.
const refusedName = unix.EROFS

// dotted returns the error of a call that names a directory by ".".
func dotted(d change) error {
	switch {
	case d.act == makesDirectory || d.act == makesNode:
		return unix.EEXIST
	case d.act == removes && d.flags != 0:
		return unix.EINVAL
	}
	return unix.EISDIR
}

// writing are the flags for which a filter holds an open.
const writing = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

func (r *pathCall) open(d change) error {
	flags := int(d.flags)
	if flags&unix.O_PATH != 0 {
		return errGoOn
	}
	path, err := r.text(d.paths[0])
	if err != nil {
		return err
	}
	exclusive := flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL
	follow := r.follows(flags, path)
	s, err := r.resolve(d.dirs[0], path, follow)
	if err != nil {
		return r.kernels(err, flags&(unix.O_TRUNC|unix.O_WRONLY|unix.O_RDWR) == unix.O_TRUNC)
	}
	defer s.close()
	if s.own >= 0 {
		return r.reopen(s.own, flags)
	}
	if follow == later && (!r.names.mayWrite(s.path) || r.names.leadsTo(s.path)) {
		return errMoved
	}
	switch {
	case s.slash && flags&unix.O_CREAT != 0:
		return unix.EISDIR
	case s.slash && s.name != "." && flags&unix.O_DIRECTORY == 0:
		return s.file()
	case s.name != "." && r.names.lock(s.path) && !r.names.protects(s.path):
		return r.makeLock(s, d)
	case s.name != "." && !r.names.mayWrite(s.path):
		if flags&(unix.O_CREAT|unix.O_EXCL|unix.O_TRUNC|unix.O_WRONLY|unix.O_RDWR) == unix.O_CREAT && s.kind() != 0 {
			return errGoOn // it is only read, if Landlock lets it
		}
		if flags&unix.O_CREAT != 0 && !exclusive {
			return refusedName
		}
		return s.refusal(exclusive)
	case flags&unix.O_CREAT != 0 && r.names.leadsTo(s.path): // a directory may be made there, but no file
		flags &^= unix.O_CREAT | unix.O_EXCL
	case flags&unix.O_CREAT != 0 && s.name != "." && r.names.isFresh(s.path): // only what exists may be opened
		if r.fresh(s) {
			return refusedName
		}
		if flags &^= unix.O_CREAT; exclusive {
			return unix.EEXIST
		}
	}
	if flags&(unix.O_CREAT|unix.O_TMPFILE) != 0 {
		r.mayHave(r.mask())
	}
	how := flags | ours
	if exclusive { // it cannot be a pipe
		how &^= unix.O_NONBLOCK &^ flags
	}
	was := r.look(s)
	fd, err := r.openOnly(s.dir, s.name, how, d.mode&0o7777)
	switch {
	case errors.Is(err, unix.ELOOP) && flags&unix.O_NOFOLLOW == 0:
		return errMoved
	case (errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EAGAIN)) && flags&unix.O_NONBLOCK == 0:
		return r.wait(s, flags)
	case err != nil:
		return err
	}
	if s.name != "." { // else it is a file without a name
		r.ledger.add(entryWrote, r.began, s.path, "", &was, &unix.Stat_t{})
	}
	if how&unix.O_NONBLOCK == 0 {
		return r.hand(fd, flags)
	}
	return r.give(fd, flags)
}

// follows returns whether an open follows the last element. Written files are rarely links, so at first the open itself
// finds out.
func (r *pathCall) follows(flags int, path string) following {
	switch {
	case strings.HasSuffix(path, "/"):
		return always
	case flags&unix.O_NOFOLLOW != 0 || flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL:
		return never
	case r.again || flags&unix.O_DIRECTORY != 0:
		return always
	}
	return later
}

// ours are the flags with which the supervisor opens: it follows no links, does not wait, and gets no terminal.
const ours = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY

// give hands over a file that was opened with O_NONBLOCK, which it clears if the caller did not ask for it.
func (r *pathCall) give(fd, flags int) error {
	if flags&unix.O_NONBLOCK == 0 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&(unix.O_APPEND|unix.O_DIRECT|unix.O_NOATIME|
			unix.O_ASYNC)); err != nil {
			_ = unix.Close(fd)
			return err
		}
	}
	return r.hand(fd, flags)
}

// reopen opens again what a descriptor of the caller refers to, as for /dev/stdout.
func (r *pathCall) reopen(number, flags int) error {
	fd, path, err := r.held(number)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var status unix.Stat_t
	if !r.names.mayWrite(path) || unix.Fstat(fd, &status) != nil || r.names.twin(&status) {
		return refusedName
	}
	again, err := unix.Open(own(fd), flags&^(unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)|ours&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	r.ledger.add(entryWrote, r.began, path, "", &status, &unix.Stat_t{})
	return r.give(again, flags)
}

func (r *pathCall) truncate(s resolved, size int64) error {
	if s.slash {
		return s.file()
	}
	if !r.names.mayWrite(s.path) || r.isTwin(s) {
		return s.refusal(false)
	}
	fd, err := unix.Openat(s.dir, s.name, unix.O_WRONLY|ours, 0)
	if errors.Is(err, unix.ELOOP) {
		return errMoved
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return r.entered(s, func() error { return unix.Ftruncate(fd, size) })
}

// second resolves the second path of a call.
func (r *pathCall) second(d change) (resolved, error) {
	path, err := r.text(d.paths[1])
	if err != nil {
		return resolved{}, err
	}
	s, err := r.resolve(d.dirs[1], path, never)
	if err == nil && s.own >= 0 {
		return resolved{}, errGoOn
	}
	return s, err
}

func (r *pathCall) symlink(d change) error {
	target, err := r.text(d.paths[0])
	if err != nil {
		return err
	}
	s, err := r.second(d)
	if err != nil {
		return err
	}
	defer s.close()
	if s.name == "." {
		return unix.EEXIST
	}
	if err := r.mayMake(s); err != nil {
		return err
	}
	if !r.mayMakeLink(s, target) {
		return unix.EPERM
	}
	return r.entered(s, func() error { return unix.Symlinkat(target, s.dir, s.name) })
}

// link gives a file a second name. It refuses that for a protected file, which could be changed by the new name.
func (r *pathCall) link(d change) error {
	to, err := r.second(d)
	if err != nil {
		return err // Landlock refuses a new name outside for a file inside
	}
	defer to.close()
	path, err := r.text(d.paths[0])
	if err != nil {
		return err
	}
	from := resolved{dir: -1, own: int(d.dirs[0])}
	if path != "" || d.flags&unix.AT_EMPTY_PATH == 0 {
		if from, err = r.resolve(d.dirs[0], path, followed(d.flags&unix.AT_SYMLINK_FOLLOW != 0 ||
			strings.HasSuffix(path, "/"))); err != nil {
			return elsewhere(err)
		}
	}
	defer from.close()
	if to.name == "." {
		return unix.EEXIST
	}
	if err := r.mayMake(to); err != nil {
		return err
	}
	if from.own < 0 {
		if !r.names.mayWrite(from.path) {
			return from.refusal(false)
		}
		if from.slash && from.kind() != unix.S_IFDIR {
			return from.file()
		}
		if !r.names.inGit(to.path) {
			return r.entered(to, func() error { return unix.Linkat(from.dir, from.name, to.dir, to.name, 0) })
		}
		fd, err := unix.Openat(from.dir, from.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return r.entered(to, func() error { return r.secondName(fd, to) })
	}
	fd, path, err := r.held(from.own)
	if err != nil {
		return elsewhere(err)
	}
	defer unix.Close(fd)
	if !r.names.mayWrite(path) {
		return refusedName
	}
	return r.entered(to, func() error { return r.secondName(fd, to) })
}

// elsewhere returns EXDEV for a call with one path outside the workspace, as between two file systems.
func elsewhere(err error) error {
	if errors.Is(err, errGoOn) {
		return unix.EXDEV
	}
	return err
}

func (r *pathCall) move(d change) error {
	path, err := r.text(d.paths[0])
	if err != nil {
		return err
	}
	from, errFrom := r.resolve(d.dirs[0], path, never)
	if errFrom == nil {
		defer from.close()
	}
	to, errTo := r.second(d)
	if errTo == nil {
		defer to.close()
	}
	switch outside := errors.Is(errFrom, errGoOn); {
	case outside && errors.Is(errTo, errGoOn):
		return errGoOn
	case errFrom != nil && !outside:
		return errFrom
	case outside && errTo == nil && !existsOutside(r, d.dirs[0], path):
		return unix.ENOENT
	case outside || errTo != nil:
		return elsewhere(errors.Join(errFrom, errTo))
	case from.own >= 0:
		return errGoOn
	case from.name == "." || to.name == ".":
		return unix.EBUSY
	case d.flags&^uint64(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0:
		return unix.EINVAL
	}
	if r.names.configures(from.path, to.path) && d.flags == 0 {
		return r.enteredMove(from, to, func() error { return r.configure(from, to) })
	}
	if !r.names.mayMove(from.path) || !r.names.mayMove(to.path) {
		return from.refusal(false)
	}
	if r.bringsFresh(from, to) || d.flags&unix.RENAME_EXCHANGE != 0 && r.bringsFresh(to, from) {
		return refusedName
	}
	if kind := from.kind(); kind != unix.S_IFDIR && (from.slash || to.slash) {
		if kind == 0 {
			return unix.ENOENT
		}
		return unix.ENOTDIR
	}
	if d.flags&unix.RENAME_EXCHANGE != 0 {
		return r.entered(from, func() error {
			return r.entered(to, func() error { return r.rename(from, to, uint(d.flags)) })
		})
	}
	return r.enteredMove(from, to, func() error { return r.rename(from, to, uint(d.flags)) })
}

// existsOutside reports whether a path of the caller that leads out of the workspace leads to something.
func existsOutside(r *pathCall, dir int32, path string) bool {
	at, err := unix.AT_FDCWD, error(nil)
	if path != "" && path[0] != '/' {
		if at, err = r.base(dir); err != nil {
			return true
		}
		defer unix.Close(at)
	}
	var s unix.Stat_t
	return !errors.Is(unix.Fstatat(at, path, &s, unix.AT_SYMLINK_NOFOLLOW), unix.ENOENT)
}
