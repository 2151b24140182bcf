package opencode

import (
	"encoding/binary"
	"os"
)

// A store reads a database of SQLite as its documented file format has it: rows by number, and numbers by the beginning
// of an index. It exists because the CLI keeps its records nowhere else, and a library for SQLite would be larger than
// the rest of this program.
//
// It takes no lock and writes nothing. Pages that are still in the write-ahead log are taken from there up to its last
// commit; should the log begin anew while we read, valid tells so. What does not fit the format is an error, never a
// guess.
type store struct {
	db, wal *os.File // wal: nil where there is none
	header  [32]byte // of the wal, as it was
	size    int      // of a page
	usable  int      // of a page, without what is reserved at its end
	frames  map[uint32]int64
	left    int // pages that may still be read
}

const (
	maxFrames  = 1 << 16
	maxPages   = 1 << 14
	maxPayload = 1 << 20
	maxDepth   = 20
)

// errStore is the only error of a store: whatever does not fit.
const errStore = storeError("not a database that we can read")

type storeError string

func (e storeError) Error() string { return string(e) }

func openStore(path string) (*store, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, errStore
	}
	db, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &store{db: db, frames: map[uint32]int64{}, left: maxPages}
	var h [100]byte
	if _, err := db.ReadAt(h[:], 0); err != nil || string(h[:16]) != "SQLite format 3\x00" {
		s.close()
		return nil, errStore
	}
	if s.size = int(binary.BigEndian.Uint16(h[16:])); s.size == 1 {
		s.size = 1 << 16
	}
	s.usable = s.size - int(h[20])
	if s.size < 512 || s.size&(s.size-1) != 0 || s.usable < 480 {
		s.close()
		return nil, errStore
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		if err := s.log(path + "-wal"); err != nil {
			s.close()
			return nil, err
		}
	}
	// A new database says how text is encoded in its log only.
	if first, _, err := s.page(1); err != nil || binary.BigEndian.Uint32(first[56:]) != 1 {
		s.close()
		return nil, errStore
	}
	return s, nil
}

func (s *store) close() {
	s.db.Close()
	if s.wal != nil {
		s.wal.Close()
	}
}

// log finds the newest committed place of every page in the write-ahead log.
func (s *store) log(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	s.wal = f
	if _, err := f.ReadAt(s.header[:], 0); err != nil {
		return errStore
	}
	if m := binary.BigEndian.Uint32(s.header[:]); m&^1 != 0x377f0682 ||
		int(binary.BigEndian.Uint32(s.header[8:])) != s.size {
		return errStore
	}
	pending := map[uint32]int64{}
	for i := 0; ; i++ {
		at := int64(32) + int64(i)*int64(24+s.size)
		var h [24]byte
		if _, err := f.ReadAt(h[:], at); err != nil || string(h[8:16]) != string(s.header[16:24]) {
			return nil
		}
		if i == maxFrames {
			return errStore
		}
		pending[binary.BigEndian.Uint32(h[:])] = at + 24
		if binary.BigEndian.Uint32(h[4:]) != 0 { // a commit
			for page, at := range pending {
				s.frames[page] = at
			}
			clear(pending)
		}
	}
}

// valid says whether the log is still the one that we began with.
func (s *store) valid() bool {
	if s.wal == nil {
		return true
	}
	var h [32]byte
	_, err := s.wal.ReadAt(h[:], 0)
	return err == nil && h == s.header
}

// page reads a page. body is where its own header begins.
func (s *store) page(n uint32) (data []byte, body int, err error) {
	if s.left--; n == 0 || s.left < 0 {
		return nil, 0, errStore
	}
	data = make([]byte, s.size)
	if at, ok := s.frames[n]; ok {
		_, err = s.wal.ReadAt(data, at)
	} else {
		_, err = s.db.ReadAt(data, int64(n-1)*int64(s.size))
	}
	if err != nil {
		return nil, 0, errStore
	}
	if n == 1 {
		body = 100
	}
	return data, body, nil
}

// The kinds of pages of a tree.
const (
	indexInner = 2
	tableInner = 5
	indexLeaf  = 10
	tableLeaf  = 13
)

// node is one page of a tree.
type node struct {
	kind  byte
	right uint32 // the last child, of inner pages
	cells [][]byte
}

func (s *store) node(n uint32) (node, error) {
	data, body, err := s.page(n)
	if err != nil {
		return node{}, err
	}
	out := node{kind: data[body]}
	count := int(binary.BigEndian.Uint16(data[body+3:]))
	first := body + 8
	switch out.kind {
	case indexInner, tableInner:
		out.right = binary.BigEndian.Uint32(data[body+8:])
		first += 4
	case indexLeaf, tableLeaf:
	default:
		return node{}, errStore
	}
	if first+2*count > s.usable {
		return node{}, errStore
	}
	for i := range count {
		at := int(binary.BigEndian.Uint16(data[first+2*i:]))
		if at < first || at+4 > s.usable {
			return node{}, errStore
		}
		out.cells = append(out.cells, data[at:s.usable])
	}
	return out, nil
}

// varint reads a number of SQLite: up to nine bytes, the last of which has eight bits.
func varint(b []byte) (v uint64, n int) {
	for n < len(b) && n < 8 {
		v = v<<7 | uint64(b[n]&0x7f)
		n++
		if b[n-1]&0x80 == 0 {
			return v, n
		}
	}
	if n < len(b) && n == 8 {
		return v<<8 | uint64(b[8]), 9
	}
	return 0, 0
}

// payload puts the parts of a row together. Index pages keep less of it in the page than tables do. Of a row that is
// too large it returns the beginning.
func (s *store) payload(cell []byte, size uint64, index bool) ([]byte, error) {
	if size > 1<<31 {
		return nil, errStore
	}
	u, p := s.usable, int(size)
	most := u - 35
	if index {
		most = (u-12)*64/255 - 23
	}
	local := p
	if p > most {
		least := (u-12)*32/255 - 23
		if local = least + (p-least)%(u-4); local > most {
			local = least
		}
	}
	if local > len(cell) || local < 0 {
		return nil, errStore
	}
	out := append(make([]byte, 0, min(p, maxPayload)), cell[:local]...)
	if local == p || len(out) >= maxPayload {
		return out, nil
	}
	if len(cell) < local+4 {
		return nil, errStore
	}
	next := binary.BigEndian.Uint32(cell[local:])
	for p = min(p, maxPayload); len(out) < p; {
		data, _, err := s.page(next)
		if err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(data)
		out = append(out, data[4:min(s.usable, 4+p-len(out))]...)
	}
	return out, nil
}
