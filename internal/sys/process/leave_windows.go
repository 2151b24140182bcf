package process

import "syscall"

const detachedProcess = 0x8 // CreateProcess gives it no console

// ownSession starts a process without a console.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{CreationFlags: detachedProcess} }
