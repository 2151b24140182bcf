package sqlite

import (
	"encoding/binary"
	"strings"
)

// Row returns the row of that number in a table, or nil if the table does not have it. It returns ErrFormat if the
// pages are not valid.
func (s *File) Row(t Table, number int64) ([]any, error) {
	root := t.root
	for range maxDepth {
		n, err := s.node(root)
		if err != nil {
			return nil, err
		}
		switch n.kind {
		case tableInner:
			root = n.right
			for _, c := range n.cells {
				if key, _ := varint(c[4:]); number <= int64(key) {
					root = binary.BigEndian.Uint32(c)
					break
				}
			}
		case tableLeaf:
			for _, c := range n.cells {
				_, a := varint(c)
				if key, b := varint(c[a:]); b > 0 && int64(key) == number {
					return s.tableCell(c)
				}
			}
			return nil, nil
		default:
			return nil, ErrFormat
		}
	}
	return nil, ErrFormat
}

// tableCell reads a cell of a leaf of a table.
func (s *File) tableCell(c []byte) ([]any, error) {
	size, a := varint(c)
	_, b := varint(c[a:])
	if a == 0 || b == 0 {
		return nil, ErrFormat
	}
	data, err := s.payload(c[a+b:], size, false)
	if err != nil {
		return nil, err
	}
	r, ok := record(data)
	if !ok {
		return nil, ErrFormat
	}
	return r, nil
}

// Newest calls see with the rows of a table from the highest number down, until it returns false. A row that cannot be
// read is skipped.
func (s *File) Newest(t Table, see func(row []any) bool) error {
	_, err := s.down(t.root, maxDepth, see)
	return err
}

func (s *File) down(root uint32, depth int, see func([]any) bool) (bool, error) {
	n, err := s.node(root)
	if err != nil || depth == 0 {
		return false, ErrFormat
	}
	if n.kind == tableInner {
		if more, err := s.down(n.right, depth-1, see); err != nil || !more {
			return false, err
		}
	}
	for i := len(n.cells) - 1; i >= 0; i-- {
		more := true
		switch n.kind {
		case tableInner:
			more, err = s.down(binary.BigEndian.Uint32(n.cells[i]), depth-1, see)
		case tableLeaf:
			if r, bad := s.tableCell(n.cells[i]); bad == nil {
				more = see(r)
			}
		default:
			return false, ErrFormat
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// Under lists the numbers of the rows whose entries in an index begin with these values, in the order of the index.
func (s *File) Under(index Table, prefix ...any) ([]int64, error) {
	var out []int64
	_, err := s.search(index.root, maxDepth, prefix, &out)
	return out, err
}

// search returns false once it has gone past the values.
func (s *File) search(root uint32, depth int, prefix []any, out *[]int64) (bool, error) {
	n, err := s.node(root)
	if err != nil || depth == 0 {
		return false, ErrFormat
	}
	for _, c := range n.cells {
		var child uint32
		if n.kind == indexInner {
			child, c = binary.BigEndian.Uint32(c), c[4:]
		} else if n.kind != indexLeaf {
			return false, ErrFormat
		}
		size, a := varint(c)
		if a == 0 {
			return false, ErrFormat
		}
		data, err := s.payload(c[a:], size, true)
		if err != nil {
			return false, err
		}
		entry, ok := record(data)
		if !ok || len(entry) <= len(prefix) {
			return false, ErrFormat
		}
		order := compare(entry, prefix)
		if order < 0 {
			continue // as are all entries to the left of it
		}
		if n.kind == indexInner {
			if more, err := s.search(child, depth-1, prefix, out); err != nil || !more {
				return false, err
			}
		}
		if order > 0 {
			return false, nil
		}
		number, ok := entry[len(entry)-1].(int64)
		if !ok {
			return false, ErrFormat
		}
		*out = append(*out, number)
	}
	if n.kind == indexInner {
		return s.search(n.right, depth-1, prefix, out)
	}
	return true, nil
}

// compare compares the beginning of an entry with prefix, in the order of SQLite: NULL, numbers, text.
func compare(entry, prefix []any) int {
	for i, p := range prefix {
		switch want := p.(type) {
		case string:
			got, ok := entry[i].(string)
			if !ok {
				return -1
			}
			if c := strings.Compare(got, want); c != 0 {
				return c
			}
		case int64:
			switch got := entry[i].(type) {
			case int64:
				if got != want {
					return map[bool]int{true: -1, false: 1}[got < want]
				}
			case nil:
				return -1
			default:
				return 1
			}
		}
	}
	return 0
}

// record decodes the columns of a row: nil, int64, string; other kinds are nil too.
func record(data []byte) ([]any, bool) {
	size, at := varint(data)
	if at == 0 || size > uint64(len(data)) || int(size) < at {
		return nil, false
	}
	var out []any
	body := int(size)
	for at < int(size) {
		kind, n := varint(data[at:size])
		if n == 0 {
			return nil, false
		}
		at += n
		width := 0
		switch {
		case kind <= 4:
			width = int(kind)
		case kind == 5:
			width = 6
		case kind == 6, kind == 7:
			width = 8
		case kind >= 12:
			if width = int(min(kind-12, 1<<32) / 2); len(data) >= MaxPayload {
				width = min(width, len(data)-body) // the end was cut off
			}
		}
		if body+width > len(data) || width < 0 {
			return nil, false
		}
		out = append(out, column(kind, data[body:body+width]))
		body += width
	}
	return out, true
}

func column(kind uint64, b []byte) any {
	switch {
	case kind == 8 || kind == 9:
		return int64(kind - 8)
	case kind >= 1 && kind <= 6:
		v := int64(int8(b[0]))
		for _, c := range b[1:] {
			v = v<<8 | int64(c)
		}
		return v
	case kind >= 13 && kind%2 == 1:
		return string(b)
	}
	return nil
}

// Table has the first page of a table or an index, and the positions of its columns.
type Table struct {
	root    uint32
	columns map[string]int
}

// Tables reads the list of all tables and indices, by name. It begins at page 1.
func (s *File) Tables() (map[string]Table, error) {
	out := map[string]Table{}
	err := s.Newest(Table{root: 1}, func(r []any) bool {
		if len(r) < 5 {
			return true
		}
		name, _ := r[1].(string)
		root, _ := r[3].(int64)
		sql, _ := r[4].(string)
		out[name] = Table{uint32(root), columns(sql)}
		return true
	})
	return out, err
}

// columns returns the positions of the columns, by name, from the statement that created the table. Their order differs
// if the table of an older version was changed.
func columns(sql string) map[string]int {
	out := map[string]int{}
	_, list, ok := strings.Cut(sql, "(")
	if !ok {
		return out
	}
	depth, from := 0, 0
	add := func(part string) {
		fields := strings.Fields(part)
		if len(fields) == 0 {
			return
		}
		switch strings.ToUpper(fields[0]) {
		case "CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK":
			return
		}
		out[strings.Trim(fields[0], "`\"[]")] = len(out)
	}
	for i, c := range []byte(list) {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				add(list[from:i])
				return out
			}
		case ',':
			if depth == 0 {
				add(list[from:i])
				from = i + 1
			}
		}
	}
	return out
}

// Text returns a column of text by its name, or "" if the row has no such text.
func (p Table) Text(r []any, name string) string {
	if i, ok := p.columns[name]; ok && i < len(r) {
		v, _ := r[i].(string)
		return v
	}
	return ""
}

// Number returns a column of numbers by its name, or 0 if the row has no such number.
func (p Table) Number(r []any, name string) int64 {
	if i, ok := p.columns[name]; ok && i < len(r) {
		v, _ := r[i].(int64)
		return v
	}
	return 0
}
