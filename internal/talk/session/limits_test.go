package session

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// zeros is a file of that many bytes without a newline.
type zeros int64

func (z zeros) ReadAt(p []byte, at int64) (int, error) {
	if left := int64(z) - at; left <= int64(len(p)) {
		return int(max(0, left)), io.EOF
	}
	return len(p), nil
}

// TestLineWithoutEndCostsNoMemory: a journal whose newlines something has removed is read without being held.
func TestLineWithoutEndCostsNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	j, err := readJournal(zeros(3*longestLine), "")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err != nil || used > 4*longestLine || len(j.places) != 0 {
		t.Errorf("%d MiB, %d records, %v", used>>20, len(j.places), err)
	}
}

// TestMuchDamage: a damaged line is not searched for ever, and of much damage not each place is listed.
func TestMuchDamage(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, user("one"))
	check(t, own.Close())
	data, err := os.ReadFile(s.file("x", journalEnding))
	check(t, err)
	record, _, _ := strings.Cut(string(data), "\n")
	for n, records := range map[int]int{mostTries - 1: 1, mostTries: 0} {
		found := 0
		for _, p := range pieces([]byte(strings.Repeat(recordStart, n) + record)) {
			if p.reason == "" {
				found++
			}
		}
		if found != records {
			t.Errorf("%d records behind %d beginnings of none", found, n)
		}
	}
	j := &journal{}
	for range 3 * mostDamage {
		j.note(Damaged{})
	}
	if n := len(j.list()); n > mostDamage || j.broken() != 3*mostDamage {
		t.Errorf("%d of %d places are listed", n, j.broken())
	}
}

// TestManyOpenTurns: a journal with the beginnings of very many turns, as no conversation writes, is not read to its
// beginning.
func TestManyOpenTurns(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	for turn := range int64(2 * mostOpenTurns) {
		add(t, own, Logged{&event.Event{Kind: event.TurnBegan, Turn: turn + 1}})
	}
	check(t, own.Close())
	if n := len(resume(t, s, "x").State().Unfinished); n > mostOpenTurns+1 {
		t.Errorf("%d turns", n)
	}
}

// TestLongHistory: a file of any size is not held in memory.
func TestLongHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	check(t, os.WriteFile(file, []byte("[]"), 0o600))
	check(t, os.Truncate(file, mostHistory+1)) // the rest is a hole
	if _, err := ReadHistory(file); fault.Of(err).Code != fault.FieldTooLarge {
		t.Error(err)
	}
}

// TestLongKinds: a name that no version gives to a kind is not one.
func TestLongKinds(t *testing.T) {
	if !nameable([]byte(strings.Repeat("a", longestName))) || nameable([]byte(strings.Repeat("a", longestName+1))) {
		t.Error("the limit is another one")
	}
}
