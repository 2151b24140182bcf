package tool

import (
	"bytes"
	"math"
)

// needle is a text to find. The search looks for its rarest byte, because the processor compares many bytes at a time.
type needle struct {
	text []byte
	fold bool // ignore case; text is in lower case
	rare int  // index of the rarest byte
}

func newNeedle(text string, fold bool) *needle {
	n := &needle{text: []byte(text), fold: fold}
	least := math.MaxInt
	for i := range n.text {
		if c := commonness(n.text[i]); c < least {
			n.rare, least = i, c
		}
	}
	return n
}

// commonness returns roughly how common a byte is in source code and prose.
func commonness(c byte) int {
	const order = "etaoinsr \nlcdum\tpfhg.,_yb()\"w=v/0-:xk1;*{}SETI2CARN[]'qjzODLPFM"
	if i := bytes.IndexByte([]byte(order), c); i >= 0 {
		return 2*len(order) - i
	}
	if c < 0x80 {
		return len(order)
	}
	return len(order) / 2 // part of a multi-byte character
}

// index returns where the needle is in text, or -1.
func (n *needle) index(text []byte) int {
	c := n.text[n.rare]
	if n.fold && 'a' <= c && c <= 'z' {
		return n.indexFolded(text, c, c-'a'+'A')
	}
	for at, misses := n.rare, 0; at < len(text); misses++ {
		i := bytes.IndexByte(text[at:], c)
		if i < 0 {
			return -1
		}
		if begin := at + i - n.rare; n.at(text, begin) {
			return begin
		}
		at += i + 1
		if misses > 64+at/32 && !n.fold { // the rarest byte is common here
			if i = bytes.Index(text[at-n.rare:], n.text); i < 0 {
				return -1
			}
			return at - n.rare + i
		}
	}
	return -1
}

// indexFolded searches for both forms of a letter.
func (n *needle) indexFolded(text []byte, small, capital byte) int {
	next := func(c byte, from int) int {
		if i := bytes.IndexByte(text[from:], c); i >= 0 {
			return from + i
		}
		return math.MaxInt
	}
	if n.rare >= len(text) {
		return -1
	}
	a, b := next(small, n.rare), next(capital, n.rare)
	for {
		at := min(a, b)
		if at == math.MaxInt {
			return -1
		}
		if n.at(text, at-n.rare) {
			return at - n.rare
		}
		if at == a {
			a = next(small, at+1)
		} else {
			b = next(capital, at+1)
		}
	}
}

// at reports whether the needle is at a position.
func (n *needle) at(text []byte, begin int) bool {
	if begin+len(n.text) > len(text) {
		return false
	}
	if !n.fold {
		return string(text[begin:begin+len(n.text)]) == string(n.text)
	}
	for i, want := range n.text {
		c := text[begin+i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want {
			return false
		}
	}
	return true
}

// needleHints remembers the next position of each needle in a text, and how dense matches are.
type needleHints struct {
	at    []int
	piece int
}

// nextPiece returns how much to search next. It doubles until something is found.
func (h *needleHints) nextPiece() int {
	h.piece = min(max(2*h.piece, leastPiece), mostPiece)
	return h.piece
}

func (h *needleHints) reset() { h.at = h.at[:0] }

// next returns the next position of any needle.
func (h *needleHints) next(needles []*needle, text []byte, from int) int {
	for len(h.at) < len(needles) {
		h.at = append(h.at, -1)
	}
	nearest := math.MaxInt
	for i, n := range needles {
		if h.at[i] < from {
			h.at[i] = math.MaxInt
			if at := n.index(text[from:]); at >= 0 {
				h.at[i] = from + at
			}
		}
		nearest = min(nearest, h.at[i])
	}
	if nearest == math.MaxInt {
		return -1
	}
	return nearest
}
