package process

import (
	"io"
	"syscall"
)

// CheckPIDNamespace returns nil: the job object of a child ends with us.
func CheckPIDNamespace() error { return nil }

const detachedProcess = 0x8 // CreateProcess gives it no console

// ownSession makes a process start without a console.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{CreationFlags: detachedProcess} }

// killGroupOf does nothing: the job of a child ends with its owner, so there are no orphans.
func killGroupOf(int) {}

// ancestors returns nothing: a process does not keep its parent's number for itself.
func ancestors() map[int]bool { return nil }

// ReaderGone never closes its channel: on Windows only a write notices that the reader is gone.
func ReaderGone(io.Writer) <-chan struct{} { return make(chan struct{}) }

// IsReaderGone is always false there.
func IsReaderGone(io.Writer) bool { return false }

// Standby is empty here: the job object is the guard, and is created with the child.
type Standby struct{}

// Prepare is for other systems.
func Prepare(bool) *Standby { return &Standby{} }

// Dismiss is for other systems.
func (s *Standby) Dismiss() {}
