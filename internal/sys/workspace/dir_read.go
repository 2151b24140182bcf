package workspace

import (
	"crypto/sha256"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	"omniagent/internal/kit/fault"
)

// racy is the time within which two changes may leave the same time on a file, because clocks of file systems are
// coarse: 2 s on FAT.
const racy = 2 * time.Second

// Fingerprint identifies the content of a file, to detect changes. The zero value means that there is no file.
type Fingerprint struct {
	Hash     [sha256.Size]byte
	size     int64
	modified time.Time
	changed  int64  // when the inode changed, if known; programs cannot set this time
	inode    uint64 // 0 if the system does not report it
	taken    time.Time
}

// Exists reports whether there was a file.
func (p Fingerprint) Exists() bool { return !p.taken.IsZero() }

// Same reports whether both have the same content, whatever their times.
func (p Fingerprint) Same(other Fingerprint) bool {
	return p.Exists() == other.Exists() && p.Hash == other.Hash && p.size == other.size
}

// untouched reports whether info alone proves that the file has not changed.
func (p Fingerprint) untouched(info fs.FileInfo) bool {
	inode, changed := identity(info)
	return p.Exists() && inode == p.inode && inode != 0 && changed == p.changed && changed != 0 &&
		info.Size() == p.size && info.ModTime().Equal(p.modified) && p.taken.Sub(p.modified) > racy
}

// FingerprintOf returns the fingerprint of a content.
func FingerprintOf(data []byte) Fingerprint {
	return Fingerprint{Hash: sha256.Sum256(data), size: int64(len(data)), taken: time.Now()}
}

// Reading is an open file that computes the fingerprint while it is read.
type Reading struct {
	file  *os.File
	info  fs.FileInfo
	hash  hash.Hash
	size  int64
	taken time.Time
}

// Reading opens a regular file.
func (d *Dir) Reading(name string) (*Reading, error) {
	f, info, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	return reading(f, info), nil
}

func reading(f *os.File, info fs.FileInfo) *Reading {
	return &Reading{file: f, info: info, hash: sha256.New(), taken: time.Now()}
}

// Read reads the next bytes.
func (r *Reading) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	r.hash.Write(p[:n])
	r.size += int64(n)
	return n, err
}

// Size returns the size of the file when it was opened.
func (r *Reading) Size() int64 { return r.info.Size() }

// Close closes the file.
func (r *Reading) Close() error { return r.file.Close() }

// Fingerprint returns the fingerprint of the bytes that were read. It is the file's only if everything was read.
func (r *Reading) Fingerprint() Fingerprint {
	inode, changed := identity(r.info)
	return Fingerprint{
		Hash: [sha256.Size]byte(r.hash.Sum(nil)), size: r.size, modified: r.info.ModTime(), changed: changed,
		inode: inode, taken: r.taken,
	}
}

// Load reads a regular file of up to limit bytes and returns its fingerprint.
func (d *Dir) Load(name string, limit int64) ([]byte, Fingerprint, error) {
	r, err := d.Reading(name)
	if err != nil {
		return nil, Fingerprint{}, err
	}
	defer r.Close()
	if r.Size() > limit {
		return nil, Fingerprint{}, tooLargeFile(name, r.Size(), limit)
	}
	// The size is only a hint: it is 0 for files in /proc, and a file may grow while it is read.
	data, err := readUpTo(r, r.Size(), limit+1)
	if err != nil {
		return nil, Fingerprint{}, d.toFault("read", name, err)
	}
	if int64(len(data)) > limit {
		return nil, Fingerprint{}, tooLargeFile(name, int64(len(data)), limit)
	}
	return data, r.Fingerprint(), nil
}

// readUpTo reads into a buffer of the expected size, so that a large file is not copied while the buffer grows.
func readUpTo(r io.Reader, expected, limit int64) ([]byte, error) {
	data := make([]byte, 0, min(expected+1, limit))
	r = io.LimitReader(r, limit)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// checkUnchanged returns an error unless the slot has the file of the fingerprint. It looks in the open directory, not
// by the full name, which may lead elsewhere by now.
func (d *Dir) checkUnchanged(parent *os.Root, at slot, want Fingerprint) error {
	info, err := parent.Lstat(at.base)
	switch {
	case os.IsNotExist(err) && !want.Exists():
		return nil
	case err != nil && !os.IsNotExist(err):
		return d.toFault("read", at.name, err)
	case err != nil, !want.Exists():
		return changedSince(at.name)
	case want.untouched(info):
		return nil
	case info.Size() != want.size, !info.Mode().IsRegular():
		return changedSince(at.name)
	}
	f, err := parent.OpenFile(at.base, os.O_RDONLY|openWithoutBlocking, 0)
	if err != nil {
		return changedSince(at.name)
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil || !os.SameFile(info, now) {
		return changedSince(at.name)
	}
	r := reading(f, now)
	if _, err := io.Copy(io.Discard, io.LimitReader(r, want.size+1)); err != nil || !r.Fingerprint().Same(want) {
		return changedSince(at.name)
	}
	return nil
}

func changedSince(name string) error {
	return reasoned(fault.New(fault.ConcurrentModification, "%s changed since it was read", printable(name)), name,
		"changed").
		Hint("Read the file again.")
}

func tooLargeFile(name string, size, limit int64) error {
	f := fault.Of(tooLarge(name, size, limit))
	return f.With("reason", "too-large")
}
