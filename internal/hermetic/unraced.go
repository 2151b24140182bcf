package hermetic

import "testing"

// Unraced skips a test that tries many things in processes of its own: with the race detector each of them takes
// several times as long to start. scripts/test finds the calls of Unraced and runs those tests once more without it.
func Unraced(t testing.TB) {
	t.Helper()
	if Raced {
		t.Skip("it starts many processes, so scripts/test runs it without the race detector")
	}
}
