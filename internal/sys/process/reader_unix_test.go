//go:build unix

package process_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// TestReaderGone: a reader that goes away is noticed without a word; one that stays, and a file, are not.
func TestReaderGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	gone := process.ReaderGone(w)
	for _, quiet := range []<-chan struct{}{gone, process.ReaderGone(file), process.ReaderGone(&bytes.Buffer{})} {
		select {
		case <-quiet:
			t.Fatal("somebody reads, and it says nobody does")
		case <-time.After(20 * time.Millisecond):
		}
	}
	_ = r.Close()
	select {
	case <-gone:
	case <-time.After(hermetic.Patience):
		t.Fatal("it was not noticed")
	}
}
