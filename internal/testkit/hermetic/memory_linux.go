package hermetic

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// inMemory is the variable with which a test binary starts itself again.
const inMemory = "OMNIAGENT_TEST_IN_MEMORY"

// InMemory starts the test binary again with a /tmp of its own in memory, where the superuser runs it. A test that
// flushes what it writes, or makes and removes many small files, mostly waits for the disk otherwise, and the walk
// through all commands takes three times as long. No test can take the power away, so none shows less. A side effect:
// what lies in /tmp cannot change a result. Call it before the tests run, after the binary has played other programs.
//
// It does nothing where that is not allowed, and where a variable leads to /tmp: the caches of go may lie there.
func InMemory() {
	if os.Getenv(inMemory) != "" {
		_ = os.Unsetenv(inMemory)
		return
	}
	self, err := os.Executable()
	if err != nil || os.Geteuid() != 0 || leadsToTmp() {
		return
	}
	runtime.LockOSThread() // only this thread has another view; it becomes the process, or ends with its goroutine
	if unix.Unshare(unix.CLONE_NEWNS) != nil {
		runtime.UnlockOSThread()
		return
	}
	_ = newTmp(filepath.Dir(self)) // a container may allow a namespace and no mount: then /tmp is as it was
	panic(unix.Exec(self, os.Args, append(os.Environ(), inMemory+"=1")))
}

// leadsToTmp reports whether a variable or the working directory names a place in /tmp.
func leadsToTmp() bool {
	dir, err := os.Getwd()
	if err != nil || strings.HasPrefix(dir+"/", "/tmp/") {
		return true
	}
	for _, v := range os.Environ() {
		if strings.Contains(v+"/", "=/tmp/") || strings.Contains(v+"/", ":/tmp/") {
			return true
		}
	}
	return false
}

// newTmp mounts an empty /tmp, or changes nothing. The folder of the test binary, which go test made there, stays where
// it was.
func newTmp(keep string) error {
	old, err := os.Open(keep)
	if err != nil {
		return err
	}
	defer func() { _ = old.Close() }()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return err
	}
	if !strings.HasPrefix(keep, "/tmp/") {
		return nil
	}
	err = os.MkdirAll(keep, 0o755)
	if err == nil {
		err = unix.Mount(fmt.Sprintf("/proc/thread-self/fd/%d", old.Fd()), keep, "", unix.MS_BIND, "")
	}
	if err != nil {
		_ = unix.Unmount("/tmp", unix.MNT_DETACH)
	}
	return err
}
