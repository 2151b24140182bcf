package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLongContentIsNotTrusted: no copy of it is used.
func TestLongContentIsNotTrusted(t *testing.T) {
	dir := t.TempDir()
	trust := OpenTrust(filepath.Join(dir, "trust"))
	for n, copied := range map[int]bool{mostTrusted: true, mostTrusted + 1: false} {
		content := []byte(strings.Repeat("x", n))
		if err := trust.Add(filepath.Join(dir, "file"), content); err != nil {
			t.Fatal(err)
		}
		if _, ok := trust.Copy(filepath.Join(dir, "file")); ok != copied {
			t.Errorf("%d bytes: %t", n, ok)
		}
	}
}
