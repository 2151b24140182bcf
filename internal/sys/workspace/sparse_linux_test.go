package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestCopyKeepsHoles: a file with 4 GiB of nothing takes no room, also where it begins or ends with data.
func TestCopyKeepsHoles(t *testing.T) {
	const size = 4 << 30
	dir := t.TempDir()
	for name, places := range map[string][]int64{
		"all hole": nil, "data inside": {1 << 30}, "both ends": {0, size - 5},
	} {
		from, to := filepath.Join(dir, "from "+name), filepath.Join(dir, "to "+name)
		f, err := os.Create(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Skipf("%s: a file system without large files: %v", name, err)
		}
		for _, at := range places {
			if _, err := f.WriteAt([]byte("data\n"), at); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(from); err != nil || info.Sys().(*syscall.Stat_t).Blocks > 1<<20 {
			t.Skipf("%s: the file system of %s keeps no holes: %v", name, dir, err)
		}
		if err := Copy(from, to, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(to)
		if err != nil {
			t.Fatal(err)
		}
		if blocks := info.Sys().(*syscall.Stat_t).Blocks; info.Size() != size || blocks > 1<<12 {
			t.Errorf("%s: %d bytes in %d blocks", name, info.Size(), blocks)
		}
		copied, err := os.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range append(places, 1<<20) {
			got := make([]byte, 5)
			want := []byte("data\n")
			if at == 1<<20 {
				want = make([]byte, 5)
			}
			if _, err := copied.ReadAt(got, at); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: at %d %q, %v", name, at, got, err)
			}
		}
		_ = copied.Close() // it was only read
	}
}
