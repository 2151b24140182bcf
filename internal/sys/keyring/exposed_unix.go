//go:build unix

package keyring

import (
	"os"
	"syscall"
)

// exposed returns why a file is not the user's alone, or "". A missing one is.
func exposed(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "others can read or change that file"
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return "that file belongs to somebody else"
	}
	return ""
}
