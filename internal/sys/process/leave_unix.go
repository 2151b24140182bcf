//go:build unix

package process

import "syscall"

// ownSession starts a process without a terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
