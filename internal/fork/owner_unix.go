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

// onDisk is how many bytes a file takes, each of its names its part.
func onDisk(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512 / max(1, int64(s.Nlink)) //nolint:unconvert // it is smaller on some systems
	}
	return info.Size()
}
