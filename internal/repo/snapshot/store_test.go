package snapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/kit/fault"
)

func TestStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none yet")
	one, two := OpenStore(dir), OpenStore(dir)
	long := make([]byte, 3*largePart+7) // in several parts
	for i := range long {
		long[i] = byte(i * i >> 12)
	}
	contents := [][]byte{
		[]byte("a"),
		{},
		bytes.Repeat([]byte("text\n"), 10_000), long, long[:largePart], long[:largePart-1],
		long[:smallest], long[:smallest-1],
	}
	for _, data := range contents {
		sum := sha256.Sum256(data)
		if _, err := two.Get(sum, 1<<20); !errors.Is(err, fault.FileMissing) {
			t.Errorf("before it is kept: %v", err)
		}
		for _, want := range []bool{true, false} {
			if added, err := one.put(sum, data); err != nil || added != want {
				t.Errorf("added: %v, %v", added, err)
			}
		}
		if got, err := two.Get(sum, 4<<20); err != nil || !bytes.Equal(got, data) {
			t.Errorf("kept by another: %.20q, %v", got, err)
		}
		if added, err := two.put(sum, data); added || err != nil {
			t.Errorf("kept twice: %v", err)
		}
	}
	if _, err := one.Get(sha256.Sum256(contents[2]), 100); !errors.Is(err, fault.Unsafe) {
		t.Errorf("larger than the limit: %v", err)
	}
	one.Close()
	packs, _ := filepath.Glob(filepath.Join(dir, "*"))
	if info, err := os.Stat(packs[0]); len(packs) != 1 || err != nil || info.Size() > 6*largePart {
		t.Errorf("%v, %v", packs, err)
	}
}

// TestStoreDamaged: what was cut off is not there, what was changed is noticed, and the rest is what it was.
func TestStoreDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := OpenStore(dir)
	first, last := []byte("first"), []byte("last")
	for _, data := range [][]byte{first, last} {
		if _, err := s.put(sha256.Sum256(data), data); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	packs, _ := filepath.Glob(filepath.Join(dir, "*"))
	whole, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := os.WriteFile(packs[0], whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s := OpenStore(dir)
		_, err := s.Get(sha256.Sum256(first), 100)
		if there := n >= headerSize+len(first); there != (err == nil) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if added, err := s.put(sha256.Sum256(last), last); !added || err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		if got, err := s.Get(sha256.Sum256(last), 100); err != nil || !bytes.Equal(got, last) {
			t.Errorf("%d bytes: %q, %v", n, got, err)
		}
		s.Close()
		all, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, path := range all {
			if path != packs[0] {
				_ = os.Remove(path)
			}
		}
	}
	whole[headerSize]++
	if err := os.WriteFile(packs[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(dir).Get(sha256.Sum256(first), 100); !errors.Is(err, fault.Unsafe) {
		t.Errorf("changed: %v", err)
	}
}
