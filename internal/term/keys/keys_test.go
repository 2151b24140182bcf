package keys_test

import (
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/term/keys"
)

// all returns the keys of an input to which nothing follows.
func all(pieces ...string) []keys.Key {
	var d keys.Decoder
	var found []keys.Key
	for _, piece := range pieces {
		found = append(found, d.Feed([]byte(piece))...)
	}
	for {
		if _, ok := d.Pending(); !ok {
			return found
		}
		found = append(found, d.Flush()...)
	}
}

func typed(text string) keys.Key { return keys.Key{Code: keys.Text, Text: text} }

func TestKeys(t *testing.T) {
	one := func(c keys.Code, mod ...keys.Mod) []keys.Key {
		k := keys.Key{Code: c}
		for _, m := range mod {
			k.Mod |= m
		}
		return []keys.Key{k}
	}
	for input, want := range map[string][]keys.Key{
		"hello":               one(keys.Text),
		"\r":                  one(keys.Enter),
		"\t":                  one(keys.Tab),
		"\x7f":                one(keys.Backspace),
		"\x1b":                one(keys.Escape),
		"\x1b\x1b":            {{Code: keys.Escape}, {Code: keys.Escape}},
		"\x01":                {keys.C("a")},
		"\x1f":                {keys.C("_")},
		"\x00":                {keys.C(" ")},
		"\x1bb":               {keys.A("b")},
		"\x1bä":               {keys.A("ä")},
		"\x1b\r":              one(keys.Enter, keys.Alt),
		"\x1b\x7f":            one(keys.Backspace, keys.Alt),
		"\x1b[A":              one(keys.Up),
		"\x1bOA":              one(keys.Up),
		"\x1b\x1b[A":          one(keys.Up, keys.Alt),
		"\x1b[1;5C":           one(keys.Right, keys.Ctrl),
		"\x1b[1;3D":           one(keys.Left, keys.Alt),
		"\x1b[1;10A":          one(keys.Up, keys.Shift, keys.Alt),
		"\x1b[H":              one(keys.Home),
		"\x1b[4~":             one(keys.End),
		"\x1b[3~":             one(keys.Delete),
		"\x1b[3;5~":           one(keys.Delete, keys.Ctrl),
		"\x1b[Z":              one(keys.Tab, keys.Shift),
		"\x1b[13;2u":          one(keys.Enter, keys.Shift),
		"\x1b[13;3u":          one(keys.Enter, keys.Alt),
		"\x1b[27;2;13~":       one(keys.Enter, keys.Shift),
		"\x1b[97;5u":          {keys.C("a")},
		"\x1b[97;2u":          {typed("A")},
		"\x1b[I":              one(keys.FocusIn),
		"\x1b[O":              one(keys.FocusOut),
		"\x1b[15~":            {{Code: keys.Function, Number: 5}},
		"\x1bOP":              {{Code: keys.Function, Number: 1}},
		"\x1b[[A":             {{Code: keys.Function, Number: 1}},
		"\x1b[12;40R":         {{Code: keys.Position, Row: 12, Column: 40}},
		"\x1b[1;5R":           {{Code: keys.Position, Row: 1, Column: 5}},
		"\x1b]11;rgb:0/0/0\a": nil,
		"\x1b]11;rgb\x1b\\":   nil,
		"\x1b[?2026;2$y":      nil,
		"\x1b]":               {keys.A("]")},
		"\x1b[":               {keys.A("[")},
		"\x1bO":               {keys.A("O")},
		"\x1b[12":             one(keys.Unknown),
		"\xff":                one(keys.Unknown),
		"\xe6\x97":            {{Code: keys.Unknown}, {Code: keys.Unknown}},
		"日本":                  {typed("日本")},
		"ab\x1b[Dc":           {typed("ab"), {Code: keys.Left}, typed("c")},
		"\x1b[200~a\r\nb\x1b[A\x1b[201~c": {
			{Code: keys.Paste, Text: "a\nb\x1b[A"}, typed("c"),
		},
		"\x1b[200~\x1b[201~":   one(keys.Paste),
		"\x1b[200~never ends":  {{Code: keys.Paste, Text: "never ends"}},
		"\x1b[201~x":           {typed("x")},
		"\x1b[\x1b[A":          {keys.A("["), {Code: keys.Up}},
		"\x1b[9;9;9;9;9;9;9;x": one(keys.Unknown),
	} {
		if input == "hello" {
			want[0].Text = "hello"
		}
		if got := all(input); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%q is %+v, want %+v", input, got, want)
		}
	}
}

// TestPasteOfAnySize: a paste is one value, and costs linear time.
func TestPasteOfAnySize(t *testing.T) {
	text := strings.Repeat("line of a paste\n", 1<<18)
	var d keys.Decoder
	var found []keys.Key
	for rest := "\x1b[200~" + text + "\x1b[201~"; rest != ""; {
		n := min(4096, len(rest))
		found = append(found, d.Feed([]byte(rest[:n]))...)
		rest = rest[n:]
	}
	if len(found) != 1 || found[0].Code != keys.Paste || found[0].Text != text {
		t.Fatalf("%d keys", len(found))
	}
}

// FuzzDecoder holds that the keys are the same wherever the input is cut, that decoding ends and that no text has a
// control character.
func FuzzDecoder(f *testing.F) {
	for _, seed := range []string{
		"hello\r", "\x1b[A", "\x1b[200~x\x1b[201~", "\x1b\x1b[1;5C", "\x1b]0;x\a", "日本", "\x1b[[", "\xc3", "\x1b[<1;2M",
		"\x1b\x1b\x1b", "\x1bOx", "\x1b[1;5R",
	} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, input string, at int) {
		if at < 0 || at > len(input) {
			at = len(input) / 2
		}
		whole, parts := all(input), all(input[:at], input[at:])
		if !reflect.DeepEqual(join(whole), join(parts)) {
			t.Errorf("%q cut at %d: %+v, whole: %+v", input, at, parts, whole)
		}
		for _, key := range whole {
			if key.Code == keys.Text &&
				strings.ContainsFunc(key.Text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%q has the text %q", input, key.Text)
			}
		}
	})
}

// join makes one Text of several that came in pieces.
func join(list []keys.Key) []keys.Key {
	var joined []keys.Key
	for _, key := range list {
		last := len(joined) - 1
		if last >= 0 && key.Code == keys.Text && key.Mod == 0 && joined[last].Code == keys.Text &&
			joined[last].Mod == 0 {
			joined[last].Text += key.Text
			continue
		}
		joined = append(joined, key)
	}
	return joined
}
