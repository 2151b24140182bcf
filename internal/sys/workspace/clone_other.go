//go:build !linux && !darwin

package workspace

import (
	"errors"
	"io/fs"
)

// Clone is not supported on this system.
func Clone(_, _ string, _ fs.FileMode) error { return errors.ErrUnsupported }
