package process

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestExecutableExtensions(t *testing.T) {
	assumed := []string{".com", ".exe", ".bat", ".cmd"}
	tests := []struct {
		pathext string
		want    []string
	}{
		{"", assumed},
		{";;", assumed},
		{".COM;.EXE;;CMD; .Ps1", []string{".com", ".exe", ".cmd", ".ps1"}},
	}
	for _, tt := range tests {
		if got := executables(tt.pathext); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.pathext, got, tt.want)
		}
	}
}

func TestFindLooksInAbsoluteDirectoriesOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program has another name there")
	}
	dir, later := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	for name, mode := range map[string]os.FileMode{"tool": 0o700, "plain": 0o600} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, mode))
	}
	check(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	check(t, os.WriteFile(filepath.Join(later, "plain"), nil, 0o700))
	for path, want := range map[string]string{
		dir: filepath.Join(dir, "tool"), "": "", ".": "", "::" + later: "", ".:" + dir: filepath.Join(dir, "tool"),
	} {
		if got := Find("tool", In([]string{"PATH=/none", "PATH=" + path})); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
	both := In([]string{"PATH=" + dir + ":" + later})
	if got := Find("plain", both); got != filepath.Join(later, "plain") {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"", ".", "..", "sub", "./tool", "sub/../tool", "none"} {
		if got := Find(name, both); got != "" {
			t.Errorf("%q stands for %q", name, got)
		}
	}
}
