package snapshot

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

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/sys/workspace"
)

// Store is a directory that keeps the content of files, each once, under its SHA-256. Any number of processes may use
// one. put does not wait for the disk: after a power failure a content may be damaged, which is noticed when it is
// read.
//
// Creating a file costs more than writing one, so many contents are in one pack. Only the process that began a pack
// appends to it. A record is a header (the SHA-256, the length of what follows, and how that is packed) and the
// content. A record that is cut off ends the pack.
type Store struct {
	dir   string
	parts sync.Pool

	mu   sync.Mutex
	held map[[sha256.Size]byte]contentAt // nil: the packs were not read
	pack *os.File                        // ours; nil: none is open
	end  int64                           // of pack
}

// contentAt is where a content is.
type contentAt struct {
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
	largePart  = 1 << 20 // bytes that are worth a goroutine
)

// OpenStore opens the store in a directory, which is made for the first content. The directory must be one that only
// the user can write, outside of every root.
func OpenStore(dir string) *Store { return &Store{dir: dir} }

// look reads which contents the packs have. The caller holds the lock.
func (s *Store) look() error {
	if s.held != nil {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.held = map[[sha256.Size]byte]contentAt{}
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
		r := contentAt{
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
	_, known := s.held[sum]
	return known, err
}

// put keeps a content. added reports whether the store did not have it before.
func (s *Store) put(sum [sha256.Size]byte, data []byte) (added bool, err error) {
	if known, err := s.has(sum); known || err != nil {
		return false, err
	}
	parts := s.record(sum, data)
	defer func() {
		for _, p := range parts {
			s.parts.Put(p)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.held[sum]; known { // meanwhile
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
	at := s.end
	for _, p := range parts {
		if _, err := s.pack.WriteAt(p.out.Bytes(), at); err != nil {
			s.settle() // nothing is read behind a record that is cut off
			return false, err
		}
		at += int64(p.out.Len())
	}
	s.held[sum] = contentAt{
		s.pack.Name(), s.end + headerSize, at - s.end - headerSize, parts[0].out.Bytes()[headerSize-1],
	}
	s.end = at
	return true, nil
}

// Put keeps a content, and returns the SHA-256 under which Get finds it. Close ends the pack that Put has begun.
func (s *Store) Put(data []byte) (sum [sha256.Size]byte, err error) {
	sum = sha256.Sum256(data)
	_, err = s.put(sum, data)
	return sum, err
}

// part is a part of a record.
type part struct {
	out    bytes.Buffer
	writer *flate.Writer
}

// record returns a content as it is written into a pack. A large one is compressed in several parts in parallel, which
// form one stream.
func (s *Store) record(sum [sha256.Size]byte, data []byte) []*part {
	parts := make([]*part, min(workspace.Workers(), 1+len(data)/largePart))
	for i := range parts {
		var ok bool
		if parts[i], ok = s.parts.Get().(*part); !ok {
			parts[i] = &part{}
		}
		parts[i].out.Reset()
	}
	first := &parts[0].out
	first.Write(sum[:])
	first.Write(make([]byte, headerSize-sha256.Size))
	packed := byte(asItIs)
	if len(data) < smallest {
		first.Write(data)
	} else {
		packed = deflated
		share := (len(data) + len(parts) - 1) / len(parts)
		var group sync.WaitGroup
		for i, p := range parts[1:] {
			group.Go(func() { p.deflate(data[(i+1)*share:min((i+2)*share, len(data))], i+2 == len(parts)) })
		}
		parts[0].deflate(data[:min(share, len(data))], len(parts) == 1)
		group.Wait()
	}
	size := -headerSize
	for _, p := range parts {
		size += p.out.Len()
	}
	header := first.Bytes()[:headerSize]
	binary.BigEndian.PutUint32(header[sha256.Size:], uint32(size)) //nolint:gosec // Take has limits
	header[headerSize-1] = packed
	return parts
}

// deflate appends a part of a stream.
func (p *part) deflate(data []byte, last bool) {
	p.out.Grow(len(data) / 2)
	if p.writer == nil {
		p.writer, _ = flate.NewWriter(&p.out, flate.BestSpeed) // it fails for another level only
	} else {
		p.writer.Reset(&p.out)
	}
	_, _ = p.writer.Write(data) // a buffer takes everything
	if last {
		_ = p.writer.Close()
	} else {
		_ = p.writer.Flush()
	}
}

// Close ends the pack of this process. A later Put begins another one.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
}

// settle ends the pack. The caller holds the lock.
func (s *Store) settle() {
	if s.pack != nil {
		_ = s.pack.Truncate(s.end) // removes a record that is cut off
		_ = s.pack.Close()
		s.pack = nil
	}
}

// where returns where a content is. It reads the packs again if need be: another process may have kept the content
// since.
func (s *Store) where(sum [sha256.Size]byte) (r contentAt, found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 2 {
		if err := s.look(); err != nil {
			return r, false, err
		}
		if r, found = s.held[sum]; found {
			return r, true, nil
		}
		s.held = nil
	}
	return r, false, nil
}

// Get returns a content of at most limit bytes after checking its hash. It fails if the store does not have it.
func (s *Store) Get(sum [sha256.Size]byte, limit int64) ([]byte, error) {
	r, found, err := s.where(sum)
	if err != nil {
		return nil, err
	}
	if !found {
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
