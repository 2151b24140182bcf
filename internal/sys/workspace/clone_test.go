package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// A clone is the same file as long as neither is written. Where there are none, nothing is left.
func TestClone(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Clone(from, to, 0o440); err != nil {
		t.Logf("this file system has no clones: %v", err)
		if _, err := os.Lstat(to); !os.IsNotExist(err) {
			t.Errorf("something is left: %v", err)
		}
		return
	}
	if err := os.WriteFile(from, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(to)
	info, errStat := os.Stat(to)
	if err != nil || errStat != nil || string(data) != "one" || info.Mode().Perm() != 0o440 {
		t.Errorf("%q %v %v %v", data, info, err, errStat)
	}
	if err := Clone(from, to, 0o440); !os.IsExist(err) {
		t.Errorf("it replaced a file: %v", err)
	}
	if data, err := os.ReadFile(to); err != nil || string(data) != "one" {
		t.Errorf("%q %v", data, err)
	}
}

// A copy has the content and the permissions that were asked for, and replaces nothing.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Copy(from, to, 0o440); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(to)
	info, errStat := os.Stat(to)
	if err != nil || errStat != nil || string(data) != "one" || info.Mode().Perm()&0o222 != 0 {
		t.Errorf("%q %v %v %v", data, info, err, errStat)
	}
	if err := Copy(from, to, 0o440); !os.IsExist(err) {
		t.Errorf("it replaced a file: %v", err)
	}
	if err := Copy(dir, filepath.Join(dir, "other"), 0o600); err == nil {
		t.Error("a directory was copied")
	}
	if _, err := os.Lstat(filepath.Join(dir, "other")); !os.IsNotExist(err) {
		t.Errorf("something is left: %v", err)
	}
}
