//go:build unix

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Exposed returns why other users may have written the file, or "".
func Exposed(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Sprintf("others may write it (mode %04o)", info.Mode().Perm())
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() && s.Uid != 0 {
		return fmt.Sprintf("it belongs to the user %d", s.Uid)
	}
	if dir, err := os.Stat(filepath.Dir(path)); err == nil && dir.Mode().Perm()&0o002 != 0 &&
		dir.Mode()&os.ModeSticky == 0 {
		return fmt.Sprintf("everybody may replace it (its directory has the mode %04o)", dir.Mode().Perm())
	}
	return ""
}
