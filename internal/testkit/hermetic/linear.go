package hermetic

import (
	"testing"
	"time"
)

// Linear fails the test if 16 times as much work takes much more than 16 times as long. Both are measured in one run,
// so the machine does not matter. what names the work; work does it n times, or on a text of length n.
func Linear(t testing.TB, what string, n int, work func(n int)) {
	t.Helper()
	const enough = 20 * time.Millisecond // a shorter time says nothing
	measure := func(n int) time.Duration {
		began := time.Now()
		work(n)
		return time.Since(began)
	}
	// The least of many attempts: a busy machine slows some of them, and what is not linear is slow in all. Linear
	// work takes up to 60 times as long, because it also fills memory; quadratic work takes 256 times as long.
	short, long := measure(n/4), measure(4*n)
	for range 60 {
		if long <= enough || long <= 100*short {
			t.Logf("%s: %v, and %v for 16 times as much", what, short, long)
			return
		}
		short, long = min(short, measure(n/4)), min(long, measure(4*n))
	}
	t.Errorf("%s: %v, and %v for 16 times as much", what, short, long)
}
