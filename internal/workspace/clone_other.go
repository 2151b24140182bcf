//go:build !linux && !darwin

package workspace

import (
	"errors"
	"io/fs"
)

// Clone fails: how files share blocks here is not known.
func Clone(_, _ string, _ fs.FileMode) error { return errors.ErrUnsupported }
