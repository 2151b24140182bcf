package git

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"omniagent/internal/sys/workspace"
)

// indexLimit allows for some ten million files.
const indexLimit = 1 << 30

// Entry is a file in the index, with its status at the time when it had the content of the blob.
type Entry struct {
	Name     string // the last element of its path
	Blob     ID
	Link     bool
	Exec     bool   // it is executable
	Size     uint32 // of the file, modulo 2^32
	Inode    uint32 // modulo 2^32; 0 where git does not record it
	Modified Time
	Changed  Time // zero where git does not record it
}

// Time is a time as the index records it. Some programs leave the nanoseconds zero.
type Time struct{ Seconds, Nanoseconds uint32 }

// TimeOf returns a time, given in nanoseconds since 1970, as the index records it.
func TimeOf(at int64) Time { return Time{uint32(at / 1e9), uint32(at % 1e9)} } //nolint:gosec // as git does

// Is reports whether both are the same time, as far as both are known.
func (t Time) Is(o Time) bool {
	return t.Seconds == o.Seconds &&
		(t.Nanoseconds == o.Nanoseconds || t.Nanoseconds == 0 || o.Nanoseconds == 0)
}

// Before reports whether t is certainly earlier.
func (t Time) Before(o Time) bool {
	if t.Seconds != o.Seconds || t.Nanoseconds == 0 || o.Nanoseconds == 0 {
		return t.Seconds < o.Seconds
	}
	return t.Nanoseconds < o.Nanoseconds
}

// Tracked are the files that git tracks, sorted by name, of each directory. The path of a directory is relative to the
// top of the working tree, with slashes; the top is "".
type Tracked map[string][]Entry

// Find returns the entry of a file.
func (t Tracked) Find(dir, name string) (Entry, bool) {
	list := t[dir]
	i, ok := slices.BinarySearchFunc(list, name, func(e Entry, name string) int {
		return strings.Compare(e.Name, name)
	})
	if !ok {
		return Entry{}, false
	}
	return list[i], true
}

// Index reads the index. Entries that do not vouch for a content have no Blob: those in conflict, those only intended
// to be added, submodules, and files written so late that their status proves nothing.
func (r *Repository) Index() (Tracked, error) { return r.IndexAt(filepath.Join(r.dir, "index")) }

// IndexAt reads an index of the repository that is kept elsewhere.
func (r *Repository) IndexAt(path string) (Tracked, error) {
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return nil, nil // nothing is tracked yet
	}
	if err != nil {
		return nil, damaged(path, "%v", err)
	}
	data, err := workspace.ReadFile(path, indexLimit)
	if err != nil {
		return nil, err
	}
	entries, reason := parseIndex(data, r.size, TimeOf(info.ModTime().UnixNano()))
	if reason != "" {
		return nil, damaged(path, "%s", reason)
	}
	return entries, nil
}

// The parts of an entry: ten numbers of four bytes, the hash, the flags, perhaps more flags, the name.
const (
	firstEntry             = 12
	modeAt, sizeAt, hashAt = 24, 36, 40

	regular, link = 0o100000, 0o120000
	extendedFlag  = 0x4000
	stageMask     = 0x3000
	intentToAdd   = 0x2000
	smallestEntry = hashAt + 20 + 2 + 1 // bytes: a hash, flags, a name
)

const isSplit = "it is split"

// Split reports whether a file that is an index has some of its entries in another file.
func Split(index []byte, hashSize int) bool {
	_, reason := parseIndex(index, hashSize, Time{})
	return reason == isSplit
}

// parseHead reads what is before the entries of an index of the versions 2, 3 and 4. reason says why it cannot.
func parseHead(data []byte) (version, count uint32, reason string) {
	if len(data) < firstEntry || string(data[:4]) != "DIRC" {
		return 0, 0, "it is not an index"
	}
	version, count = binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return 0, 0, "its version is not known"
	}
	return version, count, ""
}

// parseIndex reads an index. reason says why it cannot.
func parseIndex(data []byte, hashSize int, written Time) (entries Tracked, reason string) {
	version, count, reason := parseHead(data)
	if reason != "" {
		return nil, reason
	}
	text := unsafe.String(unsafe.SliceData(data), len(data)) // all names share it, and nobody changes it
	entries = Tracked{}
	at, previous := firstEntry, ""
	all := make([]Entry, 0, min(int(count), len(data)/smallestEntry)) // in the order of the index
	var dir string
	first := 0 // of all, in dir: neighbours are mostly in one directory
	leave := func() {
		list := all[first:len(all):len(all)]
		if earlier := entries[dir]; earlier != nil {
			list = append(earlier, list...)
		}
		entries[dir] = list
	}
	for range count {
		p := parser{data, text, at, hashSize, version}
		name, next, entry := p.entry(previous, written)
		if next == 0 {
			return nil, "it is truncated"
		}
		i := strings.LastIndexByte(name, '/')
		if in := name[:max(i, 0)]; in != dir {
			leave()
			dir, first = in, len(all)
		}
		entry.Name = name[i+1:]
		all = append(all, entry)
		at, previous = next, name
	}
	leave()
	for at+8 <= len(data)-hashSize { // extensions
		if string(data[at:at+4]) == "link" {
			return nil, isSplit
		}
		at += 8 + int(binary.BigEndian.Uint32(data[at+4:]))
	}
	return entries, ""
}

type parser struct {
	data     []byte
	text     string
	at       int
	hashSize int
	version  uint32
}

// entry reads one entry. next is where the following one begins, 0 if this one is truncated.
func (p parser) entry(previous string, written Time) (name string, next int, e Entry) {
	flagsAt := p.at + hashAt + p.hashSize
	if len(p.data) < flagsAt+4 {
		return "", 0, e
	}
	number := func(at int) uint32 { return binary.BigEndian.Uint32(p.data[p.at+at:]) }
	flags := binary.BigEndian.Uint16(p.data[flagsAt:])
	nameAt, intent := flagsAt+2, false
	if flags&extendedFlag != 0 {
		intent = binary.BigEndian.Uint16(p.data[nameAt:])&intentToAdd != 0
		nameAt += 2
	}
	name, next = p.name(nameAt, previous)
	mode := number(modeAt) &^ 0o7777
	e = Entry{Size: number(sizeAt), Inode: number(20), Link: mode == link, Exec: number(modeAt)&0o100 != 0}
	e.Changed, e.Modified = Time{number(0), number(4)}, Time{number(8), number(12)}
	if flags&stageMask == 0 && !intent && (mode == regular || mode == link) && e.Modified.Before(written) {
		copy(e.Blob[:], p.data[p.at+hashAt:flagsAt])
	}
	return name, next, e
}

// name reads a name. Version 4 writes only what differs from the previous one; the others pad.
func (p parser) name(at int, previous string) (name string, next int) {
	if p.version == 4 {
		var drop int
		if drop, at = offset(p.data, at); at == 0 || drop > len(previous) {
			return "", 0
		}
		end := bytes.IndexByte(p.data[at:], 0)
		if end < 0 {
			return "", 0
		}
		return previous[:len(previous)-drop] + p.text[at:at+end], at + end + 1
	}
	end := bytes.IndexByte(p.data[min(at, len(p.data)):], 0)
	if end < 0 {
		return "", 0
	}
	next = p.at + (at+end-p.at+8)&^7
	return p.text[at : at+end], min(next, len(p.data))
}

// offset reads a number of seven bits a byte, most significant first, where each further byte also adds one. next is 0
// if it is truncated or too large.
func offset(data []byte, at int) (n, next int) {
	for i := at; i < len(data) && i < at+8; i++ {
		n = n<<7 | int(data[i]&0x7f)
		if data[i]&0x80 == 0 {
			return n, i + 1
		}
		n++
	}
	return 0, 0
}

// SameIndex reports whether two index files list the same files, with the same modes and contents. The stat data that
// they cache does not count. A split index is never the same: most of its entries are in another file.
func SameIndex(a, b []byte, hashSize int) bool {
	one, ok := listed(a, hashSize)
	other, fine := listed(b, hashSize)
	return ok && fine && slices.Equal(one, other)
}

// listed returns what an index says of each file: name, mode, hash and stage.
func listed(data []byte, hashSize int) (lines []string, ok bool) {
	version, count, reason := parseHead(data)
	if reason != "" {
		return nil, false
	}
	text := string(data)
	at, previous := firstEntry, ""
	for range count {
		p := parser{data, text, at, hashSize, version}
		name, next, _ := p.entry(previous, Time{})
		if next == 0 {
			return nil, false
		}
		flagsAt := at + hashAt + hashSize
		flags := text[flagsAt : flagsAt+2]
		if flags[0]&0x40 != 0 {
			flags = text[flagsAt : flagsAt+4]
		}
		lines = append(lines, name+"\x00"+text[at+modeAt:at+modeAt+4]+text[at+hashAt:flagsAt]+flags)
		at, previous = next, name
	}
	for at+8 <= len(data)-hashSize { // git has to understand an extension with a small letter: it may list files too
		if extension := text[at : at+4]; extension[0] >= 'a' && extension != "sdir" {
			return nil, false
		}
		at += 8 + int(binary.BigEndian.Uint32(data[at+4:]))
	}
	return lines, true
}
