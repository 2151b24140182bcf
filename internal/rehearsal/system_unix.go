//go:build unix

package rehearsal

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func inode(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

// kernel returns its release.
func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// systemTemp returns where sandboxes let everybody write.
func systemTemp() string { return "/tmp" }
