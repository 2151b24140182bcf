package hermetic

import (
	"os"
	"syscall"
)

// WriteProgram is os.WriteFile for a program that a test starts. Nothing is forked meanwhile: a child would have the
// file open for writing until its exec, and the kernel runs no such file ("text file busy").
func WriteProgram(path string, text []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, text, mode)
}
