package fork

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// isWhiteout reports whether a file of a layer marks a removed path.
func isWhiteout(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && s.Rdev == 0
}

// isOpaque reports whether a directory of a layer hides the one below it.
func isOpaque(path string) bool {
	value := make([]byte, 4)
	n, err := unix.Lgetxattr(path, "user.overlay.opaque", value)
	return err == nil && n > 0 && value[0] == 'y'
}
