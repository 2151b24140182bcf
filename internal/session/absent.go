package session

import (
	"errors"
	"io/fs"
	"syscall"
)

// absent says that a file is not there: there is none of that name, or what should be a directory above it is none.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }
