package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
)

func newLog(t *testing.T, o Options) *Log {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "state", "audit.jsonl")
	}
	return Open(o)
}

func entry(n int) Entry {
	return Entry{
		Timestamp: time.Date(2026, 1, 2, 3, 4, n, 0, time.UTC), RequestID: fmt.Sprintf("r%d", n), Command: "run",
		Args: []string{"run"},
		Cwd:  "/w", Danger: "safe", Operator: "agent", ToolVersion: "1.0.0", PID: 7,
	}
}

func mustWrite(t *testing.T, l *Log, entries ...Entry) {
	t.Helper()
	for _, e := range entries {
		if err := l.Write(e); err != nil {
			t.Fatal(err)
		}
	}
}

func all(t *testing.T, l *Log, f Filter) (ids []string) {
	t.Helper()
	for e, err := range l.Entries(f) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.RequestID)
	}
	return ids
}

func TestLineIsAsPromised(t *testing.T) {
	l := newLog(t, Options{})
	e := Entry{
		Timestamp: time.Date(2026, 1, 2, 4, 4, 5, 6000000, time.FixedZone("x", 3600)), RequestID: "r1", TraceID: "t1",
		Command: "run",
		Args:    []string{"run", "--token", "hunter2", "<a>"}, Cwd: "/w", ExitCode: 2, ErrorCode: "VALIDATION_ERROR",
		DurationMS: 5,
		Danger:     "safe", Effect: "none", Reversible: true, Operator: "agent", InstanceID: "i", ToolVersion: "1.0.0",
		PID: 7,
	}
	mustWrite(t, l, e, Entry{Command: "x"})
	if e.Args[2] != "hunter2" {
		t.Error("the caller's arguments were changed")
	}
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(string(text), "\n")
	first, link, _ := strings.Cut(first, `,"seq"`)
	if !strings.HasPrefix(link, `:1,"prev_hash":"","hash":"`) || !strings.Contains(second, `,"seq":2,"prev_hash":"`) {
		t.Errorf("the chain: %s", text)
	}
	want := `{"timestamp":"2026-01-02T03:04:05.006Z","request_id":"r1","trace_id":"t1","command":"run","args":["run","--token","[REDACTED]","<a>"],` +
		`"cwd":"/w","exit_code":2,"error_code":"VALIDATION_ERROR","duration_ms":5,"danger":"safe","effect":"none","reversible":true,` +
		`"operator":"agent","instance_id":"i","tool_version":"1.0.0","pid":7`
	if first != want {
		t.Errorf("\n got %s\nwant %s", first, want)
	}
	for _, absent := range []string{"trace_id", "error_code", "effect", "instance_id"} {
		if strings.Contains(second, absent) {
			t.Errorf("empty %s in %s", absent, second)
		}
	}
	if !strings.Contains(second, `"args":[]`) || strings.Contains(second, "0001-01-01") {
		t.Errorf("%s", second)
	}
	if runtime.GOOS != "windows" {
		if info, _ := os.Stat(l.path); info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
	}
}

func TestLongArgumentsAreCutAfterRedaction(t *testing.T) {
	l := newLog(t, Options{})
	secret := "ghp_" + strings.Repeat("Ab1", 12)
	long := strings.Repeat("é", maxArg/2-8) + " " + secret + strings.Repeat(" x", 1<<20)
	args := []string{long, "--password", strings.Repeat("p", 1<<20)}
	for range 50000 {
		args = append(args, "a\x00\xff")
	}
	mustWrite(t, l, Entry{Command: "run", Args: args, Cwd: strings.Repeat("d", 1<<20)})
	info, err := os.Stat(l.path)
	if err != nil || info.Size() > 64<<10 {
		t.Fatalf("%d bytes, %v", info.Size(), err)
	}
	for e, err := range l.Entries(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		joined := strings.Join(e.Args, " ")
		if len(e.Args[0]) > maxArg || !strings.Contains(e.Args[0], "…[+") || strings.Contains(joined, "ghp_A") ||
			strings.Contains(joined, "ppp") {
			t.Errorf("%.200q", joined)
		}
		if last := e.Args[len(e.Args)-1]; !strings.HasPrefix(last, "…[+") || !strings.HasSuffix(last, " arguments]") {
			t.Errorf("last is %q", last)
		}
	}
}

func TestFilter(t *testing.T) {
	l := newLog(t, Options{MaxBytes: 500, Keep: 100})
	for n := range 20 {
		e := entry(n)
		e.Command = []string{"run", "config set", "config", "runner"}[n%4]
		e.TraceID = []string{"a", "b"}[n%2]
		mustWrite(t, l, e)
	}
	if len(l.Files()) < 5 {
		t.Fatalf("files: %q", l.Files())
	}
	if got := all(t, l, Filter{}); len(got) != 20 || got[0] != "r0" || got[19] != "r19" {
		t.Errorf("all: %q", got)
	}
	since := time.Date(2026, 1, 2, 3, 4, 10, 0, time.UTC)
	if got := all(t, l, Filter{Since: since, Command: "config"}); !reflect.DeepEqual(got,
		[]string{"r10", "r13", "r14", "r17", "r18"}) {
		t.Errorf("since, command: %q", got)
	}
	if got := all(t, l, Filter{Command: "run", TraceID: "a"}); len(got) != 5 {
		t.Errorf("command, trace: %q", got)
	}
	for range l.Entries(Filter{}) {
		break // must close what it opened and not panic
	}
}

func TestReaderGetsOverAnything(t *testing.T) {
	l := newLog(t, Options{})
	mustWrite(t, l, entry(0))
	good, _ := os.ReadFile(l.path)
	var b strings.Builder
	b.Write(good)
	b.WriteString("\n{\"timestamp\":\"2026-01-02T03:04:05Z\",\"comm\n\x00\xff\n[]\nnull\n{}\n")
	b.WriteString(strings.Repeat("x", maxLine+1) + "\n")
	b.Write(good)
	b.WriteString(strings.Repeat(" ", 3<<20) + "\n")
	b.Write(good[:len(good)/2])
	if err := os.WriteFile(l.path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	skipped := 0
	if got := all(t, l, Filter{Skipped: &skipped}); len(got) != 2 || skipped != 8 {
		t.Errorf("%q, %d skipped", got, skipped)
	}
	mustWrite(t, l, entry(1)) // heals the torn line
	skipped = 0
	if got := all(t, l, Filter{Skipped: &skipped}); len(got) != 3 || skipped != 8 {
		t.Errorf("after healing: %q, %d skipped", got, skipped)
	}
}

func TestRotationKeepsAndPrunes(t *testing.T) {
	l := newLog(t, Options{MaxBytes: 1, Keep: 3})
	for n := range 10 {
		mustWrite(t, l, entry(n))
	}
	if got := all(t, l, Filter{}); !reflect.DeepEqual(got, []string{"r6", "r7", "r8", "r9"}) {
		t.Errorf("%q", got)
	}
	// A gap, as a killed rotation leaves it, is filled; nothing is overwritten.
	if err := os.Remove(l.numbered(2)); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, l, entry(10))
	if got := all(t, l, Filter{}); !reflect.DeepEqual(got, []string{"r6", "r8", "r9", "r10"}) {
		t.Errorf("%q", got)
	}
	// Names that only look like ours are nobody's business.
	foreign := filepath.Join(filepath.Dir(l.path), "audit.007.jsonl")
	if err := os.WriteFile(foreign, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-40 * 24 * time.Hour)
	for _, path := range []string{foreign, l.numbered(3), l.numbered(2)} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	again := Open(Options{Path: l.path})
	mustWrite(t, again, entry(11))
	if exists(l.numbered(4)) || !exists(foreign) {
		t.Errorf("%q", again.Files())
	}
	for e, err := range again.Entries(Filter{}) {
		if err != nil || e.RequestID == "r6" || e.RequestID == "r8" {
			t.Errorf("%v, %v", e.RequestID, err)
		}
	}
}

func TestSixthRotatedFileGoes(t *testing.T) {
	l := newLog(t, Options{MaxBytes: 1})
	for n := range 9 {
		mustWrite(t, l, entry(n))
	}
	if got := all(t, l, Filter{}); !reflect.DeepEqual(got, []string{"r3", "r4", "r5", "r6", "r7", "r8"}) ||
		exists(l.numbered(6)) {
		t.Errorf("%q in %q", got, l.Files())
	}
}

// A log that never fills is rotated by age, so that MaxAge holds for it too.
func TestOldEntriesOfASmallLogGo(t *testing.T) {
	day := 24 * time.Hour
	start := time.Now()
	path := newLog(t, Options{}).path
	at := func(age time.Duration, id string) *Log {
		l := Open(Options{Path: path})
		l.now = func() time.Time { return start.Add(age) }
		mustWrite(t, l, Entry{Timestamp: start.Add(age), RequestID: id, Command: "run", PID: 1})
		if err := os.Chtimes(path, start.Add(age), start.Add(age)); err != nil {
			t.Fatal(err)
		}
		return l
	}
	at(0, "a")
	at(10*day, "b")
	if got := Open(Options{Path: path}).Files(); len(got) != 1 {
		t.Fatalf("%q", got)
	}
	l := at(16*day, "c") // a is older than half of 30 days
	if got := l.Files(); len(got) != 2 {
		t.Fatalf("%q", got)
	}
	if got := all(t, l, Filter{}); !reflect.DeepEqual(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
	l = at(45*day, "d") // the file of a and b was changed 35 days ago, that of c 29
	if got := all(t, l, Filter{}); !reflect.DeepEqual(got, []string{"c", "d"}) {
		t.Errorf("%q", got)
	}
}

func TestCheck(t *testing.T) {
	l := newLog(t, Options{})
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(l.path)); err != nil || len(entries) != 0 {
		t.Fatalf("%v, %v", entries, err)
	}
	mustWrite(t, l, entry(0))
	before, _ := os.ReadFile(l.path)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(l.path); string(after) != string(before) {
		t.Error("Check wrote")
	}
	if err := Open(Options{Path: t.TempDir()}).Check(); !errors.Is(err, fault.Unsafe) {
		t.Errorf("a directory: %v", err)
	}
	if err := Open(Options{}).Check(); !errors.Is(err, fault.NoHome) {
		t.Errorf("no path: %v", err)
	}
	if err := Open(Options{}).Write(entry(0)); !errors.Is(err, fault.NoHome) {
		t.Errorf("no path: %v", err)
	}
	beneath := Open(Options{Path: filepath.Join(l.path, "audit.jsonl")})
	for _, err := range []error{beneath.Check(), beneath.Write(entry(0))} {
		var f *fault.Fault
		if !errors.As(err, &f) || f.Suggestion == "" {
			t.Errorf("beneath a file: %v", err)
		}
	}
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		return // permissions stop neither
	}
	locked := newLog(t, Options{})
	if err := os.MkdirAll(filepath.Dir(locked.path), 0o500); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{locked.Check(), locked.Write(entry(0))} {
		if !errors.Is(err, fault.PermissionDenied) {
			t.Errorf("read-only directory: %v", err)
		}
	}
}

func TestFullDiskIsAnErrorAndNothingElse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	l := Open(Options{Path: "/dev/full"})
	for _, err := range []error{l.Check(), l.Write(entry(0))} {
		var f *fault.Fault
		if !errors.As(err, &f) || f.Suggestion == "" {
			t.Errorf("%v", err)
		}
	}
	dir := t.TempDir()
	if err := mountTiny(dir); err != nil {
		t.Logf("no tmpfs: %v", err)
		return
	}
	t.Cleanup(func() { _ = unmount(dir) })
	l = Open(Options{Path: filepath.Join(dir, "audit.jsonl"), MaxBytes: -1})
	written, failed := 0, error(nil)
	for n := 0; n < 10000 && failed == nil; n++ {
		if failed = l.Write(entry(n % 60)); failed == nil {
			written++
		}
	}
	var f *fault.Fault
	if !errors.As(failed, &f) || !errors.Is(failed, syscall.ENOSPC) {
		t.Fatalf("%v after %d", failed, written)
	}
	if got := all(t, l, Filter{}); len(got) != written {
		t.Errorf("%d entries of %d", len(got), written)
	}
	if r := verify(t, l); r.Fault() != nil || r.Entries != written {
		t.Errorf("on the full disk: %+v", r)
	}
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(l.path, int64(len(text)/2)); err != nil { // space again, and a torn line
		t.Fatal(err)
	}
	mustWrite(t, l, entry(1))
	if got := all(t, l, Filter{}); got[len(got)-1] != "r1" {
		t.Errorf("%q", got)
	}
}

func TestLinesAreJSON(t *testing.T) {
	l := newLog(t, Options{})
	e := entry(0)
	e.Args = []string{"a\nb\r\u2028\x00", "\xff\xfe"}
	e.Timestamp = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)
	mustWrite(t, l, e)
	text, _ := os.ReadFile(l.path)
	if strings.Count(string(text), "\n") != 1 || !json.Valid(text) {
		t.Errorf("%q", text)
	}
}

func BenchmarkCheck(b *testing.B) {
	l := Open(Options{Path: filepath.Join(b.TempDir(), "audit.jsonl")})
	if err := l.Write(entry(0)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_ = l.Check()
	}
}

func BenchmarkOpenAndWrite(b *testing.B) {
	path := filepath.Join(b.TempDir(), "audit.jsonl")
	for b.Loop() {
		if err := Open(Options{Path: path}).Write(entry(0)); err != nil {
			b.Fatal(err)
		}
	}
}
