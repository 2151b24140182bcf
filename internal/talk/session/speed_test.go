package session

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/testkit/hermetic"
)

const longMessages = 10_000

// TestResumeIsAsFastAsReading: a session of 10,000 messages that was compacted, as one of that size has to be (20 MB
// are some five million tokens, and no model takes them), is ready for the next request in at most twice the time of
// reading its file.
func TestResumeIsAsFastAsReading(t *testing.T) {
	hermetic.Long(t)
	if hermetic.Raced {
		t.Skip("the race detector slows one of the two only: it is measured without")
	}
	s := store(t)
	path := long(t, s, "long", longMessages, 40)
	if info, err := os.Stat(path); err != nil || info.Size() < 15<<20 {
		t.Fatalf("%v %v", info, err)
	}
	notSlower(t, 2, func() {
		_, err := os.ReadFile(path)
		check(t, err)
	}, func() {
		own := resume(t, s, "long")
		if n := len(own.Messages()); n != 40 { // the summary and the prompt after it are one
			t.Fatalf("%d messages", n)
		}
		own.stale = false
		check(t, own.Close())
	})
}

// notSlower fails the test if resuming takes more than limit times as long as reading. The two are measured in turn, so
// that whatever else is at work on the machine slows both, and the median of the ratios counts.
func notSlower(t *testing.T, limit float64, reading, resuming func()) {
	t.Helper()
	const least, most = 15, 151
	measure := func(f func()) float64 {
		began := time.Now()
		f()
		return float64(time.Since(began))
	}
	var ratios []float64
	for len(ratios) < most {
		read := measure(reading)
		ratios = append(ratios, measure(resuming)/read)
		if slices.Sort(ratios); len(ratios) >= least && ratios[len(ratios)/2] <= limit {
			t.Logf("resuming takes %.2f times as long as reading", ratios[len(ratios)/2])
			return
		}
	}
	t.Errorf("resuming takes %.2f times as long as reading, want at most %.1f", ratios[most/2], limit)
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

// conversed writes the journal of a conversation of so many messages as hosts have it: each with its events, text in
// pieces.
func conversed(t testing.TB, s Store, messages int) (path string) {
	t.Helper()
	check(t, os.MkdirAll(s.dir, 0o700))
	path = s.file("long", journalEnding)
	f, err := os.Create(path)
	check(t, err)
	w := bufio.NewWriter(f)
	number, parent, at := int64(0), int64(0), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	put := func(r Record) {
		number++
		line, err := Entry{Number: number, Parent: parent, Time: at, Record: r}.line()
		check(t, err)
		_, err = w.Write(line)
		check(t, err)
		if r.kind().inTree() {
			parent = number
		}
	}
	put(Begin{Version: version, ID: "long", Agent: "claude", Model: "m1", Cwd: "/w"})
	output := strings.Repeat("     1\tfunc main() { fmt.Println(\"it's a line of a file\") }\n", 30)
	for n := 0; n < messages; n += 4 {
		turn := int64(n/4 + 1)
		words := fmt.Sprintf("prompt %d: look at the file and say what it does", n)
		put(prompted(words, turn))
		put(user(words))
		put(Logged{&event.Event{Kind: event.TurnBegan, Turn: turn}})
		for range 12 {
			put(told("a few words of it ", turn))
		}
		put(Logged{&event.Event{Kind: event.Text, Turn: turn, Text: strings.Repeat("a few words of it ", 12)}})
		call := &event.Call{
			ID: "call_" + itoa(int64(n)), Name: "Read", Kind: event.Read,
			Input: []byte(`{"file_path":"a.txt"}`), Path: "a.txt",
		}
		put(Logged{&event.Event{Kind: event.ToolCall, Turn: turn, Call: call}})
		put(assistant(strings.Repeat("a few words of it ", 12), call.ID))
		put(Logged{&event.Event{
			Kind: event.ToolResult, Turn: turn, Result: &event.Result{ID: call.ID, Output: output},
		}})
		put(result(call.ID, output))
		for range 12 {
			put(told("and at last the end of it ", turn))
		}
		put(Logged{&event.Event{Kind: event.Text, Turn: turn, Text: strings.Repeat("and at last the end of it ", 12)}})
		put(assistant(strings.Repeat("and at last the end of it ", 12)))
		e := ended(turn)
		e.Total = Total{Turns: int(turn), Messages: n + 4, Title: "a long one", Model: "m1"}
		put(e)
	}
	check(t, w.Flush())
	check(t, f.Close())
	return path
}

// TestAConversationWithItsEventsIsReadyAsFast: 10,000 messages with all their events, for whom the agent keeps its own
// history, so that the journal is read and its messages are not decoded. Its many short records cost more than their
// bytes.
func TestAConversationWithItsEventsIsReadyAsFast(t *testing.T) {
	hermetic.Long(t)
	if hermetic.Raced {
		t.Skip("the race detector slows one of the two only: it is measured without")
	}
	s := store(t)
	path := conversed(t, s, longMessages)
	notSlower(t, 4, func() {
		_, err := os.ReadFile(path)
		check(t, err)
	}, func() {
		own := resume(t, s, "long")
		if state := own.State(); state.LastTurn != longMessages/4 || state.Messages != longMessages ||
			len(state.Unfinished) > 0 || state.Damaged > 0 {
			t.Fatalf("%+v", state)
		}
		check(t, own.abandon())
	})
}

// BenchmarkAppendText is one piece of text, without a sync.
func BenchmarkAppendText(b *testing.B) {
	own := create(b, store(b), "x")
	r := told("a few words of it ", 1)
	b.ReportAllocs()
	for b.Loop() {
		_, err := own.Append(r)
		check(b, err)
	}
}

// BenchmarkAppendAndRead has a reader that keeps up.
func BenchmarkAppendAndRead(b *testing.B) {
	own := create(b, store(b), "x")
	reader := own.Reader(2)
	r := told("a few words of it ", 1)
	b.ReportAllocs()
	for b.Loop() {
		_, err := own.Append(r)
		check(b, err)
		_, err = reader.Next(b.Context())
		check(b, err)
	}
}

// BenchmarkDurable is a record that is made durable, in one conversation and in 64 at a time: the file system makes the
// records of several durable together, so that the time per record falls.
func BenchmarkDurable(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := Store{dir: b.TempDir()}
			if dir := os.Getenv("OMNIAGENT_DURABLE"); dir != "" { // a temporary directory may lie in memory
				s.dir = dir
			}
			all := make([]*Session, n)
			for i := range all {
				all[i] = create(b, s, fmt.Sprint("durable-", n, "-", i))
			}
			r := told("a few words of it ", 1)
			var next atomic.Int64
			var done sync.WaitGroup
			b.ResetTimer()
			for _, own := range all {
				done.Go(func() {
					for next.Add(1) <= int64(b.N) {
						_, err := own.Append(r)
						check(b, err)
						check(b, own.Sync())
					}
				})
			}
			done.Wait()
			b.StopTimer()
			for _, own := range all {
				id := own.ID()
				check(b, own.Close())
				check(b, s.Delete(context.Background(), id))
			}
		})
	}
}

// TestAnEventCostsTheSameInALongConversation: record 100,000 takes no more memory than record 1,000, and an event
// little more than encoding and writing it.
func TestAnEventCostsTheSameInALongConversation(t *testing.T) {
	own := create(t, store(t), "x")
	r := told("a few words of it ", 1)
	measure := func(until int64) (allocs, bytes float64) {
		for own.Last() < until {
			add(t, own, r)
		}
		var before, after runtime.MemStats
		const count = 2000
		runtime.ReadMemStats(&before)
		for range count {
			add(t, own, r)
		}
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / count, float64(after.TotalAlloc-before.TotalAlloc) / count
	}
	early, earlyBytes := measure(1_000)
	late, lateBytes := measure(100_000)
	t.Logf("an event allocates %.2f times, %.0f bytes at record 1,000, and %.2f times, %.0f bytes at record 100,000",
		early, earlyBytes, late, lateBytes)
	if late > early+0.5 || lateBytes > earlyBytes+128 {
		t.Errorf("an event costs more and more")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	check(t, err)
	defer file.Close()
	best, plain := time.Hour, time.Hour
	for range 5 {
		start := time.Now()
		for range 2000 {
			add(t, own, r)
		}
		best = min(best, time.Since(start)/2000)
		start = time.Now()
		for range 2000 {
			data, err := json.Marshal(r)
			check(t, err)
			_, err = file.Write(data)
			check(t, err)
		}
		plain = min(plain, time.Since(start)/2000)
	}
	t.Logf("an event takes %v, encoding and writing it %v", best, plain)
	if best > 4*plain && !hermetic.Raced {
		t.Errorf("an event takes %v, and encoding and writing it only %v", best, plain)
	}
}

// BenchmarkResumeConversation opens 10,000 messages with all their events; BenchmarkReadConversation only reads the
// file.
func BenchmarkResumeConversation(b *testing.B) {
	s := store(b)
	conversed(b, s, longMessages)
	b.ReportAllocs()
	for b.Loop() {
		own, err := s.Resume(b.Context(), "long")
		check(b, err)
		check(b, own.abandon())
	}
}

// BenchmarkReadConversation is what that is compared with.
func BenchmarkReadConversation(b *testing.B) {
	path := conversed(b, store(b), longMessages)
	for b.Loop() {
		_, _ = os.ReadFile(path)
	}
}
