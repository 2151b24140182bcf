package literal

import "fmt"

// origin is how a table was defined, because TOML allows only some of them to be extended.
type origin uint8

const (
	plainValue     origin = iota // a value; an inline table is closed
	dottedTable                  // made by a dotted key; only dotted keys may add to it
	impliedTable                 // made by a longer header; its own header may still come
	headerTable                  // made by its own header, which must not come again
	arrayOfHeaders               // made by [[header]]
)

// tomlKey is one key of a table while the document is being put together.
type tomlKey struct {
	origin origin
	key    keyPart
	value  node     // of a plainValue
	table  *table   // of the three kinds of table
	tables []*table // of arrayOfHeaders
}

type table struct {
	order []*tomlKey
	index map[string]*tomlKey
}

func newTable() *table { return &table{index: map[string]*tomlKey{}} }

func (t *table) add(e *tomlKey) *tomlKey {
	t.order = append(t.order, e)
	t.index[e.key.name] = e
	return e
}

// inside returns the table that keys below the entry go to; nil when it holds a value.
func (e *tomlKey) inside() *table {
	if e.origin == arrayOfHeaders {
		return e.tables[len(e.tables)-1]
	}
	return e.table
}

type tomlTree struct {
	locate *locator
	depth  int
}

func buildTOML(data []byte, statements []statement) (v Value, err error) {
	defer catch(&v, &err)
	b := &tomlTree{locate: newLocator(data)}
	root := newTable()
	current := root
	for _, st := range statements {
		if st.header {
			current = b.header(root, st)
		} else {
			b.pair(current, st.pair)
		}
	}
	v = b.tableValue(root)
	v.Pos, v.End = Pos{Line: 1, Col: 1}, len(data)
	return v, nil
}

func (b *tomlTree) fail(key keyPart, format string, args ...any) *SyntaxError {
	return &SyntaxError{Pos: b.locate.pos(key.start), Message: fmt.Sprintf(format, args...)}
}

func (b *tomlTree) twice(key keyPart, what string, first *tomlKey) *SyntaxError {
	return b.fail(key, "%s %q is given twice, first at %v", what, shorten(key.name),
		newLocator(b.locate.data).pos(first.key.start))
}

func (b *tomlTree) header(root *table, st statement) *table {
	last := st.keys[len(st.keys)-1]
	if len(st.keys) > maxDepth {
		panic(b.fail(last, "nested deeper than %d levels", maxDepth))
	}
	t := root
	for _, key := range st.keys[:len(st.keys)-1] {
		e := t.index[key.name]
		if e == nil {
			e = t.add(&tomlKey{origin: impliedTable, key: key, table: newTable()})
		}
		if t = e.inside(); t == nil {
			panic(b.fail(key, "%q is a value and not a table", shorten(key.name)))
		}
	}
	e := t.index[last.name]
	if st.array {
		return b.arrayHeader(t, last, e)
	}
	switch {
	case e == nil:
		e = t.add(&tomlKey{origin: headerTable, key: last, table: newTable()})
	case e.origin == impliedTable:
		e.origin = headerTable
	case e.origin == plainValue:
		panic(b.fail(last, "%q is a value and not a table", shorten(last.name)))
	default:
		panic(b.twice(last, "table", e))
	}
	return e.table
}

func (b *tomlTree) arrayHeader(t *table, last keyPart, e *tomlKey) *table {
	switch {
	case e == nil:
		e = t.add(&tomlKey{origin: arrayOfHeaders, key: last})
	case e.origin != arrayOfHeaders:
		panic(b.twice(last, "key", e))
	}
	e.tables = append(e.tables, newTable())
	return e.inside()
}

func (b *tomlTree) pair(t *table, p pair) {
	last := p.keys[len(p.keys)-1]
	if len(p.keys) > maxDepth {
		panic(b.fail(last, "nested deeper than %d levels", maxDepth))
	}
	for _, key := range p.keys[:len(p.keys)-1] {
		e := t.index[key.name]
		if e == nil {
			e = t.add(&tomlKey{origin: dottedTable, key: key, table: newTable()})
		}
		if e.origin != dottedTable {
			panic(b.twice(key, "key", e))
		}
		t = e.table
	}
	if e := t.index[last.name]; e != nil {
		panic(b.twice(last, "key", e))
	}
	t.add(&tomlKey{origin: plainValue, key: last, value: p.value})
}

func (b *tomlTree) tableValue(t *table) Value {
	v := Value{Kind: Object, Members: make([]Member, 0, len(t.order))}
	b.depth++
	defer func() { b.depth-- }()
	for _, e := range t.order {
		if b.depth > maxDepth {
			panic(b.fail(e.key, "nested deeper than %d levels", maxDepth))
		}
		m := Member{Key: e.key.name, KeyPos: b.locate.pos(e.key.start)}
		switch {
		case e.origin == plainValue:
			m.Value = b.nodeValue(e.value)
		case e.origin == arrayOfHeaders:
			m.Value = b.tablesValue(e)
		default:
			m.Value = b.tableValue(e.table)
			m.Value.Pos, m.Value.End = m.KeyPos, e.key.end
		}
		v.Members = append(v.Members, m)
	}
	return v
}

func (b *tomlTree) tablesValue(e *tomlKey) Value {
	v := Value{Kind: Array, Pos: b.locate.pos(e.key.start), End: e.key.end}
	for _, t := range e.tables {
		item := b.tableValue(t)
		item.Pos, item.End = v.Pos, v.End
		v.Items = append(v.Items, item)
	}
	return v
}

func (b *tomlTree) nodeValue(n node) Value {
	v := Value{Kind: n.kind, Str: n.str, Num: n.num, Bool: n.bool, Pos: b.locate.pos(n.start), End: n.end}
	switch n.kind {
	case Array:
		v.Items = make([]Value, 0, len(n.items))
		for _, item := range n.items {
			v.Items = append(v.Items, b.nodeValue(item))
		}
	case Object:
		t := newTable()
		for _, p := range n.pairs {
			b.pair(t, p)
		}
		v.Members = b.tableValue(t).Members
	}
	return v
}
