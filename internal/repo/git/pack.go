package git

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sort"

	"omniagent/internal/sys/workspace"
)

// pack is a file of objects, and the file that says where each one is.
type pack struct {
	name     string
	data     *os.File
	size     int64
	index    *os.File
	table    io.ReaderAt // the index, in memory unless it is huge
	fanOut   [256]uint32 // how many hashes begin with at most this byte
	hashSize int
	spare    []*inflater
}

// inflater reads objects, one after the other. It is reused because making one costs much more than reading a small
// object.
type inflater struct {
	in  *bufio.Reader
	out io.Reader // nil before the first object
}

// begin starts to inflate the stream at the current place of in.
func (f *inflater) begin() (err error) {
	if again, ok := f.out.(zlib.Resetter); ok {
		return again.Reset(f.in, nil)
	}
	f.out, err = zlib.NewReader(f.in)
	return err
}

const (
	indexHead     = 8 + 256*4
	tableInMemory = 64 << 20
	farOffset     = 1 << 31
)

func openPack(dir *workspace.Dir, base string, hashSize int) (*pack, error) {
	index, info, err := dir.Open(base + ".idx")
	if err != nil {
		return nil, err
	}
	data, dataInfo, err := dir.Open(base + ".pack")
	if err != nil {
		_ = index.Close()
		return nil, err
	}
	p := &pack{name: base, data: data, size: dataInfo.Size(), index: index, table: index, hashSize: hashSize}
	if err = p.readHead(info.Size()); err != nil {
		_ = index.Close()
		_ = data.Close()
		return nil, err
	}
	return p, nil
}

func (p *pack) readHead(size int64) error {
	if size <= tableInMemory {
		whole := make([]byte, size)
		if _, err := p.index.ReadAt(whole, 0); err != nil {
			return err
		}
		p.table = bytes.NewReader(whole)
	}
	head := make([]byte, indexHead)
	if _, err := p.table.ReadAt(head, 0); err != nil {
		return err
	}
	if string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		return fmt.Errorf("%s: its version is not known", p.name)
	}
	for i := range p.fanOut {
		p.fanOut[i] = binary.BigEndian.Uint32(head[8+4*i:])
	}
	return nil
}

// Close closes the files.
func (p *pack) Close() {
	_ = p.data.Close()
	_ = p.index.Close()
}

// find returns where an object is.
func (p *pack) find(id ID) (at int64, ok bool) {
	low := 0
	if id[0] > 0 {
		low = int(p.fanOut[id[0]-1])
	}
	var hash ID
	read := func(i int) []byte {
		_, _ = p.table.ReadAt(hash[:p.hashSize], indexHead+int64(i)*int64(p.hashSize))
		return hash[:p.hashSize]
	}
	count := max(int(p.fanOut[id[0]])-low, 0)
	i := low + sort.Search(count, func(i int) bool { return bytes.Compare(read(low+i), id[:p.hashSize]) >= 0 })
	if i == low+count || !bytes.Equal(read(i), id[:p.hashSize]) {
		return 0, false
	}
	all := int64(p.fanOut[255])
	offsets := indexHead + all*int64(p.hashSize) + 4*all // after hashes and checksums
	var number [8]byte
	if _, err := p.table.ReadAt(number[:4], offsets+4*int64(i)); err != nil {
		return 0, false
	}
	near := binary.BigEndian.Uint32(number[:])
	if near < farOffset {
		return int64(near), true
	}
	if _, err := p.table.ReadAt(number[:], offsets+4*all+8*int64(near-farOffset)); err != nil {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(number[:])), true //nolint:gosec // object refuses a negative one
}

// object is an object in a pack. Reading it yields its content, or its delta.
type object struct {
	pack   *pack
	kind   objectKind
	size   int64
	base   int64 // of an offsetDelta
	baseID ID    // of a namedDelta

	from  *inflater
	begun bool
}

func (o *object) Read(data []byte) (int, error) {
	if !o.begun {
		if err := o.from.begin(); err != nil {
			return 0, err
		}
		o.begun = true
	}
	return o.from.out.Read(data)
}

// Close ends reading.
func (o *object) Close() {
	o.pack.spare = append(o.pack.spare, o.from)
}

func (p *pack) object(at int64) (*object, error) {
	if at < 0 || at >= p.size {
		return nil, fmt.Errorf("%s: there is no object at %d", p.name, at)
	}
	var from *inflater
	if n := len(p.spare); n > 0 {
		from, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		from = &inflater{in: bufio.NewReaderSize(nil, 4096)}
	}
	from.in.Reset(io.NewSectionReader(p.data, at, p.size-at))
	head, err := from.in.Peek(64)
	if len(head) < 2 {
		return nil, err
	}
	o := &object{pack: p, kind: objectKind(head[0] >> 4 & 7), size: int64(head[0] & 0xf), from: from}
	i := 1
	for shift := 4; head[i-1]&0x80 != 0; shift += 7 {
		if i == len(head) || shift > 53 {
			return nil, fmt.Errorf("%s: the object at %d is damaged", p.name, at)
		}
		o.size |= int64(head[i]&0x7f) << shift
		i++
	}
	switch o.kind {
	case offsetDelta:
		back, next := offset(head, i)
		if next == 0 || back <= 0 || int64(back) >= at {
			return nil, fmt.Errorf("%s: the object at %d is damaged", p.name, at)
		}
		o.base, i = at-int64(back), next
	case namedDelta:
		if i += copy(o.baseID[:p.hashSize], head[i:]); i > len(head) {
			return nil, io.ErrUnexpectedEOF
		}
	}
	_, _ = from.in.Discard(i)
	return o, nil
}

// resultSize reads the size of the result from the beginning of a delta.
func (o *object) resultSize() (int64, error) {
	head := make([]byte, min(o.size, 20))
	if _, err := io.ReadFull(o, head); err != nil {
		return 0, err
	}
	_, n := binary.Uvarint(head)
	size, m := binary.Uvarint(head[max(n, 0):])
	if n <= 0 || m <= 0 {
		return 0, fmt.Errorf("%s: a delta is damaged", o.pack.name)
	}
	return int64(size), nil //nolint:gosec // a wrong size is never trusted
}

// apply makes the object that a delta describes: parts of base, and new bytes.
func apply(base, delta []byte, limit int64) (data []byte, err error) {
	broken := fmt.Errorf("a delta is damaged")
	from, n := binary.Uvarint(delta)
	result, m := binary.Uvarint(delta[max(n, 0):])
	if n <= 0 || m <= 0 || from != uint64(len(base)) || result > 1<<62 {
		return nil, broken
	}
	if int64(result) > limit {
		return nil, tooLarge(int64(result))
	}
	data = make([]byte, 0, result)
	for delta = delta[n+m:]; len(delta) > 0; {
		order := delta[0]
		delta = delta[1:]
		part := delta[:min(int(order), len(delta))]
		if order&0x80 == 0 {
			if order == 0 || len(part) < int(order) {
				return nil, broken
			}
			delta = delta[order:]
		} else {
			var number [7]uint32 // four bytes of the offset, three of the length
			for i := range number {
				if order&(1<<i) == 0 {
					continue
				}
				if len(delta) == 0 {
					return nil, broken
				}
				number[i], delta = uint32(delta[0]), delta[1:]
			}
			begin := int(number[0] | number[1]<<8 | number[2]<<16 | number[3]<<24)
			length := cmp.Or(int(number[4]|number[5]<<8|number[6]<<16), 1<<16)
			if begin > len(base) || length > len(base)-begin {
				return nil, broken
			}
			part = base[begin : begin+length]
		}
		if data = append(data, part...); uint64(len(data)) > result {
			return nil, broken
		}
	}
	if uint64(len(data)) != result {
		return nil, broken
	}
	return data, nil
}
