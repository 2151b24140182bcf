package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"time"
)

// place is where a record stands in its file, and what can be told of it without decoding it.
type place struct {
	number, parent int64
	at             int64 // of the line
	size           int   // without its newline
	kind           kind
}

// journal is what a file holds, by places: nothing of it stays in memory.
type journal struct {
	file    io.ReaderAt
	places  []place      // of the tree, by number, which is the order in the file
	marks   []place      // of the kind kindMark, as far as they were read when the file was opened
	seq     int64        // number of the last record of any kind
	end     int64        // behind the last whole line
	size    int64        // what was read; more than end: the last line is torn
	damaged int          // lines that are no records, empty ones aside
	bad     map[int]bool // places that could not be decoded when somebody tried
}

const (
	chunk = 128 << 10
	// usualLine is less than most lines have in the middle.
	usualLine = 1 << 10
	// peek is how much of a line its head fits into.
	peek = 256
)

// readJournal goes once over a file, in pieces.
func readJournal(file io.ReaderAt) (*journal, error) {
	j := &journal{file: file}
	buffer := make([]byte, chunk)
	if f, ok := file.(interface{ Stat() (os.FileInfo, error) }); ok {
		if info, err := f.Stat(); err == nil {
			j.places = make([]place, 0, 8+min(info.Size()/usualLine, 1<<20))
		}
	}
	held := 0 // bytes of an unfinished line at the start of the buffer
	for {
		n, err := file.ReadAt(buffer[held:], j.size)
		j.size += int64(n)
		filled := buffer[:held+n]
		held = 0
		for len(filled) > 0 {
			i := bytes.IndexByte(filled, '\n')
			if i < 0 {
				break
			}
			j.line(filled[:i])
			j.end += int64(i) + 1
			filled = filled[i+1:]
		}
		if held = copy(buffer, filled); held == len(buffer) {
			if held, err = j.long(buffer); err != nil {
				return j, err
			}
			continue
		}
		if errors.Is(err, io.EOF) {
			j.leaveHalf()
			return j, nil
		}
		if err != nil {
			return j, err
		}
	}
}

// leaveHalf takes a history that was not adopted to its end for what is torn: from its first record on.
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
	e, err := decodeAt(j, i)
	if err != nil || last >= e.Number+int64(e.Record.(Adopted).Messages) {
		return
	}
	j.end = j.places[i].at
	j.places = j.places[:i]
	j.seq = j.last()
}

func decodeAt(j *journal, i int) (Entry, error) { return decodeAtPlace(j, j.places[i]) }

func decodeAtPlace(j *journal, p place) (Entry, error) {
	line, err := j.rawAt(p)
	if err != nil {
		return Entry{}, err
	}
	return decode(line)
}

// long goes over a line that is longer than the buffer, which holds the beginning of it. It leaves what follows the line to the next read.
func (j *journal) long(buffer []byte) (held int, err error) {
	start := bytes.Clone(buffer[:peek])
	last := buffer[len(buffer)-1]
	for {
		n, err := j.file.ReadAt(buffer, j.size)
		i := bytes.IndexByte(buffer[:n], '\n')
		if i < 0 {
			j.size += int64(n)
			if n > 0 {
				last = buffer[n-1]
			}
			if errors.Is(err, io.EOF) {
				return 0, nil // torn: the next read finds the end again
			}
			if err != nil {
				return 0, err
			}
			continue
		}
		if i > 0 {
			last = buffer[i-1]
		}
		size := j.size + int64(i) - j.end
		if h, ok := parseHead(start); ok && last == '}' {
			j.add(h, int(size))
		} else {
			j.damaged++
		}
		j.end += size + 1
		j.size = j.end
		return 0, nil
	}
}

func (j *journal) line(line []byte) {
	if len(line) == 0 {
		return
	}
	h, ok := parseHead(line)
	if !ok || line[len(line)-1] != '}' {
		h, _, ok = slowHead(bytes.TrimRight(line, "\r"))
	}
	if !ok {
		j.damaged++
		return
	}
	j.add(h, len(line))
}

// add takes a record in, unless its number says that it does not belong here.
func (j *journal) add(h head, size int) {
	if h.number <= j.seq {
		j.damaged++
		return
	}
	j.seq = h.number
	if at := (place{number: h.number, parent: h.parent, at: j.end, size: size, kind: h.kind}); h.kind.inTree() {
		j.places = append(j.places, at)
	} else if h.kind == kindMark {
		j.marks = append(j.marks, at)
	}
}

// last is the number of the last record of the tree; 0: there is none.
func (j *journal) last() int64 {
	if len(j.places) == 0 {
		return 0
	}
	return j.places[len(j.places)-1].number
}

// index is where a record stands in places, or where the nearest one before it does where its own line is damaged; -1: there is none.
func (j *journal) index(number int64) int {
	return sort.Search(len(j.places), func(i int) bool { return j.places[i].number > number }) - 1
}

// path is the way from the first record to the one with that number, as indexes of places.
func (j *journal) path(number int64) []int {
	way := make([]int, 0, len(j.places))
	for i := j.index(number); i >= 0; {
		way = append(way, i)
		parent := min(j.places[i].parent, j.places[i].number-1) // whatever a line says, the way ends
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

// raw is the line of a record.
func (j *journal) raw(i int) ([]byte, error) { return j.rawAt(j.places[i]) }

func (j *journal) rawAt(p place) ([]byte, error) {
	line := make([]byte, p.size)
	if _, err := j.file.ReadAt(line, p.at); err != nil {
		return nil, fmt.Errorf("record %d cannot be read: %w", p.number, err)
	}
	return line, nil
}

func (j *journal) entry(i int) (Entry, error) {
	e, err := decodeAt(j, i)
	if err != nil {
		if j.bad == nil {
			j.bad = map[int]bool{}
		}
		j.bad[i] = true
		return Entry{}, fmt.Errorf("record %d is damaged: %w", j.places[i].number, err)
	}
	return e, nil
}

// time is when a record was written; of a large one no more than its head is read.
func (j *journal) time(i int) time.Time {
	p := j.places[i]
	start := make([]byte, min(p.size, peek))
	if _, err := j.file.ReadAt(start, p.at); err != nil {
		return time.Time{}
	}
	h, ok := parseHead(start)
	if !ok {
		line, err := j.raw(i)
		if err != nil {
			return time.Time{}
		}
		h, _, _ = slowHead(bytes.TrimRight(line, "\r"))
	}
	return h.when()
}

// broken is how many lines and records are lost, as far as it is known by now.
func (j *journal) broken() int { return j.damaged + len(j.bad) }
