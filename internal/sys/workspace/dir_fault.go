package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// printable cleans a name for a message, because somebody else chose it.
func printable(name string) string {
	const most = 300
	if len(name) > most {
		return text.Name(name[:most]) + "…"
	}
	return text.Name(name)
}

// cause returns an error of the system for a message that already names a path: without that path, and with other names
// cleaned.
func cause(err error, path string) error {
	switch e := err.(type) { //nolint:errorlint // only the outermost one is rewritten
	case *fs.PathError:
		const separator = string(filepath.Separator)
		if strings.HasSuffix(separator+path, separator+e.Path) || strings.HasSuffix(e.Path, separator+path) {
			return e.Err
		}
		return &fs.PathError{Op: e.Op, Path: printable(e.Path), Err: e.Err}
	case *os.LinkError:
		return &os.LinkError{Op: e.Op, Old: printable(e.Old), New: printable(e.New), Err: e.Err}
	}
	return err
}

func reasoned(f *fault.Fault, path, reason string) *fault.Fault {
	return f.With("path", path).With("reason", reason)
}

func (d *Dir) outside(written string) error {
	return reasoned(fault.New(fault.Unsafe, "%s lies outside the workspace %s", printable(written), d.path), written,
		"outside").
		Hint("Give a path inside %s.", d.path)
}

// Outside reports whether a name led out of a Dir.
func Outside(err error) bool { return err != nil && fault.Of(err).Detail["reason"] == "outside" }

func notDirectory(name string, info fs.FileInfo) error {
	return reasoned(fault.New(fault.Unsafe, "%s is a %s, not a directory", printable(name), typeOf(info.Mode())), name,
		"not-directory")
}

func notRegularFile(name string, info fs.FileInfo) error {
	f := fault.Of(notRegular(name, info))
	return f.With("reason", "not-regular")
}

// toFault converts an error of the system about a name to a fault. verb completes "cannot …".
func (d *Dir) toFault(verb, name string, err error) error {
	var known *fault.Fault
	if errors.As(err, &known) {
		return err
	}
	if d.out != nil && errors.Is(err, d.out) {
		return d.outside(name)
	}
	code, reason := fault.Internal, "failed"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code, reason = fault.FileMissing, "missing"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EBUSY):
		// EBUSY: something is mounted there, such as a single file in a container, which can only be written in place.
		code, reason = fault.PermissionDenied, "blocked"
	case errors.Is(err, syscall.ELOOP):
		code, reason = fault.SymlinkLoop, "invalid"
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		code, reason = fault.ArgError, "invalid"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		code, reason = fault.Unsafe, "not-directory"
	case errors.Is(err, syscall.EISDIR):
		code, reason = fault.Unsafe, "not-regular"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code, reason = fault.DiskFull, "full"
	}
	return reasoned(fault.New(code, "cannot %s %s", verb, printable(name)).Because(cause(err, name)), name, reason)
}
