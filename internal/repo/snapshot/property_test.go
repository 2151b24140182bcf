package snapshot_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"omniagent/internal/repo/snapshot"
)

// state is what a plain walk sees: for each path the type, the mode and the bytes.
type state map[string]string

func look(t testing.TB, root string) state {
	s := state{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		text := ""
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			if text, err = os.Readlink(path); err != nil {
				return err
			}
		}
		s[filepath.ToSlash(rel)] = fmt.Sprintf("%v\x00%s", info.Mode(), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// changed compares two states as Diff should.
func changed(before, after state) map[string]snapshot.Status {
	all := map[string]snapshot.Status{}
	exists := func(s state, path string) bool {
		is, ok := s[path]
		if !ok || is[0] != 'd' {
			return ok
		}
		for other := range s {
			if strings.HasPrefix(other, path+"/") {
				return false // told by its content
			}
		}
		return true
	}
	for _, s := range []state{before, after} {
		for path := range s {
			a, b := before[path], after[path]
			if a != "" && b != "" && kind(a) == kind(b) {
				modeA, textA, _ := strings.Cut(a, "\x00")
				modeB, textB, _ := strings.Cut(b, "\x00")
				if textA != textB {
					all[path] = snapshot.Modified
				} else if modeA != modeB {
					all[path] = snapshot.Mode
				}
				continue
			}
			switch was, is := exists(before, path), exists(after, path); {
			case was && is:
				all[path] = snapshot.Type
			case was:
				all[path] = snapshot.Deleted
			case is:
				all[path] = snapshot.Added
			}
		}
	}
	return all
}

func kind(s string) string {
	return strings.Trim(s[:strings.IndexByte(s, 0)], "rwx-")
}

// TestDiffIsExact makes random trees and random changes. Diff tells exactly these, and git apply makes the tree after
// of a copy of the tree before.
func TestDiffIsExact(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the modes and links of this test are those of Unix")
	}
	git := hasGit(t)
	checks := 0
	rapid.Check(t, func(r *rapid.T) {
		checks++
		base := filepath.Join(t.TempDir(), fmt.Sprint(checks))
		root, copied := filepath.Join(base, "root"), filepath.Join(base, "copy")
		mkdir(t, root)
		repository := git && rapid.Bool().Draw(r, "repository")
		if repository {
			run(t, root, "git", "init", "-q")
		}
		mutate(r, t, root, rapid.IntRange(0, 25).Draw(r, "files"))
		if repository {
			run(t, root, "git", "add", "-A")
			run(t, root, "git", "commit", "-qm", "all", "--allow-empty")
			mutate(r, t, root, rapid.IntRange(0, 3).Draw(r, "dirty"))
		}
		store := openStore(t, filepath.Join(base, "store"))
		was := look(t, root)
		run(t, base, "cp", "-a", "root", "copy")
		if rapid.IntRange(0, 3).Draw(r, "settled") == 0 {
			snapshot.Settled(t, root, snapshot.Options{})
		}
		before := take(t, root, snapshot.Options{Store: store})
		mutate(r, t, root, rapid.IntRange(0, 12).Draw(r, "changes"))
		is := look(t, root)
		after := take(t, root, snapshot.Options{Store: store, Since: before})
		want := changed(was, is)
		got := snapshot.Diff(before, after)
		if diff := cmp.Diff(want, statuses(got)); diff != "" {
			r.Fatalf("Diff differs (-want +got):\n%s", diff)
		}
		a, b := snapshot.Trim(before, after)
		got = snapshot.Diff(saved(t, a), saved(t, b))
		if diff := cmp.Diff(want, statuses(got)); diff != "" {
			r.Fatalf("Diff of saved and trimmed indexes differs (-want +got):\n%s", diff)
		}
		if !git {
			return
		}
		run(t, copied, "find", ".", "-mindepth", "1", "-type", "d", "-empty", "-delete") // git has none
		var patch bytes.Buffer
		if err := got.Patch(t.Context(), store, &patch); err != nil {
			r.Fatal(err)
		}
		apply(r, copied, patch.String())
		if diff := cmp.Diff(asGit(is), asGit(look(t, copied))); diff != "" {
			r.Fatalf("the applied diff differs (-want +got):\n%s\n%s", diff, &patch)
		}
		apply(r, copied, patch.String(), "--reverse")
		if diff := cmp.Diff(asGit(was), asGit(look(t, copied))); diff != "" {
			r.Fatalf("the diff taken back differs (-want +got):\n%s\n%s", diff, &patch)
		}
	})
}

// apply gives a patch to git apply, which does not know that the directory may be a repository.
func apply(r *rapid.T, dir, patch string, args ...string) {
	if patch == "" {
		return
	}
	c := exec.Command("git", append(append([]string{"apply", "--whitespace=nowarn"}, args...), "-")...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_DIR=/nonexistent")
	c.Stdin = strings.NewReader(patch)
	if out, err := c.CombinedOutput(); err != nil {
		r.Fatalf("git apply: %v\n%s\n%s", err, out, patch)
	}
}

// asGit leaves of a state what git records.
func asGit(s state) state {
	few := state{}
	for path, is := range s {
		mode, text, _ := strings.Cut(is, "\x00")
		switch mode[0] {
		case 'd':
			continue
		case '-':
			mode = mode[:1] + mode[3:4]
		}
		few[path] = mode + "\x00" + text
	}
	return few
}

func statuses(c *snapshot.Changes) map[string]snapshot.Status {
	all := map[string]snapshot.Status{}
	for _, f := range c.Files {
		if f.Status != snapshot.Git {
			all[f.Path] = f.Status
		}
	}
	return all
}

// mutate makes n random changes.
func mutate(r *rapid.T, t testing.TB, root string, n int) {
	names := []string{"a", "b", "c d", "e\n\"f", "ö", "g\xff\t", "h\\i"}
	for range n {
		path := root
		for range rapid.IntRange(1, 3).Draw(r, "depth") {
			path = filepath.Join(path, rapid.SampledFrom(names).Draw(r, "name"))
		}
		there := existing(root)
		if len(there) > 0 && rapid.Bool().Draw(r, "existing") {
			path = rapid.SampledFrom(there).Draw(r, "path")
		}
		switch rapid.IntRange(0, 9).Draw(r, "change") {
		case 0:
			_ = os.RemoveAll(path)
		case 1:
			_ = os.RemoveAll(path)
			_ = os.MkdirAll(path, 0o755)
		case 2:
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			_ = os.RemoveAll(path)
			// None leads to itself: git apply does not take the place of such a link.
			_ = os.Symlink(rapid.SampledFrom([]string{"../a", "../b", "/nowhere"}).Draw(r, "target"), path)
		case 3:
			if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
				_ = os.Chmod(path, info.Mode().Perm()^0o111&^0o100|0o100*(fs.FileMode(n)&1)|0o600)
				if info.IsDir() {
					_ = os.Chmod(path, 0o700|info.Mode().Perm())
				}
			}
		case 4: // the same size
			if data, err := os.ReadFile(path); err == nil && len(data) > 0 && data[0] != 'Z' {
				data[0] = 'Z'
				_ = os.WriteFile(path, data, 0o644)
			}
		case 5: // only touched
			if data, err := os.ReadFile(path); err == nil {
				_ = os.WriteFile(path, data, 0o644)
			}
		case 6:
			_ = os.Rename(path, filepath.Join(root, rapid.SampledFrom(names).Draw(r, "to")))
		default:
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
				_ = os.RemoveAll(path)
			}
			_ = os.WriteFile(path, []byte(someText(r)), 0o644)
		}
	}
}

func existing(root string) []string {
	var all []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if path != root {
			all = append(all, path)
		}
		return nil
	})
	sort.Strings(all)
	return all
}

func someText(r *rapid.T) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"one", "two", "}", "", "\r", "\xfe"}), 0, 30).Draw(r, "lines")
	text := strings.Join(lines, "\n")
	if rapid.Bool().Draw(r, "newline") {
		text += "\n"
	}
	if rapid.IntRange(0, 3).Draw(r, "binary") == 0 {
		text += string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(r, "bytes")) + "\x00"
	}
	return text
}
