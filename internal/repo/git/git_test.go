package git_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/repo/git"
)

func run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_ALLOW_PROTOCOL=file")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func write(t testing.TB, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fill makes files that resemble each other, so that packs have deltas.
func fill(t testing.TB, root string, generation int) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		var b strings.Builder
		for range 400 {
			fmt.Fprintf(&b, "%x\n", random.Uint64())
		}
		fmt.Fprintln(&b, generation)
		write(t, root, fmt.Sprintf("dir%d/a long name of a file %d", i%3, i), b.String())
	}
	write(t, root, "empty", "")
	write(t, root, "name\nwith \xff", strings.Repeat("x", 100_000))
}

// check compares every file of the index with what git says.
func check(t *testing.T, root string) {
	t.Helper()
	r, err := git.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	entries, err := r.Index()
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Split(strings.TrimSuffix(run(t, root, "ls-files", "-s", "-z"), "\x00"), "\x00")
	n := 0
	for _, list := range entries {
		n += len(list)
	}
	if n != len(listed) {
		t.Fatalf("%d entries, git has %d", n, len(listed))
	}
	for _, line := range listed {
		head, name, _ := strings.Cut(line, "\t")
		dir, base := path.Split(name)
		e, ok := entries.Find(strings.TrimSuffix(dir, "/"), base)
		if !ok {
			t.Fatalf("%q is missing", name)
		}
		hash := strings.Fields(head)[1]
		if got := fmt.Sprintf("%x", e.Blob[:len(hash)/2]); got != hash && e.Blob != (git.ID{}) {
			t.Errorf("%q is %s, git says %s", name, got, hash)
		}
		want, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		id := r.Sum(want)
		got, err := r.Blob(id, int64(len(want)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
		if n, err := r.Size(id); err != nil || n != int64(len(want)) {
			t.Errorf("%q: size %d, %v; want %d", name, n, err, len(want))
		}
		if len(want) > 0 {
			if _, err := r.Blob(id, int64(len(want))-1); err == nil {
				t.Errorf("%q: a limit below its size is not kept", name)
			}
		}
	}
}

func TestIndexAndObjects(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			t.Run(format+" "+version, func(t *testing.T) {
				root := t.TempDir()
				run(t, root, "init", "-q", "--object-format="+format)
				run(t, root, "config", "index.version", version)
				fill(t, root, 1)
				run(t, root, "add", "-A")
				run(t, root, "commit", "-qm", "one")
				check(t, root)
				fill(t, root, 2)
				run(t, root, "add", "-A")
				run(t, root, "commit", "-qm", "two")
				run(t, root, "gc", "-q")
				check(t, root)
				run(t, root, "checkout", "-q", "HEAD~1") // the bases of deltas, or their results
				check(t, root)
			})
		}
	}
}

// TestChecksumIsNoExtension: with SHA-256 the checksum at the end of an index has 32 bytes, whatever they are.
func TestChecksumIsNoExtension(t *testing.T) {
	index := slices.Concat([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00link"), make([]byte, sha256.Size-len("link")))
	if git.Split(index, sha256.Size) {
		t.Error("it is taken for an index that is split")
	}
}

// TestPartOfALargeObject has a small blob that the pack describes as a part of a much larger one.
func TestPartOfALargeObject(t *testing.T) {
	root := t.TempDir()
	run(t, root, "init", "-q")
	fill(t, root, 1)
	large, err := os.ReadFile(filepath.Join(root, "dir0", "a long name of a file 0"))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for i := range 40 {
		text += strings.ReplaceAll(string(large), "\n", fmt.Sprintf(" %d\n", i))
	}
	for _, n := range []int{200, 5000, 120_000} {
		write(t, root, "grows", text[:n])
		run(t, root, "add", "-A")
		run(t, root, "commit", "-qm", "grown")
	}
	run(t, root, "gc", "-q")
	run(t, root, "checkout", "-q", "HEAD~2")
	check(t, root)
}

func TestOtherPlaces(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "root")
	run(t, base, "init", "-q", "root")
	fill(t, root, 1)
	run(t, root, "add", "-A")
	run(t, root, "commit", "-qm", "one")
	run(t, root, "worktree", "add", "-q", "../worktree")
	run(t, base, "clone", "-q", "--shared", "root", "shared")
	run(t, base, "init", "-q", "super")
	run(t, filepath.Join(base, "super"), "-c", "protocol.file.allow=always", "submodule", "add", "-q", root, "sub")
	for _, name := range []string{"worktree", "shared", "super/sub"} {
		t.Run(name, func(t *testing.T) { check(t, filepath.Join(base, name)) })
	}
}

func TestWhatProvesNothing(t *testing.T) {
	root := t.TempDir()
	run(t, root, "init", "-q")
	write(t, root, "intended", "text")
	run(t, root, "add", "-N", "intended")
	r, err := git.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := r.Index()
	if e, ok := entries.Find("", "intended"); err != nil || !ok || e.Blob != (git.ID{}) {
		t.Errorf("%v, %v; want an entry without a blob", entries, err)
	}
	run(t, root, "update-index", "--split-index")
	if _, err := r.Index(); err == nil || !strings.Contains(err.Error(), "split") {
		t.Errorf("%v; want that the index is split", err)
	}
}

func FuzzIndex(f *testing.F) {
	root := f.TempDir()
	run(f, root, "init", "-q")
	write(f, root, "a/b", "text")
	write(f, root, "a/c", "text")
	run(f, root, "add", "-A")
	for _, version := range []string{"2", "4"} {
		run(f, root, "update-index", "--index-version", version)
		data, err := os.ReadFile(filepath.Join(root, ".git", "index"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(root, ".git", "index"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := git.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = r.Index()
	})
}
