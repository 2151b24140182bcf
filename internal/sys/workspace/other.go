//go:build !linux

package workspace

import (
	"errors"
	"os"
)

// actualPath is not supported on this system.
func actualPath(*os.File) (string, error) { return "", errors.ErrUnsupported }

// startOf returns empty strings, because the time is unknown here.
func startOf(int) (started, boot string) { return "", "" }
