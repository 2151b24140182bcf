//go:build unix

package cli

import (
	"os"
	"syscall"
)

func inode(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
