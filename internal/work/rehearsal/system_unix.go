//go:build unix

package rehearsal

import (
	"golang.org/x/sys/unix"
)

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
