//go:build unix

package process

import "syscall"

// killGroupOf kills the group that a living process leads.
func killGroupOf(pid int) {
	if group, err := syscall.Getpgid(pid); err == nil && group == pid {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
