package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
)

// harmed is a journal with something done to it.
type harmed struct {
	data     []byte
	from, to int // of the bytes that are not what they were, in the file as it was
	kind     string
}

// harm does one thing to a file.
func harm(t *rapid.T, data []byte) harmed {
	from := rapid.IntRange(0, len(data)-1).Draw(t, "from")
	to := min(len(data), from+rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 5000)).Draw(t, "length"))
	h := harmed{
		bytes.Clone(data), from, to,
		rapid.SampledFrom([]string{"cut", "tail", "zeroed", "zeroed tail", "doubled", "flipped", "newline"}).Draw(t,
			"harm"),
	}
	switch h.kind {
	case "cut": // a piece is missing
		h.data = slices.Delete(h.data, from, to)
	case "tail": // its end is missing
		h.data, h.to = h.data[:from], len(data)
	case "zeroed":
		clear(h.data[from:to])
	case "zeroed tail":
		clear(h.data[from:])
		h.to = len(data)
	case "doubled":
		h.data = slices.Concat(data[:to], data[from:to], data[to:])
		h.from = to // nothing is missing; a line that the second piece lies in is torn in two
	case "flipped":
		h.data[from] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		h.to = from + 1
	case "newline":
		h.data[from] = '\n'
		h.to = from + 1
	}
	return h
}

// whole are the numbers of the lines of a file that a harm did not touch, with their lines.
func (h harmed) untouched(data []byte) map[int64]string {
	lines := map[int64]string{}
	at := 0
	for line := range strings.Lines(string(data)) {
		end := at + len(line) - 1 // without its newline, which nothing in the record depends on
		if end <= h.from || at >= h.to {
			if head, ok := whole([]byte(strings.TrimSuffix(line, "\n"))); ok {
				lines[head.number] = strings.TrimSuffix(line, "\n")
			}
		}
		at += len(line)
	}
	return lines
}

// TestHarmIsFoundAndTheRestIsUsed: whatever happens to a piece of the file, every record outside of it is read, nothing
// else is, what is wrong is told with its place, opening it for writing changes no byte but a torn end, and what is
// appended follows.
func TestHarmIsFoundAndTheRestIsUsed(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	hostile := `{"n":9,"p":8,"k":"end","t":"2026-01-02T02:04:05.006Z","d":{"ok":true}}`
	for turn := int64(1); turn <= 6; turn++ {
		add(t, own, prompted("do it\n"+hostile, turn))
		add(t, own, user("do it"))
		add(t, own, told("I "+strings.Repeat("do ", int(turn)*7), turn))
		add(t, own,
			Logged{&event.Event{Kind: event.ToolCall, Turn: turn, Call: &event.Call{ID: "c", Input: []byte(hostile)}}})
		add(t, own, Message{Message: model.Message{
			Role:   model.Assistant,
			Blocks: []model.Block{{Kind: model.Call, ID: "c", Name: "X", Input: []byte(hostile)}},
		}})
		add(t, own, ended(turn))
	}
	check(t, own.Close())
	data, err := os.ReadFile(s.file("x", journalEnding))
	check(t, err)
	unchecked := regexp.MustCompile(`,"c":"[0-9a-f]{8}"`).ReplaceAllString(string(data), "") // a cut may take just that
	base, rounds := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		rounds++
		h := harm(t, data)
		s := Open(filepath.Join(base, fmt.Sprint(rounds%8)))
		fatal(t, os.MkdirAll(s.dir, 0o700))
		path := s.file("x", journalEnding)
		fatal(t, os.WriteFile(path, h.data, 0o600))
		want := h.untouched(data)
		found, damage := recordsOf(t, s)
		for number, line := range found {
			if original, ok := want[number]; ok && line != original || !strings.Contains(string(data), line) &&
				!strings.Contains(unchecked, line) {
				t.Fatalf("%s [%d:%d]: record %d is not what was written: %s", h.kind, h.from, h.to, number, line)
			}
		}
		for number := range want {
			// it has lost its newline: perhaps it is still being written
			end := h.data[bytes.LastIndexByte(h.data, '\n')+1:]
			if _, ok := found[number]; !ok && !strings.Contains(string(end), want[number]) {
				t.Fatalf("%s [%d:%d]: record %d is whole, and not read", h.kind, h.from, h.to, number)
			}
		}
		if len(found) < 37 && len(damage) == 0 && h.to < len(data) {
			t.Fatalf("%s [%d:%d]: %d records, and nothing is told of what is wrong", h.kind, h.from, h.to, len(found))
		}
		for _, d := range damage {
			if d.At < 0 || d.At+int64(d.Size) > int64(len(h.data)) || d.Reason == "" {
				t.Fatalf("%+v is not a place in %d bytes", d, len(h.data))
			}
		}
		goesOn(t, s, path, h, found, want)
	})
}

// recordsOf are the records that a reader finds, by their lines, and what is damaged.
func recordsOf(t *rapid.T, s Store) (map[int64]string, []Damaged) {
	r, err := s.Reader("x", 1, false)
	fatal(t, err)
	defer r.Close()
	found, last := map[int64]string{}, int64(0)
	var damage []Damaged
	for {
		e, line, err := r.next(context.Background())
		if errors.Is(err, io.EOF) {
			return found, damage
		}
		fatal(t, err)
		if d, is := e.Record.(Damaged); is {
			damage = append(damage, d)
			continue
		}
		if e.Number <= last {
			t.Fatalf("record %d comes after %d", e.Number, last)
		}
		last, found[e.Number] = e.Number, string(line)
	}
}

// goesOn opens a harmed journal, which changes nothing but its torn end, and appends to it.
func goesOn(t *rapid.T, s Store, path string, h harmed, found, want map[int64]string) {
	own, err := s.Resume(context.Background(), "x")
	if len(found) == 0 && err != nil {
		return // nothing of it is left
	}
	fatal(t, err)
	state := own.State()
	last := own.Last()
	number, err := own.Append(told("and on", 9))
	fatal(t, err)
	fatal(t, own.Close())
	now, err := os.ReadFile(path)
	fatal(t, err)
	kept := bytes.LastIndexByte(h.data, '\n') + 1
	if !bytes.HasPrefix(now, h.data[:kept]) {
		t.Fatal("something was overwritten")
	}
	if rest := h.data[kept:]; !bytes.HasPrefix(now[kept:], rest) && !isUnfinishedRecord(rest, last+1) {
		t.Fatalf("%q was cut off", rest)
	} else if !bytes.HasPrefix(now[kept:], rest) &&
		!slices.ContainsFunc(state.Damage, func(d Damaged) bool { return d.At == int64(kept) && d.Size == len(rest) }) {
		t.Fatalf("%q was cut off, and nothing is told of it: %+v", rest, state.Damage)
	}
	again, _ := recordsOf(t, s)
	for n, line := range found {
		if again[n] != line {
			t.Fatalf("record %d was lost when it was opened for writing", n)
		}
	}
	for n := range want {
		if _, ok := again[n]; !ok {
			t.Fatalf("%s [%d:%d]: record %d is whole, and not used", h.kind, h.from, h.to, n)
		}
	}
	if number <= last || !strings.Contains(again[number], "and on") || len(again) < len(found)+1 {
		t.Fatalf("record %d does not follow %d", number, last)
	}
	if view, err := s.Show("x"); err != nil {
		t.Fatal(err)
	} else {
		all, err := view.Check(context.Background())
		fatal(t, err)
		if len(all) < view.State.Damaged { // opening looks at the heads of events alone
			t.Fatalf("%d places are damaged, and %d are told", view.State.Damaged, len(all))
		}
		view.Close()
	}
}

// TestLargeBodiesLieBeside: in a file by their hash, which goes along when the session is forked, exported or deleted.
func TestLargeBodiesLieBeside(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, prompted("go", 1))
	large := strings.Repeat("\"large\n", largestBody/4)
	number := add(t, own,
		Logged{&event.Event{Kind: event.ToolResult, Turn: 1, Result: &event.Result{ID: "c", Output: large}}})
	add(t, own, user(large))
	add(t, own, ended(1))
	check(t, own.Close())
	info, err := os.Stat(s.file("x", journalEnding))
	check(t, err)
	files, err := os.ReadDir(string(s.blobs("x")))
	check(t, err)
	if info.Size() > 10_000 || len(files) != 2 {
		t.Errorf("%d bytes, %d files", info.Size(), len(files))
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	e := entryOf(t, s, "x", number)
	if e.Event() == nil || e.Event().Result.Output != large {
		t.Error("it did not come back")
	}
	own = resume(t, s, "x")
	if m := own.Messages(); m[0].Blocks[0].Text != large {
		t.Error("the message did not come back")
	}
	hits, _, err := s.Search(t.Context(), "\"LARGE", Filter{})
	if check(t, err); len(hits) != 1 || hits[0].Found != 1 {
		t.Errorf("%+v", hits)
	}
	forked, err := s.Fork(t.Context(), "x", "y")
	check(t, err)
	check(t, forked.Close())
	check(t, own.Close())
	var exported bytes.Buffer
	check(t, s.Export("x", JSONL, &exported))
	check(t, os.WriteFile(s.file("z", journalEnding), exported.Bytes(), 0o600))
	all, err := s.Files("x")
	if check(t, err); all[len(all)-1].Size < int64(2*len(large)) {
		t.Errorf("%+v", all)
	}
	check(t, s.Delete(t.Context(), "x"))
	if left, err := filepath.Glob(filepath.Join(s.dir, "x*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	for _, id := range []string{"y", "z"} {
		if e := entryOf(t, s, id, number); e.Event() == nil || e.Event().Result.Output != large {
			t.Errorf("%s has not got it: %+v", id, e)
		}
	}
	// One that is missing, cut, changed or a link is a damaged record in its place, and only that.
	file := filepath.Join(string(s.blobs("y")), files[0].Name())
	body, err := os.ReadFile(file)
	check(t, err)
	for name, do := range map[string]func() error{
		"missing": func() error { return nil },
		"cut":     func() error { return os.WriteFile(file, body[:100], 0o600) },
		"changed": func() error {
			return os.WriteFile(file, bytes.Replace(body, []byte("large"), []byte("LARGE"), 1), 0o600)
		},
		"link": func() error { return os.Symlink("/dev/zero", file) },
	} {
		check(t, os.Remove(file))
		check(t, do())
		v, err := s.Show("y")
		check(t, err)
		damage, err := v.Check(t.Context())
		check(t, err)
		v.Close()
		if len(damage) != 1 || damage[0].Size == 0 || !strings.Contains(damage[0].Reason, files[0].Name()) {
			t.Errorf("%s: %+v", name, damage)
		}
		if name == "missing" {
			check(t, os.WriteFile(file, nil, 0o600))
		}
	}
}

func entryOf(t *testing.T, s Store, id string, number int64) Entry {
	t.Helper()
	r, err := s.Reader(id, number, false)
	check(t, err)
	defer r.Close()
	e, err := r.Next(t.Context())
	check(t, err)
	return e
}

// TestNothingSaidForgesARecord: with and without a mask, also one that breaks lines, there are as many lines as
// records, with their kinds.
func TestNothingSaidForgesARecord(t *testing.T) {
	masks := map[string]func([]byte) []byte{
		"none":   nil,
		"texts":  func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("secret"), []byte("***")) },
		"quotes": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("secret"), []byte("\"}\n{\"n\":7")) },
		"names":  func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("text"), []byte("secret")) },
		"blob": func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`{"turn"`),
				[]byte(`{"blob":"x","turn"`))
		},
		"nothing": func([]byte) []byte { return nil },
	}
	for name, mask := range masks {
		s := store(t)
		own := create(t, s, "x")
		own.Mask(mask)
		var failed int
		for n, words := range []string{
			"plain", "a secret", "\n", "\r\n", "\x00", "\xff\xfe", "\u2028\u2029",
			`"},"k":"end","d":{"ok":true}}`, "}\n{\"n\":3,\"p\":1,\"k\":\"end\",\"t\":\"\",\"d\":{\"ok\":true}}\n",
			`{"blob":"00","size":1}`,
		} {
			for _, r := range []Record{
				told(words, 1),
				Logged{&event.Event{
					Kind: event.ToolCall, Session: words, Parent: words, Hash: words,
					Call: &event.Call{ID: words, Name: words, Input: []byte(words)},
				}},
				Logged{&event.Event{Kind: event.Question, Ask: &event.Ask{ID: words, Options: []string{words}}}},
				Denied{Tool: words},
			} {
				if _, err := own.Append(r); err != nil && name == "nothing" || err != nil && name == "names" {
					failed++
				} else if err != nil {
					t.Errorf("%s %d: %v", name, n, err)
				}
			}
		}
		live := own.Reader(1)
		last := own.Last()
		check(t, own.Close())
		data, err := os.ReadFile(s.file("x", journalEnding))
		check(t, err)
		if last != int64(41-failed) || bytes.Count(data, []byte("\n")) != int(last) || name == "texts" &&
			bytes.Contains(data, []byte("secret")) || name == "quotes" && bytes.Contains(data, []byte("secret")) {
			t.Errorf("%s: %d records, %d lines", name, last, bytes.Count(data, []byte("\n")))
		}
		all := rows(t, live)
		if all != stored(t, s, "x", 1) {
			t.Errorf("%s: the readers disagree", name)
		}
		for line := range strings.Lines(all) {
			var row struct{ Kind string }
			if err := json.Unmarshal([]byte(line), &row); err != nil ||
				!slices.Contains([]string{"begin", "text", "tool_call", "question", "denied"}, row.Kind) {
				t.Errorf("%s: %v in %s", name, err, line)
			}
		}
	}
}

// TestKindsThatChangeTheStateAreNotLogged: an event alone is never taken for the record that its kind has.
func TestKindsThatChangeTheStateAreNotLogged(t *testing.T) {
	own := create(t, store(t), "x")
	for _, kind := range []event.Kind{
		event.Ended, event.Denied, event.Changed, "begin", "message", "adopted", "",
		"new", "a\"b",
	} {
		if _, err := own.Append(Logged{&event.Event{Kind: kind}}); !errors.Is(err, fault.Internal) {
			t.Errorf("%q: %v", kind, err)
		}
	}
	if own.Last() != 1 {
		t.Errorf("%d records", own.Last())
	}
}

// TestWhatNewerVersionsWrite: kinds that are not known are kept, told as they are and copied; a journal of a newer
// version is read, and not written.
func TestWhatNewerVersionsWrite(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	first := add(t, own, user("one"))
	check(t, own.Close())
	f, err := os.OpenFile(s.file("x", journalEnding), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	strange := Entry{
		Number: 3, Parent: first, Record: Unknown{Kind: "hologram", Data: []byte(`{"seq":1,"kind":"end","b":1}`)},
	}
	line, err := strange.line()
	check(t, err)
	_, err = f.Write(line)
	check(t, err)
	check(t, f.Close())
	own = resume(t, s, "x")
	add(t, own, assistant("two"))
	check(t, own.Close())
	forked, err := s.Fork(t.Context(), "x", "y")
	check(t, err)
	check(t, forked.Close())
	for _, id := range []string{"x", "y"} {
		all := stored(t, s, id, 3)
		if !strings.HasPrefix(all,
			`{"seq":3,"time":"0001-01-01T00:00:00.000Z","turn":0,"kind":"hologram","data":{"seq":1,"kind":"end","b":1}}`+"\n"+`{"seq":4`) {
			t.Errorf("%s: %s", id, all)
		}
	}
	data, err := os.ReadFile(s.file("x", journalEnding))
	check(t, err)
	begin, err := Entry{Number: 1, Record: Begin{
		Version: version + 1, ID: "new", Provider: "p", Created: own.State().Begin.Created,
	}}.line()
	check(t, err)
	newer := append(begin, data[bytes.IndexByte(data, '\n')+1:]...)
	check(t, os.WriteFile(s.file("new", journalEnding), newer, 0o600))
	v, err := s.Show("new")
	check(t, err)
	if got := said(v.Messages()); got != "u one | a two" {
		t.Error(got)
	}
	v.Close()
	_, err = s.Resume(t.Context(), "new")
	if f := wantCode(t, err, fault.Unsupported); !strings.Contains(f.Message, "new was written by a newer version") {
		t.Error(f.Message)
	}
	_, err = s.Fork(t.Context(), "new", "")
	wantCode(t, err, fault.Unsupported)
	if page, skipped, err := s.List(t.Context(), Filter{}); err != nil || len(page) != 3 || len(skipped) > 0 {
		t.Errorf("%v %v %v", page, skipped, err)
	}
	if now, err := os.ReadFile(s.file("new", journalEnding)); err != nil || !bytes.Equal(now, newer) {
		t.Error("it was changed")
	}
}

// TestForksCarryEvents: those of the branch, in their order, with the numbers of the fork.
func TestForksCarryEvents(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, prompted("one", 1))
	first := add(t, own, user("one"))
	add(t, own, told("answer", 1))
	add(t, own, assistant("left"))
	add(t, own, told("left", 1))
	check(t, own.Rewind(first))
	add(t, own, told("other", 1))
	add(t, own, assistant("other"))
	add(t, own, ended(1))
	forked, err := s.Fork(t.Context(), "x", "y")
	check(t, err)
	if n := forked.State().LastTurn; n != 1 || len(forked.State().Unfinished) != 0 {
		t.Errorf("turn %d, %+v", n, forked.State().Unfinished)
	}
	check(t, forked.Close())
	var kinds []string
	for line := range strings.Lines(stored(t, s, "y", 1)) {
		var row struct {
			Seq  int64
			Kind string
			Text string
		}
		check(t, json.Unmarshal([]byte(line), &row))
		kinds = append(kinds, row.Kind+row.Text)
		if row.Seq != int64(len(kinds)) {
			t.Errorf("%d rows, seq %d", len(kinds), row.Seq)
		}
	}
	if got := strings.Join(kinds, " "); got != "begin prompt message textanswer changed textother message end" {
		t.Error(got)
	}
}

// FuzzReader: whatever a file holds, a reader comes to its end, from any number on the tail is the same, and it has the
// records that opening the file finds.
func FuzzReader(f *testing.F) {
	var whole []byte
	for i, r := range []Record{Begin{Version: 1, ID: "x"}, prompted("a", 1), user("one"), told("b", 1), ended(1)} {
		line, err := Entry{Number: int64(i + 1), Parent: int64(i), Record: r}.line()
		check(f, err)
		whole = append(whole, line...)
	}
	f.Add(whole, int64(3))
	f.Add(append(bytes.Clone(whole[:200]), whole[150:]...), int64(2))
	f.Add(bytes.ReplaceAll(whole, []byte("\n"), []byte("\x00")), int64(1))
	f.Add([]byte("a\n"+`{"n":2,"p":0,"k":"new","t":"2026-01-02T02:04:05.006Z","d":1}`+"\r\n\n"), int64(2))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, number int64) {
		s := Open(dir)
		check(t, os.WriteFile(s.file("x", journalEnding), data, 0o600))
		all, tail := stored(t, s, "x", 1), stored(t, s, "x", number)
		if !strings.HasSuffix(all, tail) || number <= 1 && all != tail {
			t.Fatalf("from %d:\n got %q\nwant a tail of %q", number, tail, all)
		}
		j, err := readJournal(bytes.NewReader(data), "")
		check(t, err)
		if j.partialHistory {
			return
		}
		for _, p := range j.places {
			if e, err := j.decode(p); err == nil {
				row, err := e.AppendRow(nil)
				if check(t, err); !strings.Contains(all, string(row)) {
					t.Fatalf("record %d is not read: %s", p.number, row)
				}
			}
		}
	})
}
