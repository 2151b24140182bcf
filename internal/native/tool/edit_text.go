package tool

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Byte order marks.
const (
	mark8    = "\xef\xbb\xbf"
	mark16LE = "\xff\xfe"
	mark16BE = "\xfe\xff"
)

// document is the text of a file, with everything needed to write unchanged parts back byte for byte. Only UTF-16 is
// decoded; Latin-1 and other encodings stay as they are.
type document struct {
	mark  string
	text  []byte // UTF-8; unpaired surrogates of UTF-16 are encoded like characters
	order binary.ByteOrder
	odd   []byte // an odd byte at the end of UTF-16
}

func decode(data []byte) document {
	switch {
	case len(data) >= 2 && string(data[:2]) == mark16LE:
		return decode16(data, binary.LittleEndian)
	case len(data) >= 2 && string(data[:2]) == mark16BE:
		return decode16(data, binary.BigEndian)
	case len(data) >= 3 && string(data[:3]) == mark8:
		return document{mark: mark8, text: data[3:]}
	}
	return document{text: data}
}

func decode16(data []byte, order binary.ByteOrder) document {
	d := document{mark: string(data[:2]), order: order, text: make([]byte, 0, len(data)/2+len(data)/8)}
	rest := data[2:]
	for ; len(rest) >= 2; rest = rest[2:] {
		unit := rune(order.Uint16(rest))
		if len(rest) >= 4 {
			if r := utf16.DecodeRune(unit, rune(order.Uint16(rest[2:]))); r != utf8.RuneError {
				d.text = utf8.AppendRune(d.text, r)
				rest = rest[2:]
				continue
			}
		}
		if utf16.IsSurrogate(unit) {
			d.text = append(d.text, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0x3f, 0x80|byte(unit)&0x3f)
			continue
		}
		d.text = utf8.AppendRune(d.text, unit)
	}
	d.odd = rest
	return d
}

// bom returns the byte order mark as a character of the text.
func (d document) bom() string {
	if d.mark == "" {
		return ""
	}
	return "\ufeff"
}

// encode returns text in the encoding of the file.
func (d document) encode(text []byte) []byte {
	if d.order == nil {
		if d.mark == "" {
			return text
		}
		return append([]byte(d.mark), text...)
	}
	data := append(make([]byte, 0, 2*len(text)+4), d.mark...)
	unit := func(u rune) {
		var two [2]byte
		d.order.PutUint16(two[:], uint16(u))
		data = append(data, two[:]...)
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1 && isHalf(text[i:]):
			unit(rune(text[i]&0x0f)<<12 | rune(text[i+1]&0x3f)<<6 | rune(text[i+2]&0x3f))
			size = 3
		case r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			unit(high)
			unit(low)
		default:
			unit(r)
		}
		i += size
	}
	return append(data, d.odd...)
}

// isHalf reports whether b begins with an unpaired surrogate, as decode16 writes it.
func isHalf(b []byte) bool {
	return len(b) >= 3 && b[0] == 0xed && b[1]&0xe0 == 0xa0 && b[2]&0xc0 == 0x80
}
