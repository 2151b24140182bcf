package tool

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestADeviceIsNeitherReadNorWritten(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may make a device")
	}
	d := newDesk(t)
	if err := syscall.Mknod(filepath.Join(d.in, "zero"), syscall.S_IFCHR|0o666, 1<<8|5); err != nil {
		t.Skipf("no device can be made here: %v", err)
	}
	d.fails(Read, object{"file_path": "zero"}, "a device where a file belongs")
	d.fails(Write, object{"file_path": "zero", "content": "x"}, "a device where a file belongs")
}

func TestAFullDiskLosesNothing(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may mount")
	}
	d := newDesk(t)
	full := filepath.Join(d.in, "full")
	check(t, os.Mkdir(full, 0o755))
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(full, syscall.MNT_DETACH)) })
	old := strings.Repeat("x", 30_000)
	d.says(Write, object{"file_path": "full/a", "content": old})
	d.fails(Write, object{"file_path": "full/a", "content": strings.Repeat("y", 60_000)}, "no space left on device")
	d.fails(Edit, object{"file_path": "full/a", "old_string": "x", "new_string": "yy", "replace_all": true},
		"no space left on device")
	d.holds("full/a", old)
	d.says(Edit, object{"file_path": "full/a", "old_string": "x", "new_string": "", "replace_all": true})
}
