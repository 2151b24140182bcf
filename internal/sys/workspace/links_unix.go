//go:build unix

package workspace

import (
	"io/fs"
	"syscall"
)

// Links returns the number of a file's names.
func Links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // it is smaller on some systems
	}
	return 1
}
