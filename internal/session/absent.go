package session

import (
	"errors"
	"io/fs"
	"syscall"
)

// absent reports whether err means that a file does not exist: the name is missing, or a parent is not a directory.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }
