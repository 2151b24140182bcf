package audit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
)

// TestForeignFilesAreLeftAlone: a path that was set by mistake must not cost anybody a file.
func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-100 * 24 * time.Hour)
	files := map[string]string{
		"notes.txt": "my notes\n", "notes.1.txt": "older notes\n",
		"notes.7.txt": "{\"not\":\"ours\"}\n",
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	log := Open(Options{Path: filepath.Join(dir, "notes.txt"), MaxBytes: 1, Keep: 1})
	for _, err := range []error{log.Check(), log.Write(Entry{Command: "x"})} {
		if !errors.Is(err, fault.Unsafe) {
			t.Errorf("got %v", err)
		}
	}
	// Beside a log of ours, somebody else's file is neither moved nor removed.
	ours := Open(Options{Path: filepath.Join(dir, "own.txt"), MaxBytes: 1, Keep: 1})
	if err := os.WriteFile(filepath.Join(dir, "own.1.txt"), []byte("not ours\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files["own.1.txt"] = "not ours\n"
	for range 3 {
		if err := ours.Write(Entry{Command: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
