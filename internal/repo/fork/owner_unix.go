//go:build unix

package fork

import (
	"io/fs"
	"os"
	"syscall"
)

// sameOwner gives a file the owner of another one, if we are the superuser.
func sameOwner(path string, like fs.FileInfo) error {
	s, ok := like.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(s.Uid), int(s.Gid))
}

// onDisk returns the bytes that a file takes, or 0 if it has other names.
func onDisk(info fs.FileInfo) int64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return info.Size()
	case s.Nlink > 1 && !info.IsDir():
		return 0
	}
	return s.Blocks * 512
}
