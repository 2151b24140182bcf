package tree

import (
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"

	"omniagent/internal/ident"
)

// Retain deletes the contents that keep does not want, and returns how many bytes that freed. No other process may use
// the store meanwhile.
func (s *Store) Retain(keep func(sum [sha256.Size]byte) bool) (freed int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	if s.held = nil; s.look() != nil {
		return 0, s.look()
	}
	wanted, dropped := map[string][]record{}, map[string]bool{}
	for sum, r := range s.held {
		if keep(sum) {
			wanted[r.pack] = append(wanted[r.pack], r)
		} else {
			dropped[r.pack] = true
		}
	}
	s.held = nil
	for pack := range dropped {
		info, err := os.Stat(pack)
		if err != nil {
			return freed, err
		}
		kept, err := s.rewrite(pack, wanted[pack])
		if err != nil {
			return freed, err
		}
		if err := os.Remove(pack); err != nil {
			return freed, err
		}
		freed += info.Size() - kept
	}
	return freed, nil
}

// rewrite copies some records of a pack to a new one, and returns their size.
func (s *Store) rewrite(pack string, wanted []record) (size int64, err error) {
	if len(wanted) == 0 {
		return 0, nil
	}
	from, err := os.Open(pack)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(s.dir, ident.Ordered()+packSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer to.Close()
	for _, r := range wanted {
		n, err := io.Copy(to, io.NewSectionReader(from, r.at-headerSize, headerSize+r.size))
		if size += n; err != nil {
			return size, err
		}
	}
	return size, to.Sync()
}
