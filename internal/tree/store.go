package tree

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"omniagent/internal/fault"
	"omniagent/internal/workspace"
)

// Store is a directory that keeps the content of files, each once, compressed, under its SHA-256. Any number of
// processes may use one. It does not wait for the disk: after a power failure a file may be damaged, which is noticed
// when it is read.
type Store struct{ dir string }

// OpenStore opens the store in a directory, which it creates if necessary. The directory must be one that only the user
// can write, outside of every root.
func OpenStore(dir string) (*Store, error) {
	if err := workspace.MkdirAll(dir); err != nil {
		return nil, err
	}
	return &Store{dir}, nil
}

func (s *Store) path(sum [sha256.Size]byte) string {
	name := hex.EncodeToString(sum[:])
	return filepath.Join(s.dir, name[:2], name[2:])
}

// put keeps a content. It reports whether the store did not have it before.
func (s *Store) put(sum [sha256.Size]byte, data []byte) (added bool, err error) {
	path := s.path(sum)
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	var packed bytes.Buffer
	z, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		return false, err
	}
	if _, err = z.Write(data); err == nil {
		err = z.Close()
	}
	if err != nil {
		return false, err
	}
	temporary := path + "." + rand.Text()
	err = os.WriteFile(temporary, packed.Bytes(), 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = os.WriteFile(temporary, packed.Bytes(), 0o600)
		}
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return false, err
	}
	return true, nil
}

// get returns a content of at most limit bytes.
func (s *Store) get(sum [sha256.Size]byte, limit int64) ([]byte, error) {
	path := s.path(sum)
	packed, err := workspace.ReadFile(path, limit+limit/8+1<<10)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), limit+1))
	if err != nil || int64(len(data)) > limit || sha256.Sum256(data) != sum {
		return nil, fault.New(fault.Unsafe, "%s does not have the content that was kept there", path).Because(err)
	}
	return data, nil
}
