//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(group int, s syscall.Signal) { _ = syscall.Kill(-group, s) }

// inGroup reports whether a group has a member that we may signal.
func inGroup(group int) bool { return syscall.Kill(-group, 0) == nil }
