package snapshot

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/repo/git"
	"omniagent/internal/sys/workspace"
)

// Encode returns the index as SaveFile writes it.
func (x *Index) Encode() []byte {
	text := slices.Concat(x.parts()...)
	sum := sha256.Sum256(text)
	return append(text, sum[:]...)
}

func FuzzLoad(f *testing.F) {
	root := f.TempDir()
	store := OpenStore(f.TempDir())
	for range 2 {
		x, err := Take(f.Context(), root, Options{Store: store})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(x.Encode())
		root = "." // this package
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Parse(data)
		body, _ := bytes.CutPrefix(data, []byte(firstLine))
		for _, body := range [][]byte{body, body[:max(len(body)-32, 0)]} { // a wrong checksum hides the rest
			x, err := parse(body)
			if err != nil {
				continue
			}
			again, err := Parse(x.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if c := Diff(x, again); len(c.Files) > 0 {
				t.Fatalf("%v differ after Encode and Parse", c.Files)
			}
		}
	})
}

// TestEncode: what an index says of its files is what was saved, whatever the neighbours are like.
func TestEncode(t *testing.T) {
	t.Parallel()
	r := &repository{dir: "/r/.git"}
	long, short := git.ID{31: 1}, git.ID{19: 1}
	status := func(n int64) workspace.Status {
		return workspace.Status{
			Mode: 0o644, Size: n, Modified: n, Changed: -n,
			Inode: uint64(n) << 40, Device: uint64(math.MaxInt64) + uint64(n),
		}
	}
	x := &Index{Root: "/r", Taken: time.Unix(7, 1), folders: []*folder{
		{path: "", complete: true, entries: []fileEntry{
			{name: "a", Status: status(0)},
			{name: "b", Status: status(1), content: &content{blob: long, repository: r, inGit: true}},
			{name: "c", Status: status(math.MaxInt64), content: &content{blob: short, repository: r, inGit: true}},
			{name: "d", Status: status(math.MinInt64), about: ignored, content: &content{sum: [32]byte{1}, kept: true}},
		}},
		{path: "e", entries: []fileEntry{
			{name: "f", Status: workspace.Status{Mode: fs.ModeSymlink, Inode: math.MaxUint64}, target: "a"},
		}},
	}, top: &fileEntry{name: ".", Status: status(9)}}
	again, err := Parse(x.Encode())
	if err != nil {
		t.Fatal(err)
	}
	inside := cmp.AllowUnexported(Index{}, folder{}, fileEntry{}, content{}, repository{})
	if diff := cmp.Diff(x, again, inside); diff != "" {
		t.Error(diff)
	}
	file := filepath.Join(t.TempDir(), "index")
	if err := x.SaveFile(file); err != nil {
		t.Fatal(err)
	}
	if saved, err := os.ReadFile(file); err != nil || !bytes.Equal(saved, x.Encode()) {
		t.Errorf("SaveFile writes something else, %v", err)
	}
}

// TestSaveFileFails: nothing goes on where the file cannot be made.
func TestSaveFileFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "none", "index")
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		if err := Nothing("/r").SaveFile(file); err == nil {
			t.Error("it was made")
		}
	})
}

// TestDamageIsNoticed changes every byte of a saved index, and cuts it everywhere.
func TestDamageIsNoticed(t *testing.T) {
	x, err := Take(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	saved := x.Encode()
	for i := range saved {
		data := bytes.Clone(saved)
		data[i] ^= 1
		if _, err := Parse(data); err == nil {
			t.Errorf("byte %d is damaged, which is not noticed", i)
		}
		if _, err := Parse(saved[:i]); err == nil {
			t.Errorf("only %d bytes are left, which is not noticed", i)
		}
	}
}
