package workspace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

// TestPathSafety holds names against a table of what is inside and what is not.
func TestPathSafety(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the table is of paths with slashes")
	}
	var table struct {
		Root  string
		Cases []struct {
			Path, Result string
			Error        *struct{ Code string }
		}
	}
	data, err := os.ReadFile("testdata/path_safety.json")
	check(t, err)
	check(t, json.Unmarshal(data, &table))
	top, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	root := filepath.Join(top, "ws")
	for _, dir := range []string{"ws", "ws2", "wsx"} {
		check(t, os.Mkdir(filepath.Join(top, dir), 0o755))
		check(t, os.WriteFile(filepath.Join(top, dir, "x"), nil, 0o644))
	}
	d := opened(t, root)
	here := func(path string) string {
		if rest, ok := strings.CutPrefix(path, table.Root); ok { // /srv/wsx becomes the twin
			return root + rest
		}
		return path
	}
	reasons := map[string]string{
		"OutsideWorkspace": "outside", "InvalidPath": "invalid", "NotFound": "missing",
		"CommandBlocked": "blocked",
	}
	if len(table.Cases) < 10 {
		t.Fatalf("only %d cases", len(table.Cases))
	}
	for _, c := range table.Cases {
		got, err := d.Name(here(c.Path))
		if c.Error != nil {
			wantReason(t, c.Path, err, reasons[c.Error.Code])
			continue
		}
		if err != nil || filepath.Join(root, got) != here(c.Result) {
			t.Errorf("%q: got %q, %v, want %q", c.Path, got, err, here(c.Result))
		}
	}
}

// TestEveryRefusalHasAReason: what a caller tells apart without reading messages.
func TestEveryRefusalHasAReason(t *testing.T) {
	y := newYard(t)
	y.link(t, "../out/secret", "escape")
	y.link(t, "loop", "loop")
	check(t, os.Chmod(filepath.Join(y.in, "sub", "deep", "file"), 0o444))
	read := func(name string) error { _, err := y.ReadFile(name, 100); return err }
	write := func(name string) error { return y.Replace(name, nil, ReplaceOptions{}) }
	for _, c := range []struct {
		what, reason string
		code         fault.Code
		err          error
	}{
		{"escape", "outside", fault.Unsafe, read("escape")},
		{"escape written", "outside", fault.Unsafe, write("escape")},
		{"by two dots", "outside", fault.Unsafe, read("sub/../../out/secret")},
		{
			"out of a further directory", "outside", fault.Unsafe,
			read(filepath.ToSlash(filepath.Join(y.top, "kept", "..", "out", "secret"))),
		},
		{"loop", "invalid", fault.SymlinkLoop, read("loop")},
		{"none", "missing", fault.FileMissing, read("none")},
		{"read-only", "blocked", fault.PermissionDenied, write("sub/deep/file")},
		{"directory", "not-regular", fault.Unsafe, write("sub")},
		{"beneath a file", "not-directory", fault.Unsafe, write("file/x/y")},
	} {
		if runtime.GOOS == "windows" && (c.reason == "blocked" || c.reason == "not-directory") {
			continue
		}
		wantCode(t, c.err, c.code)
		wantReason(t, c.what, c.err, c.reason)
	}
}
