package workspace

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// actualPath returns the path of an open file, as the kernel knows it.
func actualPath(f *os.File) (path string, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	if failed := conn.Control(func(fd uintptr) { path, err = pathOf(int(fd)) }); failed != nil {
		err = failed
	}
	return path, err
}

func pathOf(fd int) (string, error) {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err == nil && strings.HasSuffix(path, " (deleted)") {
		err = syscall.ENOENT
	}
	return path, err
}
