//go:build !linux && !darwin

package fork

import (
	"errors"
	"io/fs"
)

// clone fails: package fork does not know how files are cloned here.
func clone(_, _ string, _ fs.FileMode) error { return errors.ErrUnsupported }
