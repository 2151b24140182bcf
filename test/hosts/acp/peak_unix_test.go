//go:build unix

package acp

import (
	"runtime"
	"syscall"
)

// peak is the most memory that a process had, in bytes.
func peak(usage any) int64 {
	u, ok := usage.(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss << 10
}
