package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"time"
)

// recordAt is the position of a record in its file, with the data in its head.
type recordAt struct {
	number, parent int64
	at             int64 // of the line
	size           int   // without its newline
	kind           kind
}

// journal is an index of a file. It does not keep the records in memory.
type journal struct {
	file           io.ReaderAt
	blobs          blobs
	places         []recordAt // records of the tree, by number, which is the order in the file
	marks          []recordAt // records of kindMark that were read when the file was opened
	latest         recordAt   // the last record of any kind
	order          order
	end            int64          // after the last complete line
	size           int64          // bytes read; if it exceeds end, the last line is torn
	unverified     bool           // only the head of the last record was read
	partialHistory bool           // part of a history that was being adopted follows end
	damaged        int            // number of damaged places
	damage         []Damaged      // the first of them
	bad            map[int]string // places that could not be decoded, and why
}

const (
	// usualLine is the size of a short typical line.
	usualLine = 1 << 10
	// peek is enough for the head of a line.
	peek = 256
	// mostDamage limits the list of damaged places.
	mostDamage = 100
)

// readJournal reads a file once.
func readJournal(file io.ReaderAt, blobs blobs) (*journal, error) {
	j := &journal{file: file, blobs: blobs}
	if f, ok := file.(interface{ Stat() (os.FileInfo, error) }); ok {
		if info, err := f.Stat(); err == nil {
			j.places = make([]recordAt, 0, 8+min(info.Size()/usualLine, 1<<20))
		}
	}
	var lines lineReader
	for {
		line, size, err := lines.line(file, -1)
		switch {
		case errors.Is(err, io.EOF):
			j.size = j.end + int64(size)
			if j.unverified {
				j.lookAgain()
			}
			j.leaveHalf()
			return j, nil
		case err != nil:
			return j, err
		case len(line) < size-1:
			j.noteDamage(j.end, size-1, notARecord)
		default:
			j.line(line)
		}
		j.end += int64(size)
		lines.at = j.end
	}
}

// leaveHalf treats a history that was not adopted completely as torn, from its first record on.
func (j *journal) leaveHalf() {
	i := len(j.places) - 1
	if i < 0 || j.places[i].at+int64(j.places[i].size)+1 != j.end {
		return // the end is damaged, not torn
	}
	last := j.places[i].number
	for i > 0 && j.places[i].kind == kindMessage {
		i--
	}
	if j.places[i].kind != kindAdopted {
		return
	}
	e, err := j.decode(j.places[i])
	if err != nil || last >= e.Number+int64(e.Record.(Adopted).Messages) {
		return
	}
	j.end, j.partialHistory = j.places[i].at, true
	j.order = order{last: j.places[i].number - 1}
	j.places = j.places[:i]
}

// decode reads the record at a place.
func (j *journal) decode(p recordAt) (Entry, error) {
	line, err := j.raw(p)
	if err != nil {
		return Entry{}, err
	}
	return j.blobs.decode(line)
}

// line adds the line at the end, without its newline. It only reads the head of an event in sequence, because most
// records are events, and readers verify their checksums.
func (j *journal) line(line []byte) {
	// nearly all lines are like this
	if h, ok := parseHead(line); ok && h.number == j.order.last+1 && h.data < len(line) && line[len(line)-1] == '}' {
		if unsure := h.kind == kindLogged && h.sum != nil; unsure || h.holds(line) {
			j.order.last, j.order.lost, j.unverified = h.number, false, unsure
			j.add(recordAt{h.number, h.parent, j.end, len(line), h.kind})
			return
		}
	}
	if j.unverified && len(line) > 0 { // the next line may have been merged with it
		j.lookAgain()
	}
	j.take(line, j.end)
}

// take adds what a line that begins at an offset contains.
func (j *journal) take(line []byte, start int64) {
	j.order.divide(line, pieces(line), start, func(i item) {
		if i.line == nil {
			j.note(i.damage())
		} else {
			j.add(i.recordAt)
		}
	})
}

// lookAgain adds the last line again, because only its head was read.
func (j *journal) lookAgain() {
	j.unverified = false
	line, err := j.raw(j.latest)
	if _, ok := whole(line); err != nil || ok {
		return
	}
	at := j.latest.at
	j.order = order{last: j.latest.number - 1}
	j.latest = recordAt{}
	if len(j.places) > 0 {
		j.latest = j.places[len(j.places)-1]
	}
	j.take(line, at)
}

// noteDamage records a damaged place.
func (j *journal) noteDamage(at int64, size int, reason string) {
	j.order.lost = true
	j.note(Damaged{at, size, reason})
}

func (j *journal) note(d Damaged) {
	if j.damaged++; len(j.damage) < mostDamage {
		j.damage = append(j.damage, d)
	}
}

// add adds a record.
func (j *journal) add(p recordAt) {
	if j.latest = p; p.kind.inTree() {
		j.places = append(j.places, p)
	} else if p.kind == kindMark {
		j.marks = append(j.marks, p)
	}
}

// seq returns the number of the last record of any kind.
func (j *journal) seq() int64 { return j.order.last }

// last returns the number of the last record of the tree, or 0.
func (j *journal) last() int64 {
	if len(j.places) == 0 {
		return 0
	}
	return j.places[len(j.places)-1].number
}

// index returns the index of a record in places. If its own line is damaged, it returns the nearest one before it, or
// -1.
func (j *journal) index(number int64) int {
	return sort.Search(len(j.places), func(i int) bool { return j.places[i].number > number }) - 1
}

// path returns the path from the first record to the one with that number, as indexes of places.
func (j *journal) path(number int64) []int {
	way := make([]int, 0, len(j.places))
	for i := j.index(number); i >= 0; {
		way = append(way, i)
		parent := min(j.places[i].parent, j.places[i].number-1) // so that the path ends even if a line is wrong
		switch {
		case parent <= 0:
			i = -1
		case i > 0 && j.places[i-1].number == parent:
			i--
		default:
			i = j.index(parent)
		}
	}
	slices.Reverse(way)
	return way
}

// raw returns the line of a record.
func (j *journal) raw(p recordAt) ([]byte, error) {
	line := make([]byte, p.size)
	if _, err := j.file.ReadAt(line, p.at); err != nil {
		return nil, fmt.Errorf("record %d cannot be read: %w", p.number, err)
	}
	return line, nil
}

func (j *journal) entry(i int) (Entry, error) {
	e, err := j.decode(j.places[i])
	if err != nil {
		if j.bad == nil {
			j.bad = map[int]string{}
		}
		j.bad[i] = err.Error()
		return Entry{}, fmt.Errorf("record %d is damaged: %w", j.places[i].number, err)
	}
	return e, nil
}

// time returns when a record was written.
func (j *journal) time(p recordAt) time.Time {
	line, err := j.raw(p)
	if err != nil {
		return time.Time{}
	}
	h, _ := whole(line)
	return h.when()
}

// broken returns the number of places and records that are known to be lost.
func (j *journal) broken() int { return j.damaged + len(j.bad) }

// list returns the known damage in the order of the file.
func (j *journal) list() []Damaged {
	all := slices.Clone(j.damage)
	for i, reason := range j.bad {
		if len(all) < 2*mostDamage {
			all = append(all, Damaged{j.places[i].at, j.places[i].size, reason})
		}
	}
	slices.SortFunc(all, func(a, b Damaged) int { return cmp.Compare(a.At, b.At) })
	return all
}
