package session

import (
	"bytes"
	"fmt"
)

// piece is a part of a line: a record, or damage if reason is set.
type piece struct {
	head   head
	at     int // offset in the line
	size   int
	reason string
}

// The reasons for damage.
const (
	notARecord = "it is not a record"
	repeated   = "it repeats a record"
	tornEnd    = "the end of a record is missing"
	cutAway    = "the end of a record was missing; it was cut off"
	zeroedTail = "nothing but zeros"
)

// recordStart begins every line that we write. It cannot occur in a JSON string, where its quotation mark would be
// escaped.
const recordStart = `{"n":`

// mostTries limits the places of a damaged line that are tried as the beginning of a record.
const mostTries = 64

// pieces divides a line, without its newline, into records and damage. An intact line is one record. In a damaged line,
// only records with a matching checksum are used, because tool arguments may look like a record.
func pieces(line []byte) []piece {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	if h, ok := whole(line); ok {
		return []piece{{head: h, size: len(bytes.TrimRight(line, "\r"))}}
	}
	var found []piece
	done, tries := 0, 0
	for at := 0; at < len(line) && tries < mostTries; tries++ {
		i := bytes.Index(line[at:], []byte(recordStart))
		if i < 0 {
			break
		}
		at += i
		h, size := recordIn(line[at:])
		if size == 0 {
			at++
			continue
		}
		if at > done {
			found = append(found, piece{at: done, size: at - done, reason: notARecord})
		}
		found = append(found, piece{head: h, at: at, size: size})
		at += size
		done = at
	}
	if done < len(line) {
		found = append(found, piece{at: done, size: len(line) - done, reason: notARecord})
	}
	return found
}

// recordIn reads a record with a checksum at the beginning of a text, and returns its size, or 0.
func recordIn(text []byte) (head, int) {
	h, ok := parseHead(text)
	if !ok || h.sum == nil || h.number == 0 {
		return head{}, 0
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				if h.holds(text[:i+1]) {
					return h, i + 1
				}
				return head{}, 0
			}
		}
	}
	return head{}, 0
}

// order checks the numbers of records, which have no gaps.
type order struct {
	last int64 // number of the last record
	lost bool  // there was damage after it
}

// next adds a record, and reports whether it is in sequence. If gap is not empty, there is damage before the record;
// otherwise the record itself is damaged.
func (o *order) next(number int64) (gap string, ok bool) {
	if number <= o.last {
		o.lost = true
		return "", false
	}
	if missing := number - o.last - 1; missing > 0 && !o.lost {
		gap = fmt.Sprintf("records %d to %d are missing", o.last+1, number-1)
		if missing == 1 {
			gap = fmt.Sprintf("record %d is missing", number-1)
		}
	}
	o.last, o.lost = number, false
	return gap, true
}

// item is a record of a line, or damage there.
type item struct {
	// of damage, only number, which is the one that a lost record there would have, at and size
	recordAt
	line   []byte // of the record; nil for damage
	reason string // of the damage
}

func (i item) damage() Damaged { return Damaged{i.at, i.size, i.reason} }

// divide adds the pieces of a line that begins at an offset, and calls do for each record and each damaged place.
func (o *order) divide(line []byte, all []piece, start int64, do func(item)) {
	for _, p := range all {
		place := recordAt{o.last + 1, p.head.parent, start + int64(p.at), p.size, p.head.kind}
		if p.reason != "" {
			o.lost = true
			do(item{recordAt: place, reason: p.reason})
			continue
		}
		gap, ok := o.next(p.head.number)
		if !ok {
			do(item{recordAt: place, reason: repeated})
			continue
		}
		if gap != "" {
			do(item{recordAt: recordAt{number: place.number, at: place.at}, reason: gap})
		}
		place.number = p.head.number
		do(item{recordAt: place, line: line[p.at : p.at+p.size]})
	}
}

// isUnfinishedRecord reports whether a file ends as if its writer died in the middle of a record, or the machine lost
// power: with the beginning of the record of that number, or zeros.
func isUnfinishedRecord(end []byte, number int64) bool {
	text := bytes.TrimRight(end, "\x00")
	start := fmt.Appendf(nil, `{"n":%d,"p":`, number)
	n := min(len(text), len(start))
	return bytes.Equal(text[:n], start[:n])
}
