package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/sys/workspace"
)

// TestLargeFilesAreNotRead: neither to show their lines, nor for their rules.
func TestLargeFilesAreNotRead(t *testing.T) {
	large := &fileEntry{Status: workspace.Status{Mode: 0o600, Size: readLimit + 1}, content: &content{}}
	if _, ok := (&reader{}).content(large); ok {
		t.Error("a file of more than 64 MiB is compared")
	}
	for n, ignored := range map[int]int{0: 1, rulesLimit: 0} {
		root := t.TempDir()
		rules := "*.log\n#" + strings.Repeat("x", n)
		if err := os.Mkdir(filepath.Join(root, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := Take(context.Background(), root, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "x.log"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		after, err := Take(context.Background(), root, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := Diff(before, after).Ignored; got != ignored {
			t.Errorf("%d bytes of rules: %d files are ignored", len(rules), got)
		}
	}
}

// TestLargeFilesAreNotKept: a file that is larger than the default is a gap.
func TestLargeFilesAreNotKept(t *testing.T) {
	root := t.TempDir()
	for name, size := range map[string]int64{"kept": 4 << 20, "large": 4<<20 + 1} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil { // a hole
			t.Fatal(err)
		}
	}
	x, err := Take(context.Background(), root, Options{Store: OpenStore(t.TempDir())})
	if err != nil || len(x.Gaps) != 1 || x.Gaps[0].Path != "large" {
		t.Errorf("%+v, %v", x, err)
	}
}
