package keys

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// decodeCSI decodes what follows ESC [. n is -1 if it is not a sequence.
func decodeCSI(data []byte, last bool) (key Key, n int) {
	if len(data) > 0 && data[0] == '[' { // the console of Linux: ESC [ [ A is F1
		if len(data) < 2 {
			return Key{Code: Unknown}, cut(1, last)
		}
		if data[1] >= 'A' && data[1] <= 'E' {
			return Key{Code: Function, Number: int(data[1]-'A') + 1}, 2
		}
		return Key{Code: Unknown}, 2
	}
	for i, c := range data {
		switch {
		case c >= 0x40 && c <= 0x7e:
			return sequence(string(data[:i]), c), i + 1
		case c < 0x20 || c > 0x7e: // not of a sequence: what came before it is garbage
			if i == 0 {
				return Key{}, -1
			}
			return Key{Code: Unknown}, i
		case i >= mostCSI:
			return Key{Code: Unknown}, i
		}
	}
	if len(data) == 0 && last {
		return Key{}, -1
	}
	return Key{Code: Unknown}, cut(len(data), last)
}

// cut returns the length of a sequence whose end has not come: all of it if last, else 0.
func cut(n int, last bool) int {
	if last {
		return n
	}
	return 0
}

// sequence returns the key of a control sequence.
func sequence(parameters string, end byte) Key {
	if strings.ContainsAny(parameters, "<=>?") {
		return Key{Code: ignored}
	}
	numbers := [3]int{1, 1, 0}
	for i, field := range strings.SplitN(parameters, ";", 3) {
		field, _, _ = strings.Cut(field, ":") // further forms of the key: shifted, on another layout
		if n, err := strconv.Atoi(field); err == nil {
			numbers[i] = n
		}
	}
	mod := modifiers(numbers[1])
	switch end {
	case '~':
		if numbers[0] == 27 && numbers[2] > 0 { // xterm's modifyOtherKeys: 27 ; modifiers ; character
			return character(numbers[2], mod)
		}
		key := numbered(numbers[0])
		key.Mod |= mod
		return key
	case 'u': // character ; modifiers
		return character(numbers[0], mod)
	case 'R':
		// ESC [ 1 ; 5 R is also Ctrl-F3, which does nothing here.
		if parameters != "" {
			return Key{Code: Position, Row: numbers[0], Column: numbers[1]}
		}
	case 'I':
		return Key{Code: FocusIn}
	case 'O':
		return Key{Code: FocusOut}
	case 'Z':
		return Key{Code: Tab, Mod: Shift}
	}
	key := final(end)
	if key.Code != Unknown {
		key.Mod |= mod
	}
	return key
}

func modifiers(n int) Mod {
	n--
	if n <= 0 {
		return 0
	}
	mod := Mod(n) & (Shift | Alt | Ctrl)
	if n&(8|32) != 0 { // Meta, as xterm and as kitty number it
		mod |= Alt
	}
	return mod
}

// character returns the key of a character that comes as a number.
func character(n int, mod Mod) Key {
	unprinted := map[int]Code{8: Backspace, 9: Tab, 13: Enter, 27: Escape, 127: Backspace, 57414: Enter}
	if code, is := unprinted[n]; is {
		return Key{Code: code, Mod: mod}
	}
	r := rune(n)
	if n < ' ' || n > utf8.MaxRune || !unicode.IsPrint(r) {
		return Key{Code: Unknown}
	}
	if mod&Shift != 0 {
		r, mod = unicode.ToUpper(r), mod&^Shift
	}
	if mod&Ctrl != 0 {
		r = unicode.ToLower(r)
	}
	return Key{Code: Text, Mod: mod, Text: string(r)}
}

// numbered returns the key of ESC [ number ~.
func numbered(n int) Key {
	switch {
	case n >= 11 && n <= 15:
		return Key{Code: Function, Number: n - 10}
	case n >= 17 && n <= 21:
		return Key{Code: Function, Number: n - 11}
	case n >= 23 && n <= 24:
		return Key{Code: Function, Number: n - 12}
	}
	return Key{Code: map[int]Code{
		1: Home, 2: Insert, 3: Delete, 4: End, 5: PageUp, 6: PageDown, 7: Home, 8: End, 200: Paste,
		201: ignored, // the end of a paste whose beginning was lost
	}[n]}
}

// final returns the key that the last byte of a sequence names.
func final(c byte) Key {
	if c >= 'P' && c <= 'S' {
		return Key{Code: Function, Number: int(c-'P') + 1}
	}
	return Key{Code: map[byte]Code{'A': Up, 'B': Down, 'C': Right, 'D': Left, 'F': End, 'H': Home}[c]}
}
