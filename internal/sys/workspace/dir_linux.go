package workspace

import (
	"io/fs"
	"syscall"
)

// identity returns the inode's number and the time of its last change, in nanoseconds.
func identity(info fs.FileInfo) (inode uint64, changed int64) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return s.Ino, int64(s.Ctim.Sec)*1e9 + int64(s.Ctim.Nsec)
}
