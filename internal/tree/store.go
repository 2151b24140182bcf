package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"

	"omniagent/internal/fault"
	"omniagent/internal/ident"
	"omniagent/internal/workspace"
)

// Store is a directory that keeps the content of files, each once, under its SHA-256. Any number of processes may use
// one. It does not wait for the disk: after a power failure a content may be damaged, which is noticed when it is read.
//
// To make a file costs more than to write one, so contents stand behind one another in packs. Nobody but the process
// that began a pack appends to it. A record is a header (the SHA-256, the length of what follows, how that is packed)
// and the content; one that is cut off ends the pack.
type Store struct {
	dir     string
	writers sync.Pool

	mu   sync.Mutex
	held map[[sha256.Size]byte]record // nil: the packs were not looked at
	pack *os.File                     // ours; nil: none is open
	end  int64                        // of pack
}

// record is where a content is.
type record struct {
	pack   string
	at     int64
	size   int64 // in the pack
	packed byte
}

// How a content is packed.
const (
	asItIs = iota
	deflated
)

const (
	packSuffix = ".pack"
	headerSize = sha256.Size + 4 + 1
	smallest   = 4 << 10 // bytes of a content that is worth compressing
)

// OpenStore opens the store in a directory, which is made for the first content. The directory must be one that only
// the user can write, outside of every root.
func OpenStore(dir string) *Store { return &Store{dir: dir} }

// look finds out what the packs have. It needs the lock.
func (s *Store) look() error {
	if s.held != nil {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.held = map[[sha256.Size]byte]record{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), packSuffix) {
			continue
		}
		if err := s.lookAt(filepath.Join(s.dir, e.Name())); err != nil {
			s.held = nil
			return err
		}
	}
	return nil
}

func (s *Store) lookAt(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var header [headerSize]byte
	for at := int64(0); at+headerSize <= info.Size(); {
		if _, err := f.ReadAt(header[:], at); err != nil {
			return err
		}
		r := record{
			pack: path, at: at + headerSize, size: int64(binary.BigEndian.Uint32(header[sha256.Size:])),
			packed: header[headerSize-1],
		}
		if at = r.at + r.size; at <= info.Size() {
			s.held[[sha256.Size]byte(header[:sha256.Size])] = r
		}
	}
	return nil
}

// has reports whether the store has a content.
func (s *Store) has(sum [sha256.Size]byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.look()
	_, there := s.held[sum]
	return there, err
}

// put keeps a content. It reports whether the store did not have it before.
func (s *Store) put(sum [sha256.Size]byte, data []byte) (added bool, err error) {
	if there, err := s.has(sum); there || err != nil {
		return false, err
	}
	line := s.line(sum, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.held[sum]; there { // meanwhile
		return false, nil
	}
	if s.pack == nil {
		if err = workspace.MkdirAll(s.dir); err != nil {
			return false, err
		}
		path := filepath.Join(s.dir, ident.Ordered()+packSuffix)
		if s.pack, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return false, err
		}
		s.end = 0
	}
	if _, err := s.pack.WriteAt(line, s.end); err != nil {
		s.settle() // nothing is read behind a record that is cut off
		return false, err
	}
	s.held[sum] = record{s.pack.Name(), s.end + headerSize, int64(len(line) - headerSize), line[headerSize-1]}
	s.end += int64(len(line))
	return true, nil
}

// Put keeps a content, and returns the name under which Get finds it. Close ends what Put has begun.
func (s *Store) Put(data []byte) (sum [sha256.Size]byte, err error) {
	sum = sha256.Sum256(data)
	_, err = s.put(sum, data)
	return sum, err
}

// line is the record of a content in a pack.
func (s *Store) line(sum [sha256.Size]byte, data []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, headerSize+len(data)))
	out.Write(sum[:])
	out.Write(make([]byte, headerSize-sha256.Size))
	packed := byte(asItIs)
	if len(data) >= smallest && s.deflate(out, data) {
		packed = deflated
	} else {
		out.Truncate(headerSize)
		out.Write(data)
	}
	line := out.Bytes()
	binary.BigEndian.PutUint32(line[sha256.Size:], uint32(len(line)-headerSize)) //nolint:gosec // Take has limits
	line[headerSize-1] = packed
	return line
}

func (s *Store) deflate(out io.Writer, data []byte) bool {
	z, ok := s.writers.Get().(*flate.Writer)
	if ok {
		z.Reset(out)
	} else {
		z, _ = flate.NewWriter(out, flate.BestSpeed) // it fails for another level only
	}
	defer s.writers.Put(z)
	_, err := z.Write(data)
	return errors.Join(err, z.Close()) == nil
}

// Close ends the pack of this process. A later content begins another.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
}

// settle needs the lock.
func (s *Store) settle() {
	if s.pack != nil {
		_ = s.pack.Truncate(s.end) // what is cut off only takes room
		_ = s.pack.Close()
		s.pack = nil
	}
}

// where returns where a content is. Another process may have kept it since the packs were looked at.
func (s *Store) where(sum [sha256.Size]byte) (r record, there bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 2 {
		if err := s.look(); err != nil {
			return r, false, err
		}
		if r, there = s.held[sum]; there {
			return r, true, nil
		}
		s.held = nil
	}
	return r, false, nil
}

// Get returns a content of at most limit bytes, whose hash it has checked.
func (s *Store) Get(sum [sha256.Size]byte, limit int64) ([]byte, error) {
	r, there, err := s.where(sum)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fault.New(fault.FileMissing, "%s does not have the content %x", s.dir, sum)
	}
	f, err := os.Open(r.pack)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := io.Reader(io.NewSectionReader(f, r.at, r.size))
	if r.packed == deflated {
		in = flate.NewReader(in)
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil || int64(len(data)) > limit || sha256.Sum256(data) != sum {
		return nil, fault.New(fault.Unsafe, "%s does not have the content that was kept there", r.pack).Because(err)
	}
	return data, nil
}
