package lineedit_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/term/cells"
	"omniagent/internal/term/keys"
	"omniagent/internal/term/lineedit"
	"omniagent/internal/testkit/hermetic"
)

// press feeds what a terminal sends and returns the last action.
func press(e *lineedit.Editor, input string) lineedit.Action {
	var d keys.Decoder
	list := d.Feed([]byte(input))
	for {
		if _, ok := d.Pending(); !ok {
			break
		}
		list = append(list, d.Flush()...)
	}
	last := lineedit.None
	for _, k := range list {
		last = e.Key(k)
	}
	return last
}

// look returns the view with | where the cursor stands.
func look(e *lineedit.Editor, width int) string {
	v := e.View(width)
	var rows []string
	for i, r := range v.Rows {
		r = cells.Plain(r)
		if i == v.Row {
			at, used := 0, 0
			for rest := r; rest != "" && used < v.Column; {
				piece, more, w := cells.First(rest)
				at, used, rest = at+len(piece), used+w, more
			}
			r = r[:at] + strings.Repeat(" ", v.Column-used) + "|" + r[at:]
		}
		rows = append(rows, r)
	}
	return strings.Join(rows, "\n")
}

func TestEditing(t *testing.T) {
	for _, tt := range []struct{ keys, want string }{
		{"hello", "> hello|"},
		{"hello\x1b[D\x1b[DX", "> helX|lo"},
		{"hello\x01X\x05Y", "> XhelloY|"},
		{"one two\x17", "> one |"},
		{"one two\x17\x19\x19", "> one twotwo|"},
		{"one/two\x1b\x7f", "> one/|"},
		{"one two three\x17\x17\x19", "> one two three|"},
		{"one two\x1bb\x0b", "> one |"},
		{"one two\x15\x19", "> one two|"},
		{"one two\x01\x1bd\x1bd\x19", "> one two|"},
		{"one two\x01\x1bf!", "> one!| two"},
		{"ab\x14", "> ba|"},
		{"abc\x02\x14", "> acb|"},
		{"abc\x02\x04", "> ab|"},
		{"abc\x08", "> ab|"},
		{"abc\x1b[H\x1b[3~", "> |bc"},
		{"abc\x15\x1f", "> abc|"},
		{"abc\x1f", "> |"},
		{"日本語\x7f", "> 日本|"},
		{"e\u0301\x7f", "> |"},
		{"e\x1b[D\x1b[C\u0301\x7f", "> |"},
		{"👩‍👩‍👧x\x1b[D\x7f", "> |x"},
		{"a\x1b\rb", "> a\n  b|"},
		{"a\\\rb", "> a\n  b|"},
		{"a\nb", "> a\n  b|"},
		{"long\x1b\rx\x1b[AY", "> lY|ong\n  x"},
		{"ab\x1b\r\x1b[A\x1b[B!", "> ab\n  !|"},
		{"\x1b[200~a\r\nb\tc\x1b[201~", "> a\n  b     c|"},
		{"\x1b[200~\x1b[2J\x1b[201~", "> \\x1b[2J|"},
		{"a\x1b[1;5D\x1b[1;5C.", "> a.|"},
		{"\x1b[I\x1b[O\xff", "> |"},
	} {
		e := lineedit.New(lineedit.Options{Prompt: "> "})
		press(e, tt.keys)
		if got := look(e, 40); got != tt.want {
			t.Errorf("%q shows\n%s, want\n%s", tt.keys, got, tt.want)
		}
	}
}

func TestActions(t *testing.T) {
	for input, want := range map[string]lineedit.Action{
		"a\r": lineedit.Submit, "a\x03": lineedit.Interrupt, "\x04": lineedit.EndInput, "a\x04": lineedit.None,
		"\x1a": lineedit.Suspend, "\x0c": lineedit.Redraw, "\x1b": lineedit.Ignored, "\x1b[Z": lineedit.Ignored,
		"\x0f": lineedit.Ignored, "\\\r": lineedit.None, "a\\\x1b[D\r": lineedit.Submit,
	} {
		if got := press(lineedit.New(lineedit.Options{}), input); got != want {
			t.Errorf("%q asks for %d, want %d", input, got, want)
		}
	}
}

// TestWidths: every row fits, and the cursor is in one.
func TestWidths(t *testing.T) {
	e := lineedit.New(lineedit.Options{Prompt: "prompt> "})
	press(e, "a line of text with 日本語 in it\x1b\rand\ta second 👩‍👩‍👧 line")
	for width := 4; width < 100; width++ {
		v := e.View(width)
		for i, r := range v.Rows {
			if w := cells.Width(r); w > width {
				t.Errorf("width %d: row %d has %d cells", width, i, w)
			}
		}
		if v.Row >= len(v.Rows) || v.Column >= width {
			t.Errorf("width %d: the cursor stands at %d,%d", width, v.Row, v.Column)
		}
	}
}

// TestFoldedPaste: a long paste is one thing on the screen, and whole in the text.
func TestFoldedPaste(t *testing.T) {
	e := lineedit.New(lineedit.Options{Prompt: "> "})
	paste := strings.Repeat("line of a paste\n", 60)
	press(e, "see \x1b[200~"+paste+"\x1b[201~ now")
	if got := look(e, 80); got != "> see [pasted 60 lines: line of a paste] now|" {
		t.Error(got)
	}
	if e.Text() != "see "+paste+" now" {
		t.Error(e.Text())
	}
	press(e, "\x17\x7f\x7f")
	if e.Text() != "see " {
		t.Error(e.Text())
	}
}

// TestLongEntries: an entry of the history that is very long is one thing too, and keys on it are cheap.
func TestLongEntries(t *testing.T) {
	h, err := lineedit.OpenHistory(filepath.Join(t.TempDir(), "history"), func(s string) string { return s })
	if err != nil {
		t.Fatal(err)
	}
	h.Add(strings.Repeat("word ", 100_000))
	e := lineedit.New(lineedit.Options{Prompt: "> ", History: h})
	press(e, "\x1b[A")
	if got := look(e, 80); !strings.HasPrefix(got, "> [pasted 500000 bytes: word") &&
		!strings.HasPrefix(got, "> [pasted 499999 bytes: word") {
		t.Error(got)
	}
	if press(e, "\x7f"); !e.Empty() {
		t.Errorf("%d bytes are left", len(e.Text()))
	}
}

// TestPrompt: further lines are indented like the text after the prompt.
func TestPrompt(t *testing.T) {
	e := lineedit.New(lineedit.Options{Prompt: "plan> ", Hint: "say something"})
	if got := look(e, 40); got != "plan> |say something" {
		t.Error(got)
	}
	press(e, "a\x1b\rb")
	if got := look(e, 40); got != "plan> a\n      b|" {
		t.Error(got)
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "history")
	open := func() *lineedit.Editor {
		h, err := lineedit.OpenHistory(path, func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
		if err != nil {
			t.Fatal(err)
		}
		return lineedit.New(lineedit.Options{Prompt: "> ", History: h})
	}
	e := open()
	for _, text := range []string{"git status", "go test", "go test", "git\nlog", "say hunter2", " "} {
		e.Set(text)
		e.Take()
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	e = open()
	for _, tt := range []struct{ keys, want string }{
		{"\x1b[A", "say ***"},
		{"\x1b[A", "git\nlog"},
		{"\x1b[A\x1b[A", "go test"}, // the first moves within the two lines
		{"\x1b[A", "git status"},
		{"\x1b[A", "git status"},
		{"\x1b[B\x1b[B\x1b[B\x1b[B", ""},
		{"gi\x1b[A\x1b[A\x1b[A", "git status"},
		{"\x15go\x1b[A", "go test"},
		{"\x15\x12stat\r", "git status"},
		{"\x15\x12g\x12\x12\r", "git status"},
		{"\x15kept\x12go\x07", "kept"},
		{"\x12nothing like it\x1b", "kept"},
	} {
		press(e, tt.keys)
		if e.Text() != tt.want {
			t.Errorf("%q: %q, want %q", tt.keys, e.Text(), tt.want)
		}
	}
}

// TestHistoryIsBounded: the file is shortened, at a line.
func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h, err := lineedit.OpenHistory(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		h.Add(strings.Repeat(string(rune('a'+i%26)), 40<<10))
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 1<<20 {
		t.Fatalf("%v, %v", info, err)
	}
	if h, err = lineedit.OpenHistory(path, nil); err != nil {
		t.Fatal(err)
	}
	e := lineedit.New(lineedit.Options{History: h})
	press(e, "\x1b[A")
	if want := strings.Repeat("h", 40<<10); e.Text() != want {
		t.Errorf("the last entry has %d bytes", len(e.Text()))
	}
}

func names(_ context.Context, before string, offer func(lineedit.Offer)) {
	from := strings.LastIndexByte(before, '@')
	if from < 0 {
		return
	}
	var found []lineedit.Candidate
	for _, name := range []string{"@file:alpha", "@file:beta", "@agent:gamma"} {
		if strings.HasPrefix(name, before[from:]) {
			found = append(found, lineedit.Candidate{Text: name, Description: "a name"})
		}
	}
	offer(lineedit.Offer{From: from, Candidates: found})
}

func changed(t *testing.T, e *lineedit.Editor) {
	t.Helper()
	select {
	case <-e.Changed():
	case <-time.After(hermetic.Patience):
		t.Fatal("no candidates")
	}
}

func TestCompletion(t *testing.T) {
	e := lineedit.New(lineedit.Options{Prompt: "> ", Complete: names})
	press(e, "see @file:")
	for below := []string(nil); len(below) != 2; below = e.View(60).Below {
		changed(t, e)
	}
	want := []string{"  @file:alpha  a name", "  @file:beta   a name"}
	for i, r := range e.View(60).Below {
		if cells.Plain(r) != want[i] {
			t.Errorf("%q", r)
		}
	}
	for _, tt := range []struct{ keys, want string }{
		{"\t", "see @file:alpha"},
		{"\t", "see @file:beta"},
		{"\t", "see @file:alpha"},
		{"\x1b[Z", "see @file:beta"},
	} {
		if press(e, tt.keys); e.Text() != tt.want {
			t.Errorf("%q: %q, want %q", tt.keys, e.Text(), tt.want)
		}
	}
	if press(e, "\x1b") != lineedit.None || len(e.View(60).Below) != 0 {
		t.Error("Escape leaves the list")
	}
	e.Close()
}

// TestCompletionNeverBlocks: a source that hangs is asked to end by the next key, and typing goes on.
func TestCompletionNeverBlocks(t *testing.T) {
	ended := make(chan string, 8)
	e := lineedit.New(lineedit.Options{Complete: func(ctx context.Context, before string, _ func(lineedit.Offer)) {
		<-ctx.Done()
		ended <- before
	}})
	press(e, "a")
	press(e, "b\t\t")
	e.Close()
	got := []string{<-ended, <-ended}
	if slices.Sort(got); !slices.Equal(got, []string{"a", "ab"}) || e.Text() != "ab" {
		t.Errorf("%q, %q", got, e.Text())
	}
}

// FuzzEditor holds that no key breaks the buffer or the view.
func FuzzEditor(f *testing.F) {
	for _, seed := range []string{
		"abc\x1b[D\x7f\x19", "a\nb\x1b[A\x1b[B\x14", "\x12x\r", "\x1b[200~a\n\x1b[201~\x1f",
		"\t\t",
	} {
		f.Add(seed, 20)
	}
	f.Fuzz(func(t *testing.T, input string, width int) {
		h, err := lineedit.OpenHistory("", nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Add("earlier")
		e := lineedit.New(lineedit.Options{Prompt: "> ", History: h, Complete: names})
		defer e.Close()
		width = 4 + (width%100+100)%100
		for _, b := range []byte(input) {
			press(e, string([]byte{b}))
			v := e.View(width)
			if v.Row >= len(v.Rows) || v.Column >= width || v.Row < 0 || v.Column < 0 {
				t.Fatalf("%q: the cursor stands at %d,%d in %q", input, v.Row, v.Column, v.Rows)
			}
		}
		press(e, input)
		for _, r := range e.View(width).Rows {
			if w := cells.Width(r); w > width ||
				strings.ContainsFunc(cells.Plain(r), func(r rune) bool { return r < ' ' }) {
				t.Errorf("%q: row %q", input, r)
			}
		}
	})
}
