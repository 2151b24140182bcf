//go:build unix

package rehearsal

import (
	"golang.org/x/sys/unix"
)

// kernel returns the release of the kernel, or "".
func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// systemTemp returns the temporary directory in which sandboxes let commands write.
func systemTemp() string { return "/tmp" }
