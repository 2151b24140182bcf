package snapshot

import (
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"

	"omniagent/internal/kit/ident"
)

// Retain deletes the contents for which keep returns false. No other process may use the store meanwhile.
func (s *Store) Retain(keep func(sum [sha256.Size]byte) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	s.held = nil
	if err := s.look(); err != nil {
		return err
	}
	wanted, dropped := map[string][]contentAt{}, map[string]bool{}
	for sum, r := range s.held {
		if keep(sum) {
			wanted[r.pack] = append(wanted[r.pack], r)
		} else {
			dropped[r.pack] = true
		}
	}
	s.held = nil
	for pack := range dropped {
		if err := s.rewrite(pack, wanted[pack]); err != nil {
			return err
		}
		if err := os.Remove(pack); err != nil {
			return err
		}
	}
	return nil
}

// rewrite copies some records of a pack to a new one.
func (s *Store) rewrite(pack string, wanted []contentAt) error {
	if len(wanted) == 0 {
		return nil
	}
	from, err := os.Open(pack)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(s.dir, ident.Ordered()+packSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, r := range wanted {
		if _, err := io.Copy(to, io.NewSectionReader(from, r.at-headerSize, headerSize+r.size)); err != nil {
			return err
		}
	}
	return to.Sync()
}
