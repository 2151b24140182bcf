package process

import "syscall"

const detachedProcess = 0x8 // CreateProcess gives it no console

// ownSession makes a process start without a console.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{CreationFlags: detachedProcess} }
