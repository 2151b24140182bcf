package hermetic

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Settle waits until what was written so far is older than all that will be written, by the clock for file times. Our
// code trusts the time of a file only if it is older than a few ticks of that clock.
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
