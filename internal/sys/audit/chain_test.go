package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
)

func verify(t *testing.T, l *Log) Report {
	t.Helper()
	r, err := l.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// whole fails unless the log verifies with so many entries.
func whole(t *testing.T, l *Log, entries int) Report {
	t.Helper()
	r := verify(t, l)
	if r.Damaged != 0 || r.Fault() != nil || r.Entries != entries || !r.Complete {
		t.Fatalf("%+v", r)
	}
	return r
}

func linesOf(t *testing.T, path string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

func putLines(t *testing.T, path string, lines [][]byte) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChainOfAnUntouchedLog(t *testing.T) {
	l := newLog(t, Options{MaxBytes: 2000, Keep: 100})
	if r := verify(t, l); r.Damaged != 0 || r.Entries != 0 || r.Last != 0 {
		t.Errorf("no log: %+v", r)
	}
	for n := range 40 {
		mustWrite(t, l, entry(n))
	}
	r := whole(t, l, 40)
	if r.First != 1 || r.Last != 40 || r.Files < 5 || r.Before != 0 || len(r.Torn) != 0 || len(r.Head) != 64 {
		t.Errorf("%+v", r)
	}
	for e, err := range l.Entries(Filter{}) {
		if err != nil || e.RequestID != fmt.Sprintf("r%d", e.Seq-1) {
			t.Errorf("%+v, %v", e, err)
		}
	}
}

// Every manipulation, in one file and in several, at random places, is found at its line.
func TestManipulatedLinesAreFound(t *testing.T) {
	const entriesInLog = 30
	random := rand.New(rand.NewPCG(1, 2))
	limits := []int64{-1, 3000}
	var untouched []string // a directory with a log of each limit
	for _, limit := range limits {
		l := newLog(t, Options{MaxBytes: limit, Keep: 100})
		for n := range entriesInLog {
			mustWrite(t, l, entry(n))
		}
		untouched = append(untouched, filepath.Dir(l.path))
	}
	for name, change := range map[string]struct {
		kinds []string
		do    func(lines [][]byte, at int) [][]byte
		after bool // the damage may show at the line that has come to the place
	}{
		"deleted": {[]string{Missing, Truncated}, func(lines [][]byte, at int) [][]byte {
			return slices.Delete(lines, at, at+1)
		}, true},
		"doubled": {[]string{Misplaced}, func(lines [][]byte, at int) [][]byte {
			return slices.Insert(lines, at, bytes.Clone(lines[at]))
		}, true},
		"swapped": {[]string{Missing, Misplaced}, func(lines [][]byte, at int) [][]byte {
			other := (at + 1) % len(lines)
			lines[at], lines[other] = lines[other], lines[at]
			return lines
		}, true},
		"changed": {[]string{Changed, Truncated, Unchained}, func(lines [][]byte, at int) [][]byte {
			line := bytes.Clone(lines[at])
			place := len(`{"timestamp":"`) + random.IntN(len(line)-len(`{"timestamp":"`)-1)
			line[place] ^= 1
			lines[at] = line
			return lines
		}, false},
		"truncated": {[]string{Truncated, Changed}, func(lines [][]byte, at int) [][]byte {
			line := lines[at]
			cut := 1 + random.IntN(len(line)-3)
			lines[at] = append(bytes.Clone(line[:cut]), '\n')
			return lines
		}, false},
		"cut to its content": {[]string{Unchained, Missing}, func(lines [][]byte, at int) [][]byte {
			line := lines[at]
			lines[at] = append(bytes.Clone(line[:bytes.Index(line, []byte(`,"seq":`))]), "}\n"...)
			return lines
		}, true},
		"replaced by other text": {[]string{Changed}, func(lines [][]byte, at int) [][]byte {
			lines[at] = []byte("nothing to see\n")
			return lines
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 20 {
				l := newLog(t, Options{MaxBytes: limits[round%2], Keep: 100})
				if err := os.CopyFS(filepath.Dir(l.path), os.DirFS(untouched[round%2])); err != nil {
					t.Fatal(err)
				}
				files := l.Files()
				if len(files) > 1 {
					files = files[:len(files)-1] // the last file may have one line only
				}
				path := files[random.IntN(len(files))]
				old := linesOf(t, path)
				if last := len(old) - 1; !bytes.HasSuffix(old[last], []byte("\n")) {
					old[last] = append(bytes.Clone(old[last]), '\n')
				}
				at := random.IntN(len(old))
				putLines(t, path, change.do(old, at))
				r := verify(t, l)
				if !errors.Is(r.Fault(), fault.AuditDamaged) {
					t.Fatalf("line %d of %d: not found: %+v", at+1, len(old), r)
				}
				near := slices.ContainsFunc(r.Damage, func(d Damage) bool {
					exact := d.File == path && d.Line == at+1
					// without the line the file ends before it, or the next one begins behind it
					moved := change.after && (d.Line == 1 || d.File == path && (d.Line == at || d.Line == at+2))
					return slices.Contains(change.kinds, d.Kind) && (exact || moved)
				})
				if !near {
					t.Errorf("line %d of %d in %s: %+v", at+1, len(old), path, r.Damage)
				}
				mustWrite(t, l, entry(0)) // later writers go on, and the damage stays visible
				if again := verify(t, l); again.Fault() == nil || again.Last != entriesInLog+1 {
					t.Errorf("after another entry: %+v", again)
				}
			}
		})
	}
}

func TestRemovedEndIsNoticed(t *testing.T) {
	l := newLog(t, Options{})
	for n := range 9 {
		mustWrite(t, l, entry(n))
	}
	lines := linesOf(t, l.path)
	putLines(t, l.path, lines[:6])
	r := verify(t, l)
	want := Damage{
		Place{l.path, 6}, Truncated, "the entries 7 to 9 are missing behind this line",
	}
	if r.Complete || len(r.Damage) != 1 || r.Damage[0] != want {
		t.Errorf("%+v", r)
	}
	mustWrite(t, l, entry(9))
	if r := verify(t, l); len(r.Damage) != 1 || r.Damage[0].Line != 7 || r.Damage[0].Kind != Missing || r.Last != 10 {
		t.Errorf("after another entry: %+v", r)
	}
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, l); r.Fault() == nil || r.Damage[0].Kind != Truncated {
		t.Errorf("without the file: %+v", r)
	}
	other := newLog(t, Options{})
	mustWrite(t, other, entry(0))
	if err := os.Remove(other.headPath()); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, other); r.Fault() == nil || r.Damage[0].File != other.headPath() {
		t.Errorf("without the head: %+v", r)
	}
	mustWrite(t, other, entry(1))
	whole(t, other, 2)
}

// A last line that was written again, with a hash that fits, is found by the head.
func TestRewrittenEndIsNoticed(t *testing.T) {
	l := newLog(t, Options{})
	mustWrite(t, l, entry(0), entry(1))
	lines := linesOf(t, l.path)
	k, _ := linkOf(bytes.TrimSpace(lines[0]))
	plain, err := l.line(entry(5))
	if err != nil {
		t.Fatal(err)
	}
	forged, _ := k.chained(plain)
	putLines(t, l.path, [][]byte{lines[0], append(forged, '\n')})
	if r := verify(t, l); len(r.Damage) != 1 || r.Damage[0].Line != 2 || r.Damage[0].Kind != Changed {
		t.Errorf("%+v", r)
	}
	mustWrite(t, l, entry(2))
	if r := verify(t, l); r.Fault() == nil {
		t.Errorf("after another entry: %+v", r)
	}
}

func TestRetentionLeavesAVerifiableRest(t *testing.T) {
	l := newLog(t, Options{MaxBytes: 1, Keep: 3})
	for n := range 10 {
		mustWrite(t, l, entry(n))
	}
	if r := whole(t, l, 4); r.First != 7 || r.Last != 10 {
		t.Errorf("%+v", r)
	}
	if err := l.Remove(l.numbered(1)); !errors.Is(err, fault.Conflicting) {
		t.Errorf("a file in the middle: %v", err)
	}
	if err := l.Remove(l.numbered(3)); err != nil {
		t.Fatal(err)
	}
	if r := whole(t, l, 3); r.First != 8 {
		t.Errorf("%+v", r)
	}
	old := time.Now().Add(-40 * 24 * time.Hour)
	if err := os.Chtimes(l.numbered(2), old, old); err != nil {
		t.Fatal(err)
	}
	again := Open(Options{Path: l.path})
	mustWrite(t, again, entry(10))
	if r := whole(t, again, 3); r.First != 9 || r.Last != 11 {
		t.Errorf("%+v", r)
	}
	// A rest whose oldest file somebody else removed does not verify.
	if err := os.Remove(again.Files()[0]); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, again); len(r.Damage) != 1 || r.Damage[0].Kind != Missing || r.Damage[0].Line != 1 {
		t.Errorf("%+v", r)
	}
}

// Lines without a hash were written by versions before.
func TestChainBeginsBehindOldLines(t *testing.T) {
	l := newLog(t, Options{})
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		t.Fatal(err)
	}
	var old []byte
	for n := range 5 {
		e := entry(n)
		e.Timestamp = time.Now()
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		old = append(append(old, line...), '\n')
	}
	if err := os.WriteFile(l.path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, l); r.Damaged != 0 || r.Before != 5 || r.Entries != 0 {
		t.Errorf("%+v", r)
	}
	mustWrite(t, l, entry(5), entry(6))
	if r := whole(t, l, 2); r.Before != 5 || r.First != 1 || r.Last != 2 {
		t.Errorf("%+v", r)
	}
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(old[:bytes.IndexByte(old, '\n')+1])
		_ = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, l, entry(7))
	if r := verify(t, l); len(r.Damage) != 1 || r.Damage[0].Line != 8 || r.Damage[0].Kind != Unchained || r.Last != 3 {
		t.Errorf("%+v", r)
	}
}

// A writer that dies in the middle of a line, or a full disk, leaves a torn line and no gap.
func TestTornLineIsNamed(t *testing.T) {
	l := newLog(t, Options{})
	mustWrite(t, l, entry(0))
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(`{"timestamp":"2026-01-02T03:04:05Z","requ`)
		_ = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []Place{{l.path, 2}}
	if r := whole(t, l, 1); !slices.Equal(r.Torn, want) {
		t.Errorf("%+v", r)
	}
	mustWrite(t, l, entry(1))
	if r := whole(t, l, 2); !slices.Equal(r.Torn, want) {
		t.Errorf("%+v", r)
	}
}

// Writers that are killed at any moment leave a log that verifies.
func TestChainSurvivesKilledWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := Open(Options{Path: path, MaxBytes: 20 << 10, Keep: -1})
	for round := range 8 {
		var cmds []*exec.Cmd
		for p := range 3 {
			cmd, stdin, stdout := start(t, path, fmt.Sprintf("%d-%d", round, p), 20<<10, 0)
			_ = stdin.Close()
			go func() { _, _ = stdout.Read(make([]byte, 1<<16)) }()
			cmds = append(cmds, cmd)
		}
		mustWrite(t, l, entry(round)) // one more writer among them
		for _, cmd := range cmds {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if r := verify(t, l); r.Fault() != nil || r.Entries != int(r.Last) {
			t.Fatalf("round %d: %+v", round, r)
		}
	}
	mustWrite(t, l, entry(0))
	whole(t, l, int(verify(t, l).Last))
}

// A stopped process that holds the lock costs the hash, not the entry.
func TestEntryIsWrittenWithoutTheLock(t *testing.T) {
	t.Parallel() // it waits for the lock
	l := newLog(t, Options{})
	mustWrite(t, l, entry(0))
	held, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, l, entry(1))
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, l, entry(2))
	if got := all(t, l, Filter{}); strings.Join(got, " ") != "r0 r1 r2" {
		t.Errorf("%q", got)
	}
	if r := verify(t, l); len(r.Damage) != 1 || r.Damage[0].Line != 2 || r.Damage[0].Kind != Unchained {
		t.Errorf("%+v", r)
	}
}

func BenchmarkVerify(b *testing.B) {
	l := Open(Options{Path: filepath.Join(b.TempDir(), "audit.jsonl")})
	for n := range 1000 {
		if err := l.Write(entry(n % 60)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if r, err := l.Verify(context.Background()); err != nil || r.Entries != 1000 {
			b.Fatal(strconv.Itoa(r.Entries), err)
		}
	}
}
