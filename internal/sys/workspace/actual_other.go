//go:build !linux

package workspace

import (
	"errors"
	"os"
)

// actualPath is not supported on this system.
func actualPath(*os.File) (string, error) { return "", errors.ErrUnsupported }
