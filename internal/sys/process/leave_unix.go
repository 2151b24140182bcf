//go:build unix

package process

import "syscall"

// ownSession makes a process start in its own session, without a terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
