package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"omniagent/internal/kit/fault"
)

func TestADeviceIsNoFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may make a device")
	}
	y := newYard(t)
	if err := syscall.Mknod(filepath.Join(y.in, "zero"), syscall.S_IFCHR|0o666, 1<<8|5); err != nil {
		t.Skipf("no device can be made here: %v", err)
	}
	_, _, err := y.Open("zero")
	wantReason(t, "device", err, "not-regular")
	wantReason(t, "device", y.Replace("zero", nil, ReplaceOptions{}), "not-regular")
}

// small mounts a file system of 64 KiB at the directory full of the workspace.
func small(t *testing.T, y yard) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may mount")
	}
	full := filepath.Join(y.in, "full")
	check(t, os.Mkdir(full, 0o755))
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(full, syscall.MNT_DETACH)) })
}

func TestAFullDisk(t *testing.T) {
	y := newYard(t)
	small(t, y)
	old := bytes.Repeat([]byte("x"), 30_000)
	check(t, y.Replace("full/file", old, ReplaceOptions{}))
	err := y.Replace("full/file", bytes.Repeat([]byte("y"), 60_000), ReplaceOptions{})
	wantCode(t, err, fault.DiskFull)
	wantContent(t, filepath.Join(y.in, "full", "file"), string(old))
	if left := leftovers(t, filepath.Join(y.in, "full")); len(left) > 0 {
		t.Fatalf("left %v", left)
	}
	check(t, y.Replace("full/file", old, ReplaceOptions{}))
}

func TestAFileSystemThatIsReadOnly(t *testing.T) {
	y := newYard(t)
	small(t, y)
	y.put(t, "in/full/file", oldText)
	check(t, syscall.Mount("", filepath.Join(y.in, "full"), "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	for _, name := range []string{"full/file", "full/new", "full/a/new"} {
		wantCode(t, y.Replace(name, nil, ReplaceOptions{}), fault.PermissionDenied)
	}
	wantContent(t, filepath.Join(y.in, "full", "file"), oldText)
}

func TestAFileOfProc(t *testing.T) {
	d, err := OpenDir("/proc/self")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	defer d.Close()
	data, print, err := d.Load("stat", 100_000) // says that it is empty
	check(t, err)
	if len(data) == 0 || print.size != int64(len(data)) {
		t.Fatalf("got %d bytes, fingerprint of %d", len(data), print.size)
	}
}
