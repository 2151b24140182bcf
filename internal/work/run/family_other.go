//go:build !linux

package run

import (
	"io/fs"
	"time"
)

// kin is an agent's process and its descendants.
type kin struct {
	agent []int
	cpu   time.Duration
}

// family is not supported on this system.
func family(int) kin { return kin{} }

// inputOf is not supported on this system.
func inputOf(int) fs.FileInfo { return nil }
