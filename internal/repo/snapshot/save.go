package snapshot

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // for its size
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/git"
	"omniagent/internal/sys/workspace"
)

// firstLine is the first line of a saved index, with the version of its format.
const firstLine = "omniagent tree 4\n"

// The bits that say which fields of a content follow.
const (
	hasSum = 1 << iota
	hasBlob
	isKept
	isInGit
	hasRepository
	hasLongBlob // with SHA-256
)

// usualEntry is how many bytes an entry takes in most indexes.
const usualEntry = 56

// parts returns what SaveFile writes, without the checksum.
func (x *Index) parts() [][]byte {
	e := &encoder{}
	e.text = append(e.text, firstLine...)
	e.string(x.Root)
	e.signed(x.Taken.UnixNano())
	e.number(uint64(len(x.Gaps)))
	for _, g := range x.Gaps {
		e.string(g.Path)
		e.string(g.Reason)
		e.bool(g.Unread)
	}
	numbers := map[*repository]int{}
	var repos []*repository
	for _, f := range x.folders {
		for i := range f.entries {
			if c := f.entries[i].content; c != nil && c.repository != nil && numbers[c.repository] == 0 {
				repos = append(repos, c.repository)
				numbers[c.repository] = len(repos)
			}
		}
	}
	e.number(uint64(len(repos)))
	for _, r := range repos {
		e.string(r.dir)
	}
	e.number(uint64(len(x.folders)))
	last := &encoder{}
	if last.bool(x.top != nil); x.top != nil {
		last.entry(x.top, x.before(), numbers)
	}
	return slices.Concat([][]byte{e.text}, x.encodeFolders(numbers), [][]byte{last.text})
}

// before returns what the first entry of a folder is compared with. Entries are written as differences from the one
// before, because neighbours are alike.
func (x *Index) before() *fileEntry {
	return &fileEntry{Status: workspace.Status{Modified: x.Taken.UnixNano()}}
}

// encodeFolders returns the encoded folders in parts, made in parallel.
func (x *Index) encodeFolders(numbers map[*repository]int) [][]byte {
	var group sync.WaitGroup
	parts := make([][]byte, workspace.Workers())
	rest, left := x.folders, x.Len()
	for i := range parts {
		n, share := 0, left/(len(parts)-i)
		some := rest
		for rest = some; len(rest) > 0 && (n < share || i == len(parts)-1); rest = rest[1:] {
			n += len(rest[0].entries)
		}
		some, left = some[:len(some)-len(rest)], left-n
		group.Go(func() {
			e := &encoder{text: make([]byte, 0, n*usualEntry)}
			for _, f := range some {
				e.string(f.path)
				e.number(uint64(len(f.entries)))
				e.bool(f.complete)
				before := x.before()
				for i := range f.entries {
					e.entry(&f.entries[i], before, numbers)
					before = &f.entries[i]
				}
			}
			parts[i] = e.text
		})
	}
	group.Wait()
	return parts
}

// SaveFile writes the index to a file, atomically. LoadFile reads it.
func (x *Index) SaveFile(path string) error {
	parts := x.parts()
	sum := make(chan []byte, 1) // buffered, because nobody receives it if the file cannot be created
	go func() {
		h := sha256.New()
		for _, text := range parts {
			h.Write(text)
		}
		sum <- h.Sum(nil)
	}()
	return workspace.ReplaceWith(path, 0o600, func(f *os.File) (err error) {
		for _, text := range parts {
			if err == nil {
				_, err = f.Write(text)
			}
		}
		last := <-sum
		if err == nil {
			_, err = f.Write(last)
		}
		return err
	})
}

// LoadFile reads an index that SaveFile wrote.
func LoadFile(path string) (*Index, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.FileMissing, "%s cannot be read: %s", path, fault.Bare(err)).Because(err)
	}
	return Parse(text)
}

type encoder struct{ text []byte }

func (e *encoder) number(n uint64) { e.text = binary.AppendUvarint(e.text, n) }
func (e *encoder) signed(n int64)  { e.text = binary.AppendVarint(e.text, n) }

func (e *encoder) string(s string) {
	e.number(uint64(len(s)))
	e.text = append(e.text, s...)
}

func (e *encoder) bool(b bool) {
	n := uint64(0)
	if b {
		n = 1
	}
	e.number(n)
}

func (e *encoder) entry(is, before *fileEntry, repos map[*repository]int) {
	e.string(is.name)
	e.number(uint64(is.Mode))
	e.signed(is.Size)
	e.signed(before.Modified - is.Modified)
	e.signed(is.Modified - is.Changed)
	e.signed(int64(is.Inode - before.Inode))   //nolint:gosec // it wraps, and back
	e.signed(int64(is.Device - before.Device)) //nolint:gosec // the same
	e.number(uint64(is.about))
	if isLink(is.Mode) {
		e.string(is.target)
	}
	c := is.content
	if c == nil {
		c = &content{}
	}
	repo := 0
	if c.repository != nil {
		repo = repos[c.repository]
	}
	bits := uint64(0)
	for i, set := range [...]bool{
		c.sum != [32]byte{}, c.blob != git.ID{}, c.kept, c.inGit, repo > 0,
		[len(c.blob) - sha1.Size]byte(c.blob[sha1.Size:]) != [len(c.blob) - sha1.Size]byte{},
	} {
		if set {
			bits |= 1 << i
		}
	}
	e.number(bits)
	if bits&hasSum != 0 {
		e.text = append(e.text, c.sum[:]...)
	}
	if bits&hasBlob != 0 {
		e.text = append(e.text, c.blob[:blobSize(bits)]...)
	}
	if repo > 0 {
		e.number(uint64(repo - 1))
	}
}

// blobSize returns how many bytes of the name of a blob are written.
func blobSize(bits uint64) int {
	if bits&hasLongBlob != 0 {
		return len(git.ID{})
	}
	return sha1.Size
}

// Parse reads what SaveFile wrote. It fails if that is damaged, or of another version.
func Parse(text []byte) (*Index, error) {
	body, ours := bytes.CutPrefix(text, []byte(firstLine))
	if !ours {
		return nil, unloadable("it is of another version")
	}
	if len(body) < sha256.Size {
		return nil, unloadable("it is truncated")
	}
	end := len(text) - sha256.Size
	if sum := sha256.Sum256(text[:end]); !bytes.Equal(sum[:], text[end:]) {
		return nil, unloadable("its checksum is wrong")
	}
	return parse(body[:len(body)-sha256.Size])
}

func unloadable(reason string) error {
	return fault.New(fault.Unsafe, "an index of a directory cannot be read: %s", reason)
}

// parse reads what is between the first line and the checksum.
func parse(body []byte) (*Index, error) {
	d := &decoder{rest: body, names: string(body)}
	x := &Index{Root: d.string(), Taken: time.Unix(0, d.signed())}
	for range d.count() {
		x.Gaps = append(x.Gaps, Gap{d.string(), d.string(), d.number() != 0})
	}
	var repos []*repository
	for range d.count() {
		repos = append(repos, &repository{dir: d.string()})
	}
	for range d.count() {
		f := &folder{path: d.string()}
		n := d.count()
		f.complete = d.number() != 0
		f.entries = make([]fileEntry, 0, min(n, len(d.rest)/smallestEntry))
		before := x.before()
		for range n {
			f.entries = append(f.entries, d.entry(before, repos))
			before = &f.entries[len(f.entries)-1]
		}
		if !slices.IsSortedFunc(f.entries, func(a, b fileEntry) int { return strings.Compare(a.name, b.name) }) {
			d.broken = true
		}
		x.folders = append(x.folders, f)
	}
	if d.number() != 0 {
		top := d.entry(x.before(), repos)
		x.top = &top
	}
	sorted := slices.IsSortedFunc(x.folders, func(a, b *folder) int { return strings.Compare(a.path, b.path) })
	if d.broken || len(d.rest) > 0 || !sorted {
		return nil, unloadable("it is damaged")
	}
	return x, nil
}

// decoder reads numbers and strings. Past the end it returns zeros and sets broken.
type decoder struct {
	rest   []byte
	names  string // the whole text: all strings share it
	broken bool
	spare  spare
}

// smallestEntry is the least number of bytes of an entry: one for each of its members.
const smallestEntry = 9

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	return advance(d, n, size)
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.rest)
	return advance(d, n, size)
}

func advance[N uint64 | int64](d *decoder, n N, size int) N {
	if size <= 0 {
		d.broken, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// count reads the length of a list, each element of which has at least one byte.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.broken, d.rest = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.broken, d.rest = true, nil
		return nil
	}
	some := d.rest[:n]
	d.rest = d.rest[n:]
	return some
}

func (d *decoder) string() string {
	n := d.count()
	at := len(d.names) - len(d.rest)
	return d.names[at : at+len(d.bytes(n))]
}

func (d *decoder) entry(before *fileEntry, repos []*repository) fileEntry {
	is := fileEntry{name: d.string(), Status: workspace.Status{Mode: fs.FileMode(d.number()), Size: d.signed()}}
	is.Modified = before.Modified - d.signed()
	is.Changed = is.Modified - d.signed()
	is.Inode = before.Inode + uint64(d.signed())   //nolint:gosec // it wraps, as it did
	is.Device = before.Device + uint64(d.signed()) //nolint:gosec // the same
	is.about = about(d.number())
	if isLink(is.Mode) {
		is.target = d.string()
	}
	bits := d.number()
	if bits == 0 {
		return is
	}
	is.content = d.spare.take()
	is.content.kept, is.content.inGit = bits&isKept != 0, bits&isInGit != 0
	if bits&hasSum != 0 {
		copy(is.content.sum[:], d.bytes(sha256.Size))
	}
	if bits&hasBlob != 0 {
		copy(is.content.blob[:], d.bytes(blobSize(bits)))
	}
	if bits&hasRepository != 0 {
		if n := d.number(); n < uint64(len(repos)) {
			is.content.repository = repos[n]
		} else {
			d.broken = true
		}
	}
	d.broken = d.broken || is.content.inGit && is.content.repository == nil
	return is
}
