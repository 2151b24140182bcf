package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // the hash of git
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// CheckObject checks a file in an objects directory: that a loose object has the content that its name is the hash of,
// and that a pack file ends with the checksum of what precedes it. Other files are not checked.
func CheckObject(dir, name string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	f, err := os.Open(path)
	if err != nil {
		return damaged(path, "it cannot be opened").Because(err)
	}
	defer f.Close()
	folder, base, _ := strings.Cut(name, "/")
	ok := true
	if folder == "pack" {
		switch filepath.Ext(base) {
		case ".pack", ".idx", ".rev", ".mtimes", ".bitmap":
			ok, err = endsInChecksum(f, base)
		}
	} else {
		ok, err = hasContentOf(f, folder+base)
	}
	if err != nil {
		return damaged(path, "%v", err).Because(err)
	}
	if !ok {
		return damaged(path, "its checksum is wrong")
	}
	return nil
}

// hasherOf returns the hash of so many bytes.
func hasherOf(size int) hash.Hash {
	if size == sha256.Size {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // the hash of git
}

func hasContentOf(f io.Reader, name string) (bool, error) {
	z, err := zlib.NewReader(f)
	if err != nil {
		return false, err
	}
	h := hasherOf(hex.DecodedLen(len(name)))
	if _, err = io.Copy(h, z); err != nil {
		return false, err
	}
	return hex.EncodeToString(h.Sum(nil)) == name, nil
}

func endsInChecksum(f *os.File, name string) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	_, digits, _ := strings.Cut(strings.TrimSuffix(name, filepath.Ext(name)), "-")
	h := hasherOf(hex.DecodedLen(len(digits)))
	end := info.Size() - int64(h.Size())
	if end < 0 {
		return false, errors.New("it is truncated")
	}
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, end)); err != nil {
		return false, err
	}
	sum := make([]byte, h.Size())
	if _, err := f.ReadAt(sum, end); err != nil {
		return false, err
	}
	return bytes.Equal(sum, h.Sum(nil)), nil
}
