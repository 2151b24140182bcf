package claim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/core/event"
)

// TestFingerprint changes with the content of each path that a call names, and with nothing else.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("f", "one")
	put("d/in", "one")
	of := func(input, path string) string {
		return Fingerprint(&event.Call{Kind: event.Write, Path: path, Input: json.RawMessage(input)}, dir)
	}
	const patch = `{"patch":"*** Begin Patch\n*** Add File: new\n+x\n*** Update File: f\n*** End Patch"}`
	all := map[string]func() string{
		"one":      func() string { return of(`{}`, "f") },
		"several":  func() string { return of(patch, "") },
		"none yet": func() string { return of(`{}`, "new") },
		"a tree":   func() string { return of(`{}`, "d") },
	}
	was := map[string]string{}
	for name, look := range all {
		was[name] = look()
	}
	same := func(why string, names ...string) {
		t.Helper()
		for _, name := range names {
			if all[name]() != was[name] {
				t.Errorf("%s: %s has changed", why, name)
			}
		}
	}
	differ := func(why string, names ...string) {
		t.Helper()
		for _, name := range names {
			if now := all[name](); now == was[name] || now == "" {
				t.Errorf("%s: %s has not changed", why, name)
			}
			was[name] = all[name]()
		}
	}
	if err := os.Chtimes(filepath.Join(dir, "f"), time.Now(), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	same("times", "one", "several", "none yet", "a tree")
	put("f", "two")
	differ("f", "one", "several")
	put("new", "x")
	differ("new", "several", "none yet")
	put("d/in", "three")
	differ("d", "a tree")
	same("d", "one", "several", "none yet")
	if got := Fingerprint(&event.Call{Kind: event.Shell, Command: "rm f"}, dir); got != "" {
		t.Errorf("a command: %q", got)
	}
}
