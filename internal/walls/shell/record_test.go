package shell

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"

	"omniagent/internal/kit/text"
)

// printed is the text of one stream that was written in the given pieces.
func printed(t *testing.T, pieces ...string) string {
	t.Helper()
	r := newRecord(&spills{given: t.TempDir()})
	for _, p := range pieces {
		_, err := r.to(&r.out).Write([]byte(p))
		if err != nil {
			t.Fatal(err)
		}
	}
	r.finish()
	out, _ := r.text()
	r.discard()
	return out
}

func TestTextIsCleanWhereverItIsCut(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n":                                  "plain\n",
		"a\r\nb\r\n":                               "a\nb\n",
		" 10%\r 50%\r100%\n":                       "100%\n",
		"\r 10%\r 50%\r100%\r":                     "100%",
		"spin |\b/\b-\bdone\n":                     "spin done\n",
		"é\bx\b\b\b\n":                             "\n",
		"\x1b[1;31mred\x1b[0m\x1b[K\r\n":           "red\n",
		"\x1b]0;title\x07text\n":                   "text\n",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b(Bx\x1b[?25ly":                        "xy",
		"bad \xff\xfe, cut \xe2\x82":               "bad \uFFFD\uFFFD, cut \uFFFD\uFFFD",
		"nul\x00\x07bell":                          "nul\uFFFDbell",
		"\x1b]never ends":                          "never ends",
		"日本語 ok\n":                                 "日本語 ok\n",
	} {
		if got := printed(t, in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
		for cut := range in {
			if got := printed(t, in[:cut], in[cut:]); got != want {
				t.Errorf("%q cut at %d: got %q", in, cut, got)
			}
		}
	}
}

func TestOfALineThatIsReadEarlyNothingIsTakenBack(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"dots ....\n":                            "dots ....\n",
		"é日本\x1b[31mred\x1b[0m\n":                "é日本red\n",
		"\x1b]8;;http://x/y\x07link\x1b]8;;\x07": "link",
	} {
		for cut := range in {
			r := newRecord(&spills{given: t.TempDir()})
			w, j := r.to(&r.out), &job{record: r}
			_, _ = w.Write([]byte(in[:cut]))
			told, _ := j.unread(nil, false)
			_, _ = w.Write([]byte(in[cut:]))
			r.finish()
			rest, _ := j.unread(nil, true)
			told += rest
			if out, _ := r.text(); out != want || told != want {
				t.Errorf("%q cut at %d: %q, told %q", in, cut, out, told)
			}
		}
	}
	r := newRecord(&spills{})
	w, j := r.to(&r.out), &job{record: r}
	_, _ = w.Write([]byte("10%"))
	told, _ := j.unread(nil, false)
	_, _ = w.Write([]byte("\r20%\r30%\n"))
	if rest, _ := j.unread(nil, false); told+rest != "10%\n30%\n" {
		t.Errorf("%q, %q", told, rest)
	}
}

func TestShownIsTheBeginningAndTheEnd(t *testing.T) {
	t.Parallel()
	property := func(line uint16, lines uint16, pieces uint8, wide bool) bool {
		unit := "x"
		if wide {
			unit = "語"
		}
		all := strings.Repeat(strings.Repeat(unit, int(line%3000))+"\n",
			int(lines%3000)%(1+4_000_000/(len(unit)*(1+int(line%3000)))))
		var parts []string
		size := len(all)/(1+int(pieces)) + 1
		for at := 0; at < len(all); at += size {
			parts = append(parts, all[at:min(len(all), at+size)])
		}
		got := printed(t, parts...)
		if utf8.RuneCountInString(all) <= MaxShown && len(all) < maxHead {
			return got == all
		}
		head, rest, ok := strings.Cut(got, "[")
		note, tail, ok2 := strings.Cut(rest, "]\n")
		var left, total int
		_, err := fmt.Sscanf(note, "%d of %d bytes", &left, &total)
		trimmed := strings.TrimSuffix(head, "\n") // one that we added
		return ok && ok2 && err == nil && total == len(all) && left > 0 && strings.HasPrefix(all, trimmed) &&
			strings.HasSuffix(all, tail) &&
			utf8.ValidString(got) && utf8.RuneCountInString(got) <= MaxShown+400 &&
			utf8.RuneCountInString(head+tail) > MaxShown-2*nearby-10
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 25}); err != nil {
		t.Error(err)
	}
}

// TestEndlessOutputIsBounded writes more than is kept, in lines and without any.
func TestEndlessOutputIsBounded(t *testing.T) { // alone, since it measures the memory of the process
	const most = 5 << 20
	for name, block := range map[string]string{
		"lines":    strings.Repeat(strings.Repeat("y", 63)+"\n", 1<<14),
		"no lines": strings.Repeat("y", 1<<20),
		"bars":     strings.Repeat("\r 55% of something", 1<<16),
		"rubbish":  strings.Repeat("\xff\x1b[", 1<<19),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := newRecord(&spills{given: dir, most: most})
			w := r.to(&r.out)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for n := 0; n < 16<<20; n += len(block) {
				for p := []byte(block); len(p) > 0; p = p[min(32<<10, len(p)):] {
					_, _ = w.Write(p[:min(32<<10, len(p))])
				}
			}
			_, _ = w.Write([]byte("\nthe end\n"))
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
				t.Errorf("%d bytes are held", grown)
			}
			out, _ := r.text()
			if !strings.HasSuffix(out, "the end\n") || utf8.RuneCountInString(out) > MaxShown+400 ||
				!utf8.ValidString(out) {
				t.Errorf("%d characters, ends in %q", utf8.RuneCountInString(out), out[max(0, len(out)-40):])
			}
			if name == "lines" {
				if info, err := r.out.file.Stat(); err != nil || info.Size() != most ||
					!strings.Contains(out, fmt.Sprintf("the first %d bytes are in %s", most, dir)) {
					t.Errorf("%v %v", info, err)
				}
			}
			r.discard()
		})
	}
}

func TestOutputThatCannotBeKeptIsSaid(t *testing.T) {
	t.Parallel()
	r := newRecord(&spills{given: t.TempDir() + "/none"})
	w := r.to(&r.out)
	for n := range 50_000 {
		fmt.Fprintln(w, n)
	}
	out, _ := r.text()
	if !strings.Contains(out, "could not be kept: ") || !strings.HasPrefix(out, "0\n1\n") ||
		!strings.HasSuffix(out, "\n49999\n") {
		t.Errorf("%q", out[:200])
	}
	var to stream
	to.of = &r.out
	if r.out.since(100, &to, nil, true) != r.out.size ||
		!strings.Contains(to.excerpt(MaxShown), "could not be kept: ") {
		t.Errorf("%.200q", to.excerpt(MaxShown))
	}
}

func TestOldFilesMakeRoom(t *testing.T) {
	t.Parallel()
	s := &spills{given: t.TempDir()}
	var names []string
	for n := range 6 {
		f, err := s.create("stdout")
		if err == nil {
			err = errors.Join(f.Truncate(maxSpill-1), f.Close()) // no block of it is on the disk
			s.release(f.Name())
		}
		if err != nil {
			t.Fatal(n, err)
		}
		names = append(names, f.Name())
	}
	for n, name := range names {
		if _, err := os.Stat(name); (err == nil) != (n >= 2) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func FuzzStreams(f *testing.F) {
	f.Add([]byte("a\r\nb\x1b[31m\bc\xff\n"), uint8(3))
	f.Add([]byte("\x1b]8;;\x1b\\\r\r\b"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		r := newRecord(&spills{given: t.TempDir()})
		w, j, told := r.to(&r.out), &job{record: r}, ""
		for p := range slices.Chunk(data, 1+int(size)) {
			_, _ = w.Write(p)
			if size%2 == 0 {
				piece, _ := j.unread(nil, false)
				told += piece
			}
		}
		r.finish()
		piece, _ := j.unread(nil, true)
		told += piece
		out, _ := r.text()
		if clean, _ := text.Clean(out); clean != out && len(data) < MaxShown/4 {
			t.Errorf("%q is not clean", out)
		}
		if size%2 == 0 && len(data) < MaxShown/4 && told != out {
			t.Errorf("told %q, shown %q", told, out)
		}
		r.discard()
	})
}

// TestRoomIsMadeOfWhatNobodyNeeds: a file that a record still has open stays, however old and large.
func TestRoomIsMadeOfWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	s := &spills{given: t.TempDir()}
	long := strings.Repeat("x", MaxShown+1)
	var records []*commandOutput
	for range 6 {
		r := newRecord(s)
		r.write(&r.out, []byte(long+"\n"))
		if r.out.file == nil {
			t.Fatal(r.out.failed)
		}
		if err := os.Truncate(r.out.file.Name(), maxSpill); err != nil { // a hole: it takes no room
			t.Fatal(err)
		}
		if _, err := r.text(); err != "" {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	exist := func() (all []bool) {
		for _, f := range records {
			_, err := os.Stat(f.out.name)
			all = append(all, err == nil)
		}
		return all
	}
	for _, r := range records { // the stream forgets its file when it is closed
		r.out.name = r.out.file.Name()
	}
	if got := exist(); slices.Contains(got, false) {
		t.Fatalf("files that are written are gone: %v", got)
	}
	records[1].discard()
	records[4].discard()
	s.mu.Lock()
	s.makeRoom()
	s.mu.Unlock()
	if got := exist(); !slices.Equal(got, []bool{true, false, true, true, false, true}) {
		t.Errorf("got %v", got)
	}
	for _, r := range records {
		r.discard()
	}
	s.mu.Lock()
	s.makeRoom()
	s.mu.Unlock()
	if got := exist(); !slices.Equal(got, []bool{false, false, true, true, false, true}) {
		t.Errorf("the oldest are not the first to go: %v", got)
	}
}

// TestLongSequences: what begins like an escape sequence is not waited for until its end comes, which may be never.
func TestLongSequences(t *testing.T) {
	for n, cut := range map[int]int{10: 1, maxSequence: 5 + maxSequence} {
		if got := cleanCut([]byte("a\x1b]0;" + strings.Repeat("x", n))); got != cut {
			t.Errorf("of a title of %d bytes %d are taken", n, got)
		}
	}
}
