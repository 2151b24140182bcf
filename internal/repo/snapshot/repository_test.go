package snapshot_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/repo/snapshot"
	"omniagent/internal/testkit/hermetic"
)

// repository makes a repository of these files, all committed.
func repository(t testing.TB, root string, files map[string]string) {
	t.Helper()
	needGit(t)
	mkdir(t, root)
	run(t, root, "git", "init", "-q")
	for name, text := range files {
		write(t, root, name, text)
	}
	commit(t, root)
}

func commit(t testing.TB, root string) {
	t.Helper()
	run(t, root, "git", "add", "-A")
	run(t, root, "git", "commit", "-qm", "all")
	// As if the commit was some time ago: git does not trust its index about files that were written with it.
	run(t, root, "find", ".", "-not", "-path", "./.git/*", "-exec", "touch", "-h", "-d", "2020-01-01", "{}", "+")
	run(t, root, "git", "update-index", "-q", "--really-refresh")
}

// difference takes an index, calls change, and returns what Diff tells then, with the lines and the diff.
func difference(t *testing.T, root string, change func()) (*snapshot.Changes, string) {
	t.Helper()
	store := openStore(t, filepath.Join(t.TempDir(), "store"))
	before := take(t, root, snapshot.Options{Store: store})
	change()
	c := snapshot.Diff(before, take(t, root, snapshot.Options{Store: store, Since: before}))
	if err := c.Count(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	var patch bytes.Buffer
	if err := c.Patch(t.Context(), store, &patch); err != nil {
		t.Fatal(err)
	}
	return c, patch.String()
}

func expect(t *testing.T, c *snapshot.Changes, want map[string]snapshot.Status) {
	t.Helper()
	if diff := cmp.Diff(want, statuses(c)); diff != "" {
		t.Errorf("changes differ (-want +got):\n%s", diff)
	}
}

func TestIgnoredIsCounted(t *testing.T) {
	root := t.TempDir()
	repository(t, root, map[string]string{".gitignore": "node_modules/\n*.log\n", "a": "a\n"})
	write(t, root, "kept/node_modules/x", "x\n")
	write(t, root, "tracked.log", "one\n")
	run(t, root, "git", "add", "-f", "tracked.log", "kept")
	c, _ := difference(t, root, func() {
		write(t, root, "node_modules/m/index.js", "m\n")
		write(t, root, "x.log", "x\n")
		write(t, root, "tracked.log", "two\n")
		write(t, root, "kept/node_modules/x", "y\n")
		write(t, root, "b", "b\n")
	})
	expect(t, c, map[string]snapshot.Status{
		"tracked.log": snapshot.Modified, "kept/node_modules/x": snapshot.Modified, "b": snapshot.Added,
	})
	if c.Ignored != 2 {
		t.Errorf("%d ignored changes, want 2", c.Ignored)
	}
}

func TestPartOfARepository(t *testing.T) {
	top := t.TempDir()
	repository(t, top, map[string]string{
		".gitignore": "*.tmp\n/other\n", "part/.gitignore": "!keep.tmp\n", "part/in/a": "one\ntwo\n", "other/b": "b\n",
	})
	store := filepath.Join(t.TempDir(), "store")
	before := take(t, filepath.Join(top, "part"), snapshot.Options{Store: openStore(t, store)})
	if kept := look(t, store); len(kept) > 0 {
		t.Errorf("clean files are kept twice: %v", kept)
	}
	if len(before.Gaps) > 0 {
		t.Errorf("gaps: %v", before.Gaps)
	}
	c, patch := difference(t, filepath.Join(top, "part"), func() {
		write(t, top, "part/in/a", "one\n2\n")
		write(t, top, "part/x.tmp", "")
		write(t, top, "part/keep.tmp", "")
		write(t, top, "other/b", "c\n")
	})
	expect(t, c, map[string]snapshot.Status{"in/a": snapshot.Modified, "keep.tmp": snapshot.Added})
	if c.Ignored != 1 || !strings.Contains(patch, "-two\n+2\n") {
		t.Errorf("%d ignored changes, and the diff\n%s", c.Ignored, patch)
	}
}

func TestNestedRepositories(t *testing.T) {
	root, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	repository(t, other, map[string]string{"s": "one\n"})
	repository(t, root, map[string]string{"a": "a\n"})
	run(t, root, "git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", other, "module")
	repository(t, filepath.Join(root, "nested"), map[string]string{"n": "one\n", ".gitignore": "*.o\n"})
	repository(t, filepath.Join(root, "broken"), map[string]string{"b": "one\n"})
	write(t, root, "broken/.git/index", "this is not an index")
	mkdir(t, filepath.Join(root, "empty", ".git"))
	write(t, root, "empty/e", "one\n")
	c, patch := difference(t, root, func() {
		for _, name := range []string{"module/s", "nested/n", "nested/n.o", "broken/b", "empty/e", "a"} {
			write(t, root, name, "two\n")
		}
	})
	expect(t, c, map[string]snapshot.Status{
		"module/s": snapshot.Modified, "nested/n": snapshot.Modified, "broken/b": snapshot.Modified,
		"empty/e": snapshot.Modified, "a": snapshot.Modified,
	})
	if c.Ignored != 1 || strings.Count(patch, "-one\n+two\n") != 4 {
		t.Errorf("%d ignored changes, and the diff\n%s", c.Ignored, patch)
	}
}

func TestStateOfGit(t *testing.T) {
	root := t.TempDir()
	repository(t, root, map[string]string{"a": "a\n"})
	c, patch := difference(t, root, func() {
		run(t, root, "git", "checkout", "-qb", "work")
		run(t, root, "git", "commit", "-qm", "empty", "--allow-empty")
		write(t, root, ".git/hooks/pre-commit", "#!/bin/true\n")
	})
	var paths []string
	for _, f := range c.Files {
		if f.Status != snapshot.Git {
			t.Errorf("%s: %s", f.Path, f.Status)
		}
		paths = append(paths, f.Path)
	}
	want := []string{".git/HEAD", ".git/hooks/pre-commit", ".git/refs/heads/work"}
	if diff := cmp.Diff(want, paths); diff != "" || patch != "" {
		t.Errorf("paths differ (-want +got):\n%s\n%s", diff, patch)
	}
}

// TestRepositoryIsLeftAlone has programs in every place of a repository where git would start one.
func TestRepositoryIsLeftAlone(t *testing.T) {
	root, marker := t.TempDir(), filepath.Join(t.TempDir(), "marker")
	repository(t, root, map[string]string{"a": "a\n", ".gitattributes": "* filter=f diff=d\n"})
	program := filepath.Join(t.TempDir(), "program")
	if err := hermetic.WriteProgram(program, []byte("#!/bin/sh\ntouch "+marker+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, root, ".git/config", "[core]\nrepositoryformatversion = 0\nfsmonitor = "+program+
		"\n[filter \"f\"]\nclean = "+program+"\nsmudge = "+program+"\n[diff \"d\"]\ntextconv = "+program+"\n")
	times := func() map[string]fs.FileInfo {
		all := map[string]fs.FileInfo{}
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, _ error) error {
			all[path], _ = d.Info()
			return nil
		})
		return all
	}
	was := times()
	_, patch := difference(t, root, func() {})
	is := times()
	for path, info := range was {
		if !info.ModTime().Equal(is[path].ModTime()) {
			t.Errorf("%s was written", path)
		}
	}
	if _, err := os.Stat(marker); err == nil || len(was) != len(is) || patch != "" {
		t.Errorf("a program of the repository ran (%v), or %d files became %d", err == nil, len(was), len(is))
	}
	_, patch = difference(t, root, func() { write(t, root, "a", "b\n") })
	if _, err := os.Stat(marker); err == nil || !strings.Contains(patch, "-a\n+b\n") {
		t.Errorf("a program of the repository ran (%v), or the diff is wrong:\n%s", err == nil, patch)
	}
}

func TestConvertedFilesAreKept(t *testing.T) {
	root := t.TempDir()
	repository(t, root, map[string]string{"a": "one\ntwo\n", ".gitattributes": "*.txt eol=crlf\n"})
	write(t, root, "w.txt", "one\r\ntwo\r\n")
	commit(t, root)
	_, patch := difference(t, root, func() { write(t, root, "w.txt", "one\r\n2\r\n") })
	if !strings.Contains(patch, "-two\r\n+2\r\n") {
		t.Errorf("the diff is\n%s", patch)
	}
}

// TestAbsent: tracked files that are gone, in the repository of the root, in one below it, and where the root is
// itself below the top of its repository.
func TestAbsent(t *testing.T) {
	needGit(t)
	root := t.TempDir()
	repository(t, root, map[string]string{"a": "a", "b": "b", "d/c": "c", "d/e/f": "f", "other/g": "g"})
	repository(t, filepath.Join(root, "sub"), map[string]string{"h": "h", "i/j": "j"})
	for _, name := range []string{"b", "d/e", "other", "sub/i"} {
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	o := snapshot.Options{Store: openStore(t, t.TempDir()), Absent: true}
	if got, want := take(t, root, o).Absent, []string{"b", "d/e/f", "other/g", "sub/i/j"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	o.Store = openStore(t, t.TempDir())
	if got, want := take(t, filepath.Join(root, "d"), o).Absent, []string{"e/f"}; !slices.Equal(got, want) {
		t.Errorf("beneath the top: %q, want %q", got, want)
	}
	o.Absent, o.Store = false, openStore(t, t.TempDir())
	if got := take(t, root, o).Absent; got != nil {
		t.Errorf("unasked: %q", got)
	}
}

// TestAbsentBesideGaps: files are read, and some of them left out, while the others are still compared.
func TestAbsentBesideGaps(t *testing.T) {
	needGit(t)
	root := t.TempDir()
	repository(t, root, map[string]string{"a": "a", "b": "b"})
	if err := os.Remove(filepath.Join(root, "b")); err != nil {
		t.Fatal(err)
	}
	const files = 500
	for i := range files {
		name := filepath.Join(root, fmt.Sprintf("new%03d", i))
		if err := os.WriteFile(name, fmt.Appendf(nil, "file %03d", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := take(t, root, snapshot.Options{Store: openStore(t, t.TempDir()), Absent: true, TotalLimit: files})
	if got := x.Absent; !slices.Equal(got, []string{"b"}) || len(x.Gaps) == 0 || len(x.Gaps) >= files {
		t.Errorf("%q absent, %d gaps", got, len(x.Gaps))
	}
}
