//go:build unix

package process

import (
	"os"
	"syscall"
)

// ancestors returns this process and those above it.
func ancestors() map[int]bool {
	all := map[int]bool{}
	for pid := os.Getpid(); pid > 1 && !all[pid]; pid = parentOf(pid) {
		all[pid] = true
	}
	return all
}

// killGroupOf kills the group that a living process leads.
func killGroupOf(pid int) {
	if group, err := syscall.Getpgid(pid); err == nil && group == pid {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
