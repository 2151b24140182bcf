package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/sys/workspace"
)

// blobs is the directory of the bodies that are too large for a line of the journal. It is empty for a journal without
// such a directory.
type blobs string

const (
	blobsEnding = ".blobs"

	// largestBody is the size above which a record's data is stored in a separate file.
	largestBody = 256 << 10
	blobHead    = `{"blob":"`
)

func (s Store) blobs(id string) blobs { return blobs(s.file(id, blobsEnding)) }

// reference names the file with the data of a record.
type reference struct {
	Blob string `json:"blob"` // its SHA-256
	Size int    `json:"size"`
}

// referenceOf parses a record's data as a reference. The data of a record itself never begins like one.
func referenceOf(data []byte) (r reference, is bool) {
	if !bytes.HasPrefix(data, []byte(blobHead)) || json.Unmarshal(data, &r) != nil {
		return r, false
	}
	sum, err := hex.DecodeString(r.Blob)
	return r, err == nil && len(sum) == sha256.Size && r.Blob == strings.ToLower(r.Blob)
}

// put writes a body and returns the reference to it. The body is on disk when put returns, before the record that
// refers to it.
func (b blobs) put(body []byte) ([]byte, error) {
	sum := sha256.Sum256(body)
	r := reference{hex.EncodeToString(sum[:]), len(body)}
	if err := workspace.MkdirAll(string(b)); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(string(b)); err != nil || !info.IsDir() {
		return nil, noFile(string(b))
	}
	if err := workspace.WriteFile(filepath.Join(string(b), r.Blob), body, 0o600); err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

// resolve returns the data that a reference names, and other data unchanged.
func (b blobs) resolve(data []byte) ([]byte, error) {
	r, is := referenceOf(data)
	if !is {
		return data, nil
	}
	if b == "" {
		return nil, fmt.Errorf("its data, %s, is elsewhere", r.Blob)
	}
	body, err := readRegular(filepath.Join(string(b), r.Blob), r.Size)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the file %s with its data is missing", r.Blob)
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != r.Blob {
		return nil, fmt.Errorf("the file %s with its data has been changed", r.Blob)
	}
	return body, nil
}

// readRegular reads a regular file of a known size. It follows no links and cannot block.
func readRegular(path string, size int) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != int64(size) {
		return nil, fmt.Errorf("the file %s with its data has been changed", filepath.Base(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body := make([]byte, size)
	_, err = io.ReadFull(f, body)
	return body, err
}

// size returns the total size of the bodies.
func (b blobs) size() (size int64) {
	files, _ := os.ReadDir(string(b))
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}
