package screen_test

import (
	"slices"
	"testing"
	"time"

	"omniagent/internal/sys/process"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/keys"
	"omniagent/internal/term/screen"
)

func TestDiff(t *testing.T) {
	got := screen.Diff("a\nb\x1b[2J\nc\n", "a\nB\nc\n", true)
	want := []string{
		"\x1b[36m@@ -1,3 +1,3 @@\x1b[m", " a", "\x1b[31m-b\\x1b[2J\x1b[m", "\x1b[32m+B\x1b[m", " c",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := screen.Diff("same", "same", false); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestStatus(t *testing.T) {
	for want, got := range map[string]string{
		"⠋ thinking 0s":                  screen.Working("thinking", 0, 0),
		"⠙ thinking 1s · 999 tokens":     screen.Working("thinking", 1500*time.Millisecond, 999),
		"⠇ thinking 2m05s · 1.5k tokens": screen.Working("thinking", 125*time.Second, 1500),
	} {
		if got = cells.Plain(got); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	list := []screen.Todo{{"one", "done"}, {"two", "done"}, {"three", "active"}, {"four", ""}, {"five", ""}}
	var got []string
	for _, row := range screen.Todos(list, 3) {
		got = append(got, cells.Plain(row))
	}
	if want := []string{"✓ two", "▸ three", "· four"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		env    []string
		colour bool
		notice string
	}{
		{[]string{"TERM=xterm"}, true, "\a"},
		{[]string{"TERM=xterm", "NO_COLOR=1"}, false, "\a"},
		{[]string{"TERM=xterm", "NO_COLOR="}, true, "\a"},
		{[]string{"TERM=dumb"}, false, "\a"},
		{[]string{"TERM=xterm-kitty"}, true, "\x1b]9;a question\a\a"},
		{[]string{"TERM_PROGRAM=WezTerm"}, true, "\x1b]9;a question\a\a"},
	} {
		if got := screen.Colour(process.In(tt.env)); got != tt.colour {
			t.Errorf("%q: colour %v", tt.env, got)
		}
		if got := screen.Notify("a\nquestion\x1b\\", process.In(tt.env)); got != tt.notice {
			t.Errorf("%q: %q", tt.env, got)
		}
	}
}

func TestPicker(t *testing.T) {
	down, enter, up := keys.Key{Code: keys.Down}, keys.Key{Code: keys.Enter}, keys.Key{Code: keys.Up}
	typed := func(s string) keys.Key { return keys.Key{Code: keys.Text, Text: s} }
	for _, tt := range []struct {
		keys []keys.Key
		want int
	}{
		{[]keys.Key{enter}, 0},
		{[]keys.Key{down, down, down, enter}, 2},
		{[]keys.Key{down, up, enter}, 0},
		{[]keys.Key{typed("SEC"), enter}, 1},
		{[]keys.Key{typed("session d"), enter}, 1},
		{[]keys.Key{typed("nothing"), enter, {Code: keys.Escape}}, -1},
		{[]keys.Key{keys.C("c")}, -1},
	} {
		p := &screen.Picker{Title: "Which?", Items: []screen.Item{
			{Text: "session a", Description: "first"}, {Text: "session b", Description: "second"}, {Text: "session c"},
		}}
		for i, k := range tt.keys {
			index, done := p.Key(k)
			if last := i == len(tt.keys)-1; done != last || done && index != tt.want {
				t.Errorf("%+v: %d, %v after %d keys, want %d", tt.keys, index, done, i+1, tt.want)
			}
			p.View(20)
		}
	}
}
