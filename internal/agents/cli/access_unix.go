//go:build unix

package cli

import (
	"os"
	"syscall"
)

// Inode returns the number of a file in its file system, or 0.
func Inode(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
