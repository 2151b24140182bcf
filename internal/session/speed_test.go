package session

import (
	"os"
	"slices"
	"testing"
	"time"
)

const longMessages = 10_000

// TestResumeIsAsFastAsReading: a session of 10,000 messages that was compacted, as one of that size has to be (20 MB are some five million
// tokens, and no model takes them), is ready for the next request in at most twice the time of reading its file.
func TestResumeIsAsFastAsReading(t *testing.T) {
	s := store(t)
	path := long(t, s, "long", longMessages, 40)
	if info, err := os.Stat(path); err != nil || info.Size() < 15<<20 {
		t.Fatalf("%v %v", info, err)
	}
	const limit = 2.0
	ratio := 0.0
	for range 5 { // others are at work on the machine; one quiet moment is enough
		reading := median(t, func() {
			_, err := os.ReadFile(path)
			check(t, err)
		})
		resuming := median(t, func() {
			own := resume(t, s, "long")
			if n := len(own.Messages()); n != 40 { // the summary and the prompt after it are one
				t.Fatalf("%d messages", n)
			}
			own.stale = false
			check(t, own.Close())
		})
		if ratio = float64(resuming) / float64(reading); ratio <= limit {
			t.Logf("reading %v, resuming %v: %.2f times", reading, resuming, ratio)
			return
		}
	}
	t.Errorf("resuming takes %.2f times as long as reading, want at most %.1f", ratio, limit)
}

func median(t *testing.T, f func()) time.Duration {
	t.Helper()
	var all []time.Duration
	for range 9 {
		start := time.Now()
		f()
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func benchmark(b *testing.B, kept int, f func(s Store, path string)) {
	s := store(b)
	path := long(b, s, "long", longMessages, kept)
	info, err := os.Stat(path)
	check(b, err)
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		f(s, path)
	}
}

func BenchmarkReadFile(b *testing.B) {
	benchmark(b, 40, func(_ Store, path string) { _, _ = os.ReadFile(path) })
}

func resumeAndAsk(b *testing.B) func(Store, string) {
	return func(s Store, _ string) {
		own, err := s.Resume(b.Context(), "long")
		check(b, err)
		_ = own.Messages()
		check(b, own.Close())
	}
}

func BenchmarkResumeCompacted(b *testing.B) { benchmark(b, 40, resumeAndAsk(b)) }

// BenchmarkResumeWhole has to decode every message, because the model would have to see all of them.
func BenchmarkResumeWhole(b *testing.B) { benchmark(b, 0, resumeAndAsk(b)) }

// BenchmarkResumeOnly does not ask for the messages.
func BenchmarkResumeOnly(b *testing.B) {
	benchmark(b, 0, func(s Store, _ string) {
		own, err := s.Resume(b.Context(), "long")
		check(b, err)
		check(b, own.abandon())
	})
}
