package fork

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
)

// TestManyFilesWereBrought: what is recorded of them can be read again, however many there were.
func TestManyFilesWereBrought(t *testing.T) {
	f := &Fork{Record: Record{Workspace: t.TempDir()}, store: Store{Dir: t.TempDir()}, dir: t.TempDir()}
	applied := map[string][]appliedFileState{}
	state := appliedFileState{Perm: 0o644, Sum: sha256.Sum256(nil), Size: 1000, Kept: true}
	for i := range 50_000 {
		applied[fmt.Sprintf("node_modules/package-%d/dist/index.js", i)] = []appliedFileState{state, state}
	}
	if err := writeJSON(filepath.Join(f.dir, appliedFile), applied); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(f.dir, appliedFile)); err != nil || info.Size() <= jsonLimit {
		t.Fatalf("the record is short: %v", err)
	}
	b, err := f.bases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if len(b.applied) != len(applied) {
		t.Errorf("%d files", len(b.applied))
	}
}

// TestLongTexts: what is too large to be merged is not held in memory.
func TestLongTexts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, mergeLimit+1)); err != nil { // a hole
		t.Fatal(err)
	}
	side, err := theirs(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := side.content(); !errors.Is(err, fault.FieldTooLarge) {
		t.Errorf("%v", err)
	}
}

// TestLongRecords: what is not brought but names it is of moderate size, or damaged.
func TestLongRecords(t *testing.T) {
	dir := t.TempDir()
	f := &Fork{Record: Record{Workspace: t.TempDir()}, store: Store{Dir: t.TempDir()}, dir: t.TempDir()}
	f.GitDir = filepath.Join(dir, "git")
	s := Store{Dir: dir}
	for file, limit := range map[string]int64{
		filepath.Join(f.GitDir, "HEAD"): git.RefsLimit, filepath.Join(s.at("x"), recordFile): jsonLimit,
		filepath.Join(f.dir, appliedFile): 1 << 30,
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600),
			os.Truncate(file, limit+1)); err != nil { // a hole
			t.Fatal(err)
		}
	}
	if _, err := f.home().Head(); !errors.Is(err, fault.FieldTooLarge) {
		t.Errorf("a HEAD of more than 64 MiB: %v", err)
	}
	if _, err := f.bases(t.Context()); !errors.Is(err, fault.FieldTooLarge) {
		t.Errorf("a record of more than 1 GiB: %v", err)
	}
	if _, err := s.Open("x"); !strings.Contains(fmt.Sprint(err), "larger than") {
		t.Errorf("a record of more than 16 MiB: %v", err)
	}
}

// TestManyRefsAreOwned: packed-refs is read a few times, not once for each of its refs.
func TestManyRefsAreOwned(t *testing.T) {
	reads := 0
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%040d refs/remotes/origin/%d\n%040[1]d refs/tags/%[2]d\n", 1, i)
	}
	dir := t.TempDir()
	refs := git.Refs{Dir: dir, Common: dir, At: pathname.Real, Read: func(path string, _ int64) ([]byte, error) {
		if filepath.Base(path) != git.PackedRefs {
			return nil, fs.ErrNotExist
		}
		reads++
		return []byte(b.String()), nil
	}}
	f := &Fork{Record: Record{Workspace: dir}}
	if own := f.owns(t.Context(), ".", refs, refs); len(own) > 0 || reads > 4 {
		t.Errorf("%d refs are owned, after %d reads", len(own), reads)
	}
}
