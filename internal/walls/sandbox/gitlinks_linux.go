package sandbox

import (
	"io/fs"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

// A person's git writes many files in a git directory by their names, such as COMMIT_EDITMSG and logs/HEAD. A link
// there would lead it to a file that commands cannot write. So no command may create a link in a git directory, or move
// one there, or move a directory there that may contain some.

// probing matches the link by which git finds out, in a new repository, whether links work.
const probing = `^t[A-Za-z0-9]{6}$`

// mayMakeLink reports whether a command may make a link.
func (r *pathCall) mayMakeLink(s resolved, target string) bool {
	return !r.names.inGit(s.path) || target == "testing" && regexp.MustCompile(probing).MatchString(s.name)
}

// brings reports whether moving a file to a path would bring a link into a git directory.
func (r *pathCall) brings(from resolved, to string) bool {
	return r.names.inGit(to) && r.couldBring(from.kind(), from.path)
}

func (r *pathCall) couldBring(kind uint32, from string) bool {
	return kind == unix.S_IFLNK || kind == unix.S_IFDIR && !r.names.inGit(from)
}

// frees reports whether a move would take a directory out of a git directory, where names that a rule protects may be
// made, or would move a directory that contains such a name. Either could replace a protected file.
func (r *pathCall) frees(from resolved, to string) bool {
	if len(r.names.named) == 0 || from.kind() != unix.S_IFDIR || r.names.inGit(from.path) && r.names.inGit(to) {
		return false
	}
	return r.names.inGit(from.path) || r.names.holdsNamed(from.path)
}

// holdsNamed reports whether a directory contains a name that a rule protects, or cannot be read completely.
func (g *guarded) holdsNamed(dir string) (holds bool) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || path != dir && g.isNamed(path):
			holds = true
			return fs.SkipAll
		case entry.IsDir() && path != dir && g.inGit(path):
			return fs.SkipDir
		}
		return nil
	})
	return holds
}

// rename moves a name within the workspace. It refuses to bring a link into a git directory, to move HEAD away from
// one, and to replace HEAD by anything but its lock. It checks for links again afterwards, because another command has
// another supervisor, and then moves the name back.
func (r *pathCall) rename(from, to resolved, flags uint) error {
	exchange := flags&unix.RENAME_EXCHANGE != 0
	switch {
	case r.names.isHead(from.path), r.names.isHead(to.path) && (from.path != to.path+".lock" || flags != 0):
		return unix.EPERM
	case r.brings(from, to.path), exchange && r.brings(to, from.path):
		return unix.EPERM
	case r.frees(from, to.path), exchange && r.frees(to, from.path):
		return refusedName
	}
	if err := unix.Renameat2(from.dir, from.name, to.dir, to.name, flags); err != nil {
		return err
	}
	if r.names.inGit(to.path) && r.couldBring(to.kind(), from.path) ||
		exchange && r.names.inGit(from.path) && r.couldBring(from.kind(), to.path) {
		return unix.Renameat2(to.dir, to.name, from.dir, from.name, flags)
	}
	return nil
}

// secondName gives an open file another name.
func (r *pathCall) secondName(fd int, to resolved) error {
	var status unix.Stat_t
	if err := unix.Fstat(fd, &status); err != nil {
		return err
	}
	if status.Mode&unix.S_IFMT == unix.S_IFLNK && r.names.inGit(to.path) {
		return unix.EPERM
	}
	return unix.Linkat(unix.AT_FDCWD, own(fd), to.dir, to.name, unix.AT_SYMLINK_FOLLOW)
}
