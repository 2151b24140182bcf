//go:build !linux

package undo

import (
	"errors"
	"os"
)

// clone fails: package undo does not know how files are cloned here.
func clone(_, _ *os.File) error { return errors.ErrUnsupported }
