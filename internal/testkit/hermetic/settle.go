package hermetic

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Settle waits until the clock for file times has moved on, so that files written so far are older than those written
// later. Our code trusts the time of a file only if it is a few ticks of that clock old.
func Settle(t testing.TB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "now")
	now := func() time.Time {
		err := os.WriteFile(path, nil, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	for began := now(); now().Sub(began) <= 100*time.Millisecond; {
	}
}
