package screen_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"omniagent/internal/term/screen"
)

// TestMuchWaitsForNoFrame: of what is printed between two frames only so much is held.
func TestMuchWaitsForNoFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &paper{}
		s := screen.New(screen.Options{Out: out, Size: of(80, 24)})
		const lines, size = 100, 64 << 10
		for range lines {
			s.Print(strings.Repeat("x", size))
		}
		if waits := lines*size - strings.Count(out.take(), "x"); waits > 2<<20 {
			t.Errorf("%d KiB wait for the next frame", waits>>10)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
