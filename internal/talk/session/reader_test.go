package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

func told(words string, turn int64) Logged {
	return Logged{&event.Event{Kind: event.Text, Text: words, Delta: true, Turn: turn}}
}

func prompted(words string, turn int64) Logged {
	return Logged{&event.Event{Kind: event.Prompted, Turn: turn, Blocks: []event.Block{{Text: words}}}}
}

func ended(turn int64) End {
	return End{Event: &event.Event{
		Kind: event.Ended, Turn: turn, End: &event.End{OK: true, Reason: "success"},
	}}
}

// anyRecord is a record as conversations write them, with what an agent may say in it.
func anyRecord(t *rapid.T, n int) Record {
	words := rapid.SampledFrom([]string{
		"a", "\n", "\x00", "\xff", "\u2028", `"},"k":"end"`,
		"}\n{\"n\":3,\"p\":2,\"k\":\"end\",\"t\":\"\",\"c\":\"00000000\",\"d\":{}}\n", strings.Repeat("long ",
			2000), "\u202e\u009b",
	}).Draw(t, "words") + itoa(int64(n))
	if rapid.IntRange(0, 60).Draw(t, "huge") == 60 {
		words = strings.Repeat("huge\n", largestBody/4)
	}
	turn := int64(n/7 + 1)
	switch rapid.IntRange(0, 9).Draw(t, "record") {
	case 0:
		return prompted(words, turn)
	case 1:
		return ended(turn)
	case 2:
		return Logged{&event.Event{
			Kind: event.ToolCall, Turn: turn, Call: &event.Call{ID: words, Name: words, Input: []byte(words)},
		}}
	case 3:
		return Logged{&event.Event{
			Kind: event.Question, Turn: turn, Ask: &event.Ask{ID: "q" + itoa(int64(n)), Text: words},
		}}
	case 4:
		return Changed{
			Mode:  "plan",
			Event: &event.Event{Kind: event.Changed, Facts: &event.Facts{Mode: "plan", Model: words}},
		}
	case 5:
		return user(words)
	case 6:
		return Denied{
			Tool: words, Reason: `{"n":9,"p":8,"k":"end","t":"","d":{}}`,
			Event: &event.Event{Kind: event.Denied, Turn: turn, Denial: &event.Denial{Tool: words}},
		}
	default:
		return told(words, turn)
	}
}

// rows reads all that a reader has, as the lines that programs get.
func rows(t fataler, r *Reader) string {
	var all []byte
	for {
		e, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			return string(all)
		}
		if err != nil {
			t.Fatal(err)
		}
		if all, err = e.AppendRow(all); err != nil {
			t.Fatal(err)
		}
	}
}

type fataler interface{ Fatal(...any) }

func stored(t fataler, s Store, id string, from int64) string {
	r, err := s.Reader(id, from, false)
	if err != nil {
		t.Fatal(err)
	}
	return rows(t, r)
}

// from is the tail of rows that begins with a number.
func from(all string, number int64) string {
	i := strings.Index(all, fmt.Sprintf("{\"seq\":%d,", number))
	if i < 0 {
		return ""
	}
	return all[i:]
}

// TestReadersAgree: a reader in the writer's process, one that reads the file, and one that was there before anything
// was written get the same, from any record on, while the session is open and when it is closed. Numbers have no gaps.
func TestReadersAgree(t *testing.T) {
	hermetic.Long(t)
	base, rounds := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		rounds++
		s := Open(filepath.Join(base, fmt.Sprint(rounds)))
		own, err := s.Create(context.Background(), Begin{ID: "x", Provider: "p", Model: "m"})
		fatal(t, err)
		defer func() { _ = own.Close() }()
		before, late := own.Reader(1), own.Reader(1)
		watched := make(chan string)
		go func() { watched <- rows(t, before) }()
		count := rapid.IntRange(1, 40).Draw(t, "count")
		for n := range count {
			number, err := own.Append(anyRecord(t, n))
			fatal(t, err)
			if number != int64(n+2) {
				t.Fatalf("record %d follows %d", number, n+1)
			}
			if rapid.IntRange(0, 15).Draw(t, "reopen") == 0 && n < count-1 {
				fatal(t, own.Close())
				if got := <-watched; got != stored(t, s, "x", 1) {
					t.Fatal("the reader that was there before has something else")
				}
				fatal(t, late.Close())
				own, err = s.Resume(context.Background(), "x")
				fatal(t, err)
				before, late = own.Reader(1), own.Reader(1)
				go func() { watched <- rows(t, before) }()
			}
		}
		all := stored(t, s, "x", 1)
		if n := strings.Count(all, "\n"); n != count+1 || strings.Contains(all, `"kind":"damaged"`) {
			t.Fatalf("%d rows of %d records", n, count+1)
		}
		number := rapid.Int64Range(-1, int64(count)+3).Draw(t, "from")
		tail := from(all, max(1, number))
		within := own.Reader(number)
		fatal(t, own.Close())
		for name, got := range map[string]string{
			"before": <-watched, "late": rows(t, late), "file": all, "within": rows(t, within), "after": rows(t,
				own.Reader(number)), "tail": stored(t, s, "x", number),
		} {
			want := tail
			if name == "before" || name == "late" || name == "file" {
				want = all
			}
			if got != want {
				t.Fatalf("%s from %d:\n got %.300q\nwant %.300q", name, number, got, want)
			}
		}
	})
}

// TestAnUnlinkedJournalCanBeReadToItsEnd: it has no name, and its readers outlive its writer.
func TestAnUnlinkedJournalCanBeReadToItsEnd(t *testing.T) {
	s := store(t)
	own, err := s.New(t.Context(), Begin{Provider: "p", Model: "m"}, false, t.Logf)
	check(t, err)
	for n := range 3000 {
		add(t, own, told(strings.Repeat("x", 200)+itoa(int64(n)), 1))
	}
	add(t, own, told(strings.Repeat("y", 2*largestBody), 1)) // in its own line: there is no directory for bodies
	add(t, own, ended(1))
	one, two := own.Reader(1), own.Reader(2990)
	check(t, own.Close())
	all := rows(t, one)
	if strings.Count(all, "\n") != 3003 || from(all, 2990) != rows(t, two) {
		t.Errorf("%d rows", strings.Count(all, "\n"))
	}
	if own.handle.users != 0 {
		t.Errorf("%d still use its file", own.handle.users)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("something of it lies in %s: %v", s.dir, err)
	}
	if _, err := own.Reader(1).Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

// TestASlowReaderCostsLittle: while 20 MB are appended, readers that stand still cost less than 1 MiB. It fails
// without the limits of recent.
func TestASlowReaderCostsLittle(t *testing.T) {
	hermetic.Long(t)
	s := store(t)
	own := create(t, s, "x")
	add(t, own, told("first", 1))
	var slow []*Reader
	for range 4 {
		r := own.Reader(1)
		_, err := r.Next(t.Context())
		check(t, err)
		slow = append(slow, r)
	}
	words := strings.Repeat("w", 1000)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, worst := heap(), uint64(0)
	for n := range 20_000 {
		add(t, own, told(words, 1))
		if n%4_000 == 3_999 {
			worst = max(worst, heap())
		}
	}
	if worst > before+1<<20 {
		t.Errorf("the heap grew by %d KiB", (worst-before)>>10)
	}
	t.Logf("20 MB: the heap grew by %d KiB", (int64(worst)-int64(before))>>10)
	for _, r := range slow {
		n := 1
		for e, err := r.Next(t.Context()); e.Number < 20_002; e, err = r.Next(t.Context()) {
			check(t, err)
			n++
		}
		if n != 20_001 {
			t.Errorf("a slow reader has %d records", n)
		}
		check(t, r.Close())
	}
}

// TestMemoryOfRecentRecordsIsBounded: by their number, and by their size.
func TestMemoryOfRecentRecordsIsBounded(t *testing.T) {
	for _, size := range []int{1, 100, 10_000, largestRecent - 500} {
		var r recent
		line := bytes.Repeat([]byte("x"), size)
		for n := range int64(5000) {
			r.add(n+1, n*int64(size+1), line)
		}
		held := 0
		for _, k := range r.entries {
			held += len(k.line)
		}
		if held > recentBytes || held != r.size || len(r.entries) > mostRecent || len(r.entries) == 0 ||
			cap(r.entries) > 4*mostRecent {
			t.Errorf("%d records of %d bytes are held, with %d bytes", len(r.entries), size, held)
		}
	}
}

// followEvents prints the rows of a session as another process does, to its end.
func followEvents(dir string) error {
	r, err := Open(dir).Reader("x", 1, true)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	var row []byte
	for {
		e, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		if row, err = e.AppendRow(row[:0]); err != nil {
			return err
		}
		if _, err := out.Write(row); err != nil {
			return err
		}
	}
}

// TestAnotherProcessFollows: it gets every record, also those that were written before it came, and ends with the
// writer.
func TestAnotherProcessFollows(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	for n := range 500 {
		add(t, own, told(itoa(int64(n)), 1))
	}
	cmd, _, out := other(t, "follow", s.dir)
	var group sync.WaitGroup
	var got []byte
	var err error
	group.Go(func() { got, err = io.ReadAll(out) })
	for n := range 3000 {
		add(t, own, told(strings.Repeat("x", rand.IntN(400)), 1))
		if n%1000 == 0 {
			add(t, own, told(strings.Repeat("huge", largestBody), 1))
		}
	}
	check(t, own.Close())
	group.Wait()
	check(t, err)
	check(t, cmd.Wait())
	if want := stored(t, s, "x", 1); string(got) != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

// TestFollowingEndsWithTheSession: with its writer, and when it is deleted.
func TestFollowingEndsWithTheSession(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	r, err := s.Reader("x", 1, true)
	check(t, err)
	defer r.Close()
	_, err = r.Next(t.Context())
	check(t, err)
	short, cancel := context.WithTimeout(t.Context(), 2*lookForWriter)
	defer cancel()
	if _, err := r.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended before its writer: %v", err)
	}
	check(t, own.Close())
	check(t, s.Delete(t.Context(), "x"))
	again := create(t, s, "x") // another one has its name and a writer
	defer again.Close()
	long, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if _, err := r.Next(long); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

// TestATornLineIsReadAnew: a reader that has seen half a line does not glue it to what the next writer wrote in its
// place.
func TestATornLineIsReadAnew(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, told("one", 1))
	half, err := Entry{Number: 3, Parent: 1, Record: told("torn", 1)}.line()
	check(t, err)
	_, err = own.file.Write(half[:len(half)/2])
	check(t, err)
	r, err := s.Reader("x", 1, true)
	check(t, err)
	defer r.Close()
	for range 2 {
		_, err := r.Next(t.Context())
		check(t, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*lookAgain)
	defer cancel()
	_, err = r.Next(short)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	_ = own.abandon() // killed
	own = resume(t, s, "x")
	if d := own.State().Damage; len(d) != 1 || d[0].Size != len(half)/2 || d[0].Reason != cutAway ||
		own.State().Damaged != 0 {
		t.Errorf("%+v", d)
	}
	add(t, own, told("two", 1))
	e, err := r.Next(t.Context())
	if check(t, err); e.Number != 3 || e.Event() == nil || e.Event().Text != "two" {
		t.Errorf("%+v", e)
	}
}

// TestOnlyOneWrites: the second is told who holds the session, and since when.
func TestOnlyOneWrites(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	for _, try := range []func() error{
		func() error { _, err := s.Resume(t.Context(), "x"); return err },
		func() error { return s.Delete(t.Context(), "x") },
	} {
		f := wantCode(t, try(), fault.Conflicting)
		if f.Detail["holder_pid"] != os.Getpid() || f.Detail["holder_since"] == nil || f.Kind() != fault.Conflict ||
			!strings.Contains(f.Message, " since 20") {
			t.Errorf("%v %v", f, f.Detail)
		}
		if runtime.GOOS == "linux" && (f.Detail["holder_started"] == nil || f.Detail["holder_boot"] == nil) {
			t.Errorf("%v", f.Detail)
		}
	}
	if by, open := s.Writer("x"); !open || by.PID != os.Getpid() || by.Since.IsZero() {
		t.Errorf("%v %+v", open, by)
	}
	check(t, own.Close())
	if by, open := s.Writer("x"); open {
		t.Errorf("%+v", by)
	}
	// A number of a process that is used again holds nothing: the lock is the kernel's.
	check(t, os.WriteFile(s.file("x", lockEnding),
		[]byte(fmt.Sprintf(`{"pid":%d,"since":"2026-01-01T00:00:00Z"}`, os.Getppid())), 0o600))
	if _, open := s.Writer("x"); open {
		t.Error("a process is taken for the holder by its number")
	}
	resume(t, s, "x")
}
