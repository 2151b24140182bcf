//go:build unix

package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// estate is a root with credentials and files that decide what may run, and links to both.
func estate(t *testing.T) *Dir {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		".ssh/id": "secret", ".git/hooks/pre-commit": "old", "a.txt": "a",
		"sub/b.txt": "b",
	} {
		path := filepath.Join(root, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for name, to := range map[string]string{
		"keys": ".ssh", "hooks": ".git/hooks",
		"id": filepath.Join(root, ".ssh", "id"), "git": ".git",
	} {
		check(t, os.Symlink(to, filepath.Join(root, name)))
	}
	d, err := OpenDir(root)
	check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	d.Withhold([]string{filepath.Join(root, ".ssh"), filepath.Join(root, "not", "there")},
		[]string{".git/hooks", ".mcp.json"})
	return d
}

func TestHiddenFilesAreNeitherReadNorWritten(t *testing.T) {
	d := estate(t)
	for _, name := range []string{".ssh/id", "keys/id", "id", "sub/../keys/id", ".ssh", "keys"} {
		if _, _, err := d.Load(name, 1<<20); err == nil {
			t.Errorf("%s was read", name)
		}
		err := d.Replace(name+"/new", []byte("x"), ReplaceOptions{})
		if err == nil {
			t.Errorf("%s/new was written", name)
		}
	}
	for _, name := range []string{".ssh", "keys"} {
		if _, _, err := d.ReadDir(name, 0); err == nil {
			t.Errorf("%s was listed", name)
		} else {
			wantReason(t, name, err, "blocked")
		}
		if _, err := d.Survey(context.Background(), name, nil,
			Survey{Enter: func(*Folder, []Entry) { t.Errorf("%s was entered", name) }}); err == nil {
			t.Errorf("%s was searched", name)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(d.Path(), ".ssh")); len(entries) != 1 {
		t.Errorf("there is %v", entries)
	}
}

func TestASurveyPassesOverHiddenFiles(t *testing.T) {
	d := estate(t)
	var mu sync.Mutex
	var seen []string
	_, err := d.Survey(context.Background(), ".", nil, Survey{
		Enter: func(f *Folder, entries []Entry) {
			for _, e := range entries {
				switch e.Type {
				case DirectoryEntry:
					f.Descend(e.Name, nil)
				case FileEntry:
					f.Take(e.Name)
				}
			}
		},
		File: func(_ int, f *Folder, name string) { mu.Lock(); defer mu.Unlock(); seen = append(seen, f.Join(name)) },
	})
	check(t, err)
	slices.Sort(seen)
	if got := strings.Join(seen, " "); got != ".git/hooks/pre-commit a.txt sub/b.txt" {
		t.Errorf("it saw %s", got)
	}
}

func TestProtectedFilesAreWrittenUnderTheirOwnNameOnly(t *testing.T) {
	d := estate(t)
	for _, name := range []string{"hooks/pre-commit", "git/hooks/pre-commit", "hooks/new", "git/hooks/new/deep"} {
		err := d.Replace(name, []byte("evil"), ReplaceOptions{})
		if err == nil {
			t.Errorf("%s was written", name)
			continue
		}
		wantReason(t, name, err, "blocked")
	}
	if data, _ := os.ReadFile(filepath.Join(d.Path(), ".git/hooks/pre-commit")); string(data) != "old" {
		t.Errorf("the hook is %q", data)
	}
	for _, name := range []string{".git/hooks/pre-commit", ".mcp.json", "git/description", "a.txt"} {
		check(t, d.Replace(name, []byte("new"), ReplaceOptions{}))
	}
}

// TestALinkThatMovesOpensNoHiddenFile: between the look at a name and its use the link is somebody else's.
func TestALinkThatMovesOpensNoHiddenFile(t *testing.T) {
	hermetic.Long(t)
	d := estate(t)
	link := filepath.Join(d.Path(), "flip")
	over := make(chan struct{})
	var flipping sync.WaitGroup
	flipping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			_ = os.Symlink([]string{"sub", ".ssh", ".git/hooks"}[i%3], link+"~")
			_ = os.Rename(link+"~", link)
		}
	})
	for n := range 3000 {
		if data, _, err := d.Load("flip/id", 1<<20); err == nil && string(data) == "secret" {
			t.Fatal("a hidden file was read")
		}
		if n%10 == 0 { // a write waits for the disk, and a hundred reads take less time
			_ = d.Replace("flip/pre-commit", []byte("evil"), ReplaceOptions{})
		}
	}
	close(over)
	flipping.Wait()
	if data, _ := os.ReadFile(filepath.Join(d.Path(), ".git/hooks/pre-commit")); string(data) != "old" {
		t.Errorf("the hook is %q", data)
	}
	if _, err := os.Stat(filepath.Join(d.Path(), ".ssh/pre-commit")); err == nil {
		t.Error("a hidden directory was written to")
	}
}
