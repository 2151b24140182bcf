package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

const (
	mostStores = 32   // directories of objects that lead to each other
	mostPacks  = 4096 // in one of them
	// The work for one object: a hostile chain of deltas could make any amount of it.
	mostDeltas = 4096
	perObject  = 16        // times the limit of the caller
	forBases   = 256 << 20 // and this: a small object may be a part of a large one
)

// objects is a directory of objects: loose ones, and packs.
type objects struct {
	dir   *workspace.Dir
	packs []*pack
}

// Close closes the files that Blob and Size have opened.
func (r *Repository) Close() {
	for _, s := range r.stores {
		for _, p := range s.packs {
			p.Close()
		}
		_ = s.dir.Close()
	}
	r.stores, r.opened = nil, false
}

// Blob returns the content of a blob of at most limit bytes. It may be called by one goroutine at a time, as Size.
func (r *Repository) Blob(id ID, limit int64) ([]byte, error) {
	w := &work{repository: r, left: perObject*limit + forBases}
	kind, size, data, err := w.find(id, true)
	switch {
	case err != nil:
		return nil, err
	case kind != blobObject:
		return nil, r.missing(id, "it is not a blob")
	case size > limit:
		return nil, fault.New(fault.FieldTooLarge, "the blob %s has %d bytes, more than %d", r.name(id), size, limit)
	case r.Sum(data) != id:
		return nil, r.missing(id, "its content has another hash")
	}
	return data, nil
}

// Has reports whether the repository has an object of any type, given by its name.
func (r *Repository) Has(name string) bool {
	var id ID
	raw, err := hex.DecodeString(name)
	if err != nil || copy(id[:], raw) != r.size || len(raw) != r.size {
		return false
	}
	return r.has(id, name)
}

func (r *Repository) has(id ID, name string) bool {
	r.open()
	for _, s := range r.stores {
		for _, p := range s.packs {
			if _, ok := p.find(id); ok {
				return true
			}
		}
	}
	for _, s := range r.stores {
		if f, _, err := s.dir.Open(name[:2] + "/" + name[2:]); err == nil {
			_ = f.Close()
			return true
		}
	}
	return false
}

// HasPack reports whether the repository has all objects of a pack, which is in another directory of objects. One that
// cannot be read is not known.
func (r *Repository) HasPack(objects, pack string) bool {
	dir, err := workspace.OpenDir(objects)
	if err != nil {
		return false
	}
	defer dir.Close()
	p, err := openPack(dir, pack, r.size)
	if err != nil {
		return false
	}
	defer p.Close()
	for i := range int(p.fanOut[255]) {
		var id ID
		if _, err := p.table.ReadAt(id[:r.size], indexHead+int64(i)*int64(r.size)); err != nil ||
			!r.has(id, r.name(id)) {
			return false
		}
	}
	return true
}

// Size returns the size of a blob, without reading it.
func (r *Repository) Size(id ID) (int64, error) {
	w := &work{repository: r}
	_, size, _, err := w.find(id, false)
	return size, err
}

func (r *Repository) missing(id ID, reason string) *fault.Fault {
	return fault.New(fault.NotFoundCode, "the object %s of %s cannot be read: %s", r.name(id), r.common, reason)
}

// open finds the directories of objects: the repository's own, and those that it borrows from.
func (r *Repository) open() {
	if r.opened {
		return
	}
	r.opened = true
	todo, seen := []string{filepath.Join(r.common, "objects")}, map[string]bool{}
	for len(todo) > 0 && len(r.stores) < mostStores {
		path := todo[0]
		todo = todo[1:]
		dir, err := workspace.OpenDir(path)
		if err != nil || seen[dir.Path()] {
			continue
		}
		seen[dir.Path()] = true
		s := &objects{dir: dir}
		r.stores = append(r.stores, s)
		names, _, _ := dir.ReadDir("pack", mostPacks)
		for _, name := range names {
			if base, ok := strings.CutSuffix(name.Name(), ".idx"); ok {
				if p, err := openPack(dir, "pack/"+base, r.size); err == nil {
					s.packs = append(s.packs, p)
				}
			}
		}
		text, _ := dir.ReadFile("info/alternates", SmallFile)
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimRight(line, "\n"); line != "" && line[0] != '#' {
				todo = append(todo, absolute(path, line))
			}
		}
	}
}

// objectKind is the type of an object, by its number in a pack.
type objectKind int

const (
	blobObject  objectKind = 3
	offsetDelta objectKind = 6
	namedDelta  objectKind = 7
)

// work is the search for one object, with what it may still cost.
type work struct {
	repository *Repository
	left       int64 // bytes to make
	deltas     int
}

// find looks for an object in packs and then among the loose ones. It returns the content only if whole.
func (w *work) find(id ID, whole bool) (objectKind, int64, []byte, error) {
	w.repository.open()
	for _, s := range w.repository.stores {
		for _, p := range s.packs {
			if at, ok := p.find(id); ok {
				return w.packed(p, at, whole)
			}
		}
	}
	for _, s := range w.repository.stores {
		name := w.repository.name(id)
		f, _, err := s.dir.Open(name[:2] + "/" + name[2:])
		if err != nil {
			continue
		}
		defer f.Close()
		return w.loose(f, id, whole)
	}
	return 0, 0, nil, w.repository.missing(id, "the repository does not have it")
}

func (w *work) loose(f io.Reader, id ID, whole bool) (objectKind, int64, []byte, error) {
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return 0, 0, nil, w.repository.missing(id, err.Error())
	}
	r := bufio.NewReader(z)
	head := make([]byte, 0, 32)
	for len(head) < cap(head) {
		b, err := r.ReadByte()
		if err != nil || b == 0 {
			break
		}
		head = append(head, b)
	}
	name, digits, _ := bytes.Cut(head, []byte{' '})
	size, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || size < 0 {
		return 0, 0, nil, w.repository.missing(id, "its first line is damaged")
	}
	kind := objectKind(0)
	if string(name) == "blob" {
		kind = blobObject
	}
	if !whole {
		return kind, size, nil, nil
	}
	data, err := w.inflate(r, size)
	return kind, size, data, err
}

// packed reads an object of a pack: as it is, or as the changes of another one.
func (w *work) packed(p *pack, at int64, whole bool) (objectKind, int64, []byte, error) {
	o, err := p.object(at)
	if err != nil {
		return 0, 0, nil, err
	}
	defer o.Close()
	if o.kind != offsetDelta && o.kind != namedDelta {
		if !whole {
			return o.kind, o.size, nil, nil
		}
		data, err := w.inflate(o, o.size)
		return o.kind, o.size, data, err
	}
	if !whole {
		size, err := o.resultSize()
		return blobObject, size, nil, err
	}
	if w.deltas++; w.deltas > mostDeltas {
		return 0, 0, nil, fmt.Errorf("%s: a chain of deltas is too long", p.name)
	}
	delta, err := w.inflate(o, o.size)
	if err != nil {
		return 0, 0, nil, err
	}
	var base []byte
	var kind objectKind
	if o.kind == offsetDelta {
		kind, _, base, err = w.packed(p, o.base, true)
	} else {
		kind, _, base, err = w.find(o.baseID, true)
	}
	if err != nil {
		return 0, 0, nil, err
	}
	data, err := apply(base, delta, w.left)
	w.left -= int64(len(data))
	return kind, int64(len(data)), data, err
}

func (w *work) inflate(r io.Reader, size int64) ([]byte, error) {
	if size > w.left {
		return nil, tooLarge(size)
	}
	w.left -= size
	data := make([]byte, size)
	_, err := io.ReadFull(r, data)
	return data, err
}

func tooLarge(size int64) error {
	return fault.New(fault.FieldTooLarge, "an object of %d bytes is larger than what was asked for allows", size)
}
