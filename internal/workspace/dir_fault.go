package workspace

import (
	"errors"
	"io/fs"
	"syscall"

	"omniagent/internal/fault"
)

func reasoned(f *fault.Fault, path, reason string) *fault.Fault {
	return f.With("path", path).With("reason", reason)
}

func (d *Dir) outside(written string) error {
	return reasoned(fault.New(fault.Unsafe, "%s lies outside the workspace %s", written, d.path), written, "outside").
		Hint("Give a path inside %s.", d.path)
}

func notRegularFile(name string, info fs.FileInfo) error {
	f := fault.Of(notRegular(name, info))
	return f.With("reason", "not-regular")
}

// refused turns an error of the system about a name into a fault; verb completes "cannot …".
func (d *Dir) refused(verb, name string, err error) error {
	var known *fault.Fault
	if errors.As(err, &known) {
		return err
	}
	code, reason := fault.Internal, "failed"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code, reason = fault.FileMissing, "missing"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		code, reason = fault.PermissionDenied, "blocked"
	case errors.Is(err, syscall.ELOOP):
		code, reason = fault.SymlinkLoop, "invalid"
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		code, reason = fault.ArgError, "invalid"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		code, reason = fault.Unsafe, "not-directory"
	case errors.Is(err, syscall.EISDIR):
		code, reason = fault.Unsafe, "not-regular"
	case errors.Is(err, syscall.ENOSPC):
		code, reason = fault.DiskFull, "full"
	}
	return reasoned(fault.New(code, "cannot %s %s", verb, name).Because(err), name, reason)
}
