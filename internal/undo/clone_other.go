//go:build !linux && !darwin

package undo

import (
	"errors"
	"io/fs"
)

// clone fails: package undo does not know how files are cloned here.
func clone(_, _ string, _ fs.FileInfo) error { return errors.ErrUnsupported }
