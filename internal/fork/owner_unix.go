//go:build unix

package fork

import (
	"io/fs"
	"os"
	"syscall"
)

// sameOwner gives a file the owner that another one has, if we are the superuser, who alone can.
func sameOwner(path string, like fs.FileInfo) error {
	s, ok := like.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(s.Uid), int(s.Gid))
}

// onDisk is how many bytes a file takes: none if it has other names.
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
