package config

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestCopyOfWhatIsTrusted: the copy is of exactly what was trusted, readable by the user alone, and goes with the
// trust.
func TestCopyOfWhatIsTrusted(t *testing.T) {
	dir := t.TempDir()
	trust := OpenTrust(filepath.Join(dir, "state", "trust.json"))
	file := filepath.Join(dir, "work", "settings.json")
	copies := func() []os.DirEntry {
		entries, _ := os.ReadDir(filepath.Join(dir, "state", "trusted"))
		return entries
	}
	has := func(want string) {
		t.Helper()
		if got, ok := OpenTrust(filepath.Join(dir, "state", "trust.json")).Copy(file); string(got) != want ||
			ok != (want != "") {
			t.Errorf("%q, %v, want %q", got, ok, want)
		}
	}
	has("")
	for _, content := range []string{"one", "two"} {
		if err := trust.Add(file, []byte(content)); err != nil {
			t.Fatal(err)
		}
		has(content)
		if n := len(copies()); n != 1 {
			t.Errorf("%d copies", n)
		}
	}
	kept := filepath.Join(dir, "state", "trusted", copies()[0].Name())
	if info, err := os.Stat(kept); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(kept, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	has("")
	if err := trust.Forget(file); err != nil || len(copies()) != 0 {
		t.Errorf("%v, %d copies", err, len(copies()))
	}
}
