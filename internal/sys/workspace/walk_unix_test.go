//go:build unix

package workspace

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestSurveyIsNotHeldUpByAFIFO(t *testing.T) {
	root := t.TempDir()
	grow(t, root, "file")
	s := &surveyed{before: func(*Folder, []Entry) {
		check(t, os.Remove(filepath.Join(root, "file")))
		check(t, syscall.Mkfifo(filepath.Join(root, "file"), 0o600))
	}, file: func(f *Folder, name string) { _, _ = f.ReadFile(name, 100) }}
	_, err := s.walk(t, context.Background(), opened(t, root), ".")
	check(t, err)
}
