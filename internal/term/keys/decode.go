package keys

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"
)

// Decoder turns bytes into keys. The zero Decoder is ready.
type Decoder struct {
	waiting []byte // the beginning of a sequence
	pasting bool
	paste   []byte
}

const (
	esc        = 0x1b
	pasteEnd   = "\x1b[201~"
	mostString = 4096 // bytes of an answer of the terminal, such as a colour
	mostCSI    = 64   // bytes of a control sequence
)

// Feed takes bytes and returns the keys that are complete.
func (d *Decoder) Feed(input []byte) []Key {
	var found []Key
	for data := input; len(data) > 0; {
		if d.pasting {
			data = d.feedPaste(data, &found)
			continue
		}
		if len(d.waiting) > 0 {
			data = append(d.waiting, data...)
			d.waiting = nil
		}
		key, n := decode(data, false)
		if n == 0 {
			d.waiting = bytes.Clone(data)
			break
		}
		data = data[n:]
		if key.Code == Paste {
			d.pasting = true
			continue
		}
		found = add(found, key)
	}
	return found
}

// add appends a key. Characters that were typed without modifiers are one Text.
func add(found []Key, key Key) []Key {
	last := len(found) - 1
	if last >= 0 && key.Code == Text && key.Mod == 0 && found[last].Code == Text && found[last].Mod == 0 {
		found[last].Text += key.Text
		return found
	}
	if key.Code == ignored {
		return found
	}
	return append(found, key)
}

// feedPaste takes bytes of a paste and returns what follows its end.
func (d *Decoder) feedPaste(data []byte, found *[]Key) (rest []byte) {
	from := max(len(d.paste)-len(pasteEnd)+1, 0)
	before := len(d.paste)
	d.paste = append(d.paste, data...)
	at := bytes.Index(d.paste[from:], []byte(pasteEnd))
	if at < 0 {
		return nil
	}
	at += from
	rest = data[at+len(pasteEnd)-before:]
	d.paste = d.paste[:at]
	*found = append(*found, d.endPaste())
	return rest
}

func (d *Decoder) endPaste() Key {
	text := strings.ToValidUTF8(string(d.paste), "\uFFFD")
	d.paste, d.pasting = nil, false
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return Key{Code: Paste, Text: text}
}

// Pending returns how long to wait for more before Flush. ok is false if nothing is incomplete.
func (d *Decoder) Pending() (wait time.Duration, ok bool) {
	switch {
	case d.pasting:
		return PastePatience, true
	case len(d.waiting) > 0:
		return Patience, true
	}
	return 0, false
}

// Flush resolves what is incomplete, since no more came: an Escape is the key, and a paste ends where it is.
func (d *Decoder) Flush() []Key {
	if d.pasting {
		return []Key{d.endPaste()}
	}
	var found []Key
	data := d.waiting
	d.waiting = nil
	for len(data) > 0 {
		key, n := decode(data, true)
		if key.Code == Paste { // it begins only now, which cannot be: a complete beginning does not wait
			break
		}
		found = add(found, key)
		data = data[n:]
	}
	return found
}

// ignored is the code of a report that nobody asked for.
const ignored Code = 255

// decode returns the first key and its length. n is 0 if more bytes are needed; with last no more will come.
func decode(data []byte, last bool) (key Key, n int) {
	switch c := data[0]; {
	case c == esc:
		return decodeEscape(data, last)
	case c < ' ' || c == 0x7f:
		return control(c), 1
	case c < utf8.RuneSelf:
		return Key{Code: Text, Text: string(rune(c))}, 1
	}
	if !utf8.FullRune(data) && !last {
		return Key{}, 0
	}
	r, size := utf8.DecodeRune(data)
	if r == utf8.RuneError && size == 1 || r < 0xa0 {
		return Key{Code: Unknown}, size
	}
	return Key{Code: Text, Text: string(data[:size])}, size
}

// control returns the key of a control character.
func control(c byte) Key {
	switch c {
	case '\r':
		return Key{Code: Enter}
	case '\t':
		return Key{Code: Tab}
	case 0x7f:
		return Key{Code: Backspace}
	case 0:
		return C(" ")
	}
	if c > 26 {
		return C(string(rune(c + 0x40))) // Ctrl-\, Ctrl-], Ctrl-^, Ctrl-_
	}
	return C(string(rune(c + 0x60)))
}

func decodeEscape(data []byte, last bool) (key Key, n int) {
	if len(data) == 1 {
		if last {
			return Key{Code: Escape}, 1
		}
		return Key{}, 0
	}
	switch c := data[1]; c {
	case '[':
		key, n = decodeCSI(data[2:], last)
	case 'O':
		key, n = decodeSS3(data[2:], last)
	case ']', 'P', '_', '^', 'X':
		key, n = decodeString(data[2:], last)
	case esc:
		return decodeDouble(data, last)
	default:
		key, n = decode(data[1:], last)
		if n == 0 {
			return Key{}, 0
		}
		key.Mod |= Alt
		return key, n + 1
	}
	if n < 0 { // there is nothing of the sequence but its introducer, which Alt with that character sends too
		return A(string(rune(data[1]))), 2
	}
	if n == 0 {
		return Key{}, 0
	}
	return key, n + 2
}

// decodeDouble handles two escapes: Alt with a key that sends a sequence, or Escape twice.
func decodeDouble(data []byte, last bool) (key Key, n int) {
	if len(data) == 2 && !last {
		return Key{}, 0
	}
	if len(data) > 2 && (data[2] == '[' || data[2] == 'O') {
		key, n = decodeEscape(data[1:], last)
		if n == 0 {
			return Key{}, 0
		}
		if key.Code != Unknown && key.Code != Text && key.Code != Paste {
			key.Mod |= Alt
			return key, n + 1
		}
	}
	return Key{Code: Escape}, 1
}

// decodeString skips an answer of the terminal that ends with BEL or ESC \. n is -1 for anything else.
func decodeString(data []byte, last bool) (key Key, n int) {
	for i, c := range data {
		switch {
		case c == 7:
			return Key{Code: ignored}, i + 1
		case c == esc && i+1 < len(data) && data[i+1] == '\\':
			return Key{Code: ignored}, i + 2
		case c == esc && i+1 < len(data), c != esc && c < ' ', i > mostString:
			return Key{}, -1
		}
	}
	if last {
		return Key{}, -1
	}
	return Key{}, 0
}

// decodeSS3 decodes what follows ESC O.
func decodeSS3(data []byte, last bool) (key Key, n int) {
	if len(data) == 0 {
		if last {
			return Key{}, -1
		}
		return Key{}, 0
	}
	if key = final(data[0]); key.Code != Unknown {
		return key, 1
	}
	if data[0] == 'M' {
		return Key{Code: Enter}, 1
	}
	return Key{}, -1
}
