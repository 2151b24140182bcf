//go:build !linux

package workspace

import (
	"errors"
	"os"
)

// actualPath is not available here.
func actualPath(*os.File) (string, error) { return "", errors.ErrUnsupported }
