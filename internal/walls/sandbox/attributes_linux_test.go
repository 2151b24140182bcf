//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestLongAttribute: what the kernel would not take is not read, however much a caller says that it is.
func TestLongAttribute(t *testing.T) {
	name := []byte("user.x\x00")
	r := &request{supervisor: &supervisor{listener: -1}, pid: os.Getpid()}
	for size, want := range map[uint64]error{65536: unix.EFAULT, 65537: unix.E2BIG, 1 << 63: unix.E2BIG} {
		// There is no memory at the address of the value.
		err := extended(uint64(uintptr(unsafe.Pointer(&name[0]))), 0, size, 0)(r, -1)
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	runtime.KeepAlive(name)
}
