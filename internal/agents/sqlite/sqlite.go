// Package sqlite reads SQLite databases in their documented file format: rows by number, and numbers by the beginning
// of an index. It exists because an agent keeps its records only in such a database, and a library for SQLite would be
// larger than the rest of this program.
//
// It promises that it takes no lock and writes nothing, and that its work and its memory are bounded. It reads pages
// from the write-ahead log up to the last commit. If the log is restarted meanwhile, Valid reports false.
//
// It returns an error for files that do not fit the format, for later versions of it, and for databases in UTF-16.
package sqlite

import (
	"encoding/binary"
	"os"
)

// File is an open database.
type File struct {
	db, wal *os.File // wal is nil without a write-ahead log
	header  [32]byte // of the wal, at Open
	size    int      // of a page
	usable  int      // of a page, without the reserved bytes at its end
	frames  map[uint32]int64
	nodes   map[uint32]node // a cache: most are needed again for the next row
	left    int             // number of pages that may still be read
}

const (
	maxFrames = 1 << 16
	// The limit on the number of page reads. A row needs one read at each level of its table, so a valid database needs
	// several reads of each page. In a damaged one the pages may form a cycle.
	leastLooks, looksForPage = 1 << 14, 256
	mostNodes                = 2048
	// MaxPayload is the number of bytes of a row that are read. The rest of a longer row is ignored.
	MaxPayload = 1 << 20
	maxDepth   = 20
)

// ErrFormat is the error for a file that does not fit the format.
const ErrFormat = formatError("not a database that can be read")

type formatError string

func (e formatError) Error() string { return string(e) }

// Open opens the database at path, with its write-ahead log if it has one. It returns ErrFormat for other files.
func Open(path string) (*File, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, ErrFormat
	}
	db, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &File{db: db, frames: map[uint32]int64{}, nodes: map[uint32]node{}, left: leastLooks}
	var h [100]byte
	if _, err := db.ReadAt(h[:], 0); err != nil || string(h[:16]) != "SQLite format 3\x00" {
		s.Close()
		return nil, ErrFormat
	}
	if s.size = int(binary.BigEndian.Uint16(h[16:])); s.size == 1 {
		s.size = 1 << 16
	}
	s.usable = s.size - int(h[20])
	const newest = 2 // version of the format for readers
	if h[19] > newest || s.size < 512 || s.size&(s.size-1) != 0 || s.usable < 480 {
		s.Close()
		return nil, ErrFormat
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		if err := s.log(path + "-wal"); err != nil {
			s.Close()
			return nil, err
		}
	}
	if info, err := db.Stat(); err == nil {
		s.left += looksForPage * (int(info.Size())/s.size + len(s.frames))
	}
	// The encoding of a new database is only in its log, so read page 1 from there.
	if first, _, err := s.page(1); err != nil || binary.BigEndian.Uint32(first[56:]) != 1 {
		s.Close()
		return nil, ErrFormat
	}
	return s, nil
}

// Close closes the files.
func (s *File) Close() {
	s.db.Close()
	if s.wal != nil {
		s.wal.Close()
	}
}

// log finds the newest committed place of every page in the write-ahead log.
func (s *File) log(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	s.wal = f
	if _, err := f.ReadAt(s.header[:], 0); err != nil {
		return ErrFormat
	}
	if m := binary.BigEndian.Uint32(s.header[:]); m&^1 != 0x377f0682 ||
		int(binary.BigEndian.Uint32(s.header[8:])) != s.size {
		return ErrFormat
	}
	pending := map[uint32]int64{}
	for i := 0; ; i++ {
		at := int64(32) + int64(i)*int64(24+s.size)
		var h [24]byte
		if _, err := f.ReadAt(h[:], at); err != nil || string(h[8:16]) != string(s.header[16:24]) {
			return nil
		}
		if i == maxFrames {
			return ErrFormat
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

// Valid reports whether the log is still the one that was there at Open. If not, what was read may be torn.
func (s *File) Valid() bool {
	if s.wal == nil {
		return true
	}
	var h [32]byte
	_, err := s.wal.ReadAt(h[:], 0)
	return err == nil && h == s.header
}

// page reads a page. body is where its own header begins.
func (s *File) page(n uint32) (data []byte, body int, err error) {
	if s.left--; n == 0 || s.left < 0 {
		return nil, 0, ErrFormat
	}
	data = make([]byte, s.size)
	if at, ok := s.frames[n]; ok {
		_, err = s.wal.ReadAt(data, at)
	} else {
		_, err = s.db.ReadAt(data, int64(n-1)*int64(s.size))
	}
	if err != nil {
		return nil, 0, ErrFormat
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

func (s *File) node(n uint32) (node, error) {
	if out, known := s.nodes[n]; known && s.left > 0 {
		s.left--
		return out, nil
	}
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
		return node{}, ErrFormat
	}
	if first+2*count > s.usable {
		return node{}, ErrFormat
	}
	for i := range count {
		at := int(binary.BigEndian.Uint16(data[first+2*i:]))
		if at < first || at+4 > s.usable {
			return node{}, ErrFormat
		}
		out.cells = append(out.cells, data[at:s.usable])
	}
	if len(s.nodes) == mostNodes {
		clear(s.nodes)
	}
	s.nodes[n] = out
	return out, nil
}

// varint decodes a number of up to nine bytes, the ninth of which has eight bits. n is its length, or 0 if it is
// incomplete.
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

// payload returns the content of a row, with its overflow pages, up to MaxPayload bytes. Index pages keep less of it in
// the page than tables do.
func (s *File) payload(cell []byte, size uint64, index bool) ([]byte, error) {
	if size > 1<<31 {
		return nil, ErrFormat
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
		return nil, ErrFormat
	}
	out := append(make([]byte, 0, min(p, MaxPayload)), cell[:local]...)
	if local == p || len(out) >= MaxPayload {
		return out, nil
	}
	if len(cell) < local+4 {
		return nil, ErrFormat
	}
	next := binary.BigEndian.Uint32(cell[local:])
	for p = min(p, MaxPayload); len(out) < p; {
		data, _, err := s.page(next)
		if err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(data)
		out = append(out, data[4:min(s.usable, 4+p-len(out))]...)
	}
	return out, nil
}
