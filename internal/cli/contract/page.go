package contract

import (
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/kit/fault"
)

// Rows are the rows of a list. They are made one at a time, and only those of the requested page are kept, however many
// there are.
type Rows[T any] struct {
	Seq  iter.Seq[T]
	held bool // they are in memory, so they can be walked twice
}

// RowsOf makes rows from a slice.
func RowsOf[T any](list []T) Rows[T] { return Rows[T]{slices.Values(list), true} }

// ForeignRows makes rows from a slice of values that came from outside: each row is a Foreign.
func ForeignRows[T any](list []T) Rows[Foreign[T]] {
	return Rows[Foreign[T]]{func(yield func(Foreign[T]) bool) {
		for _, row := range list {
			if !yield(Foreign[T]{row}) {
				return
			}
		}
	}, true}
}

func (r Rows[T]) each(yield func(any) bool) {
	if r.Seq == nil {
		return
	}
	r.Seq(func(row T) bool { return yield(row) })
}

func (r Rows[T]) row() reflect.Type { return reflect.TypeFor[T]() }

func (r Rows[T]) repeatable() bool { return r.held }

type rower interface {
	each(func(any) bool)
	row() reflect.Type
	repeatable() bool // each may be called twice
}

// page is the requested window of a list, and what was found there.
type page struct {
	key      string
	id       string // the member that identifies a row
	offset   int
	around   [2]uint32 // marks of the row before the page and of its first row, from the cursor; see markOf
	from     int       // the offset before --token-offset moved it
	marks    []uint32  // of the rows from there on, up to the one after the page
	limit    int       // 0: all
	query    string
	total    int
	returned int
	emit     func(any) bool // writes rows as they come, in place of keeping them; false ends the page
}

// window reads --limit and --cursor.
func (c *Call) window() (*page, *fault.Problem) {
	list := c.Command.List
	if list == nil {
		return nil, nil
	}
	pg := &page{key: list.Key, id: list.ID, limit: c.Int("limit"), query: c.query()}
	cursor := c.String("cursor")
	if cursor == "" {
		return pg, nil
	}
	at, ok := readCursor(cursor)
	if !ok || at.query != pg.query {
		return nil, new(Wrong("cursor", fault.InvalidCursor, cursor,
			"--cursor is damaged or belongs to another query; start again without it"))
	}
	pg.offset, pg.around = at.offset, at.around
	return pg, nil
}

// take walks the rows and keeps those of the page; it only counts the rest.
func (w *walker) take(rows rower, path string, foreign bool) []any {
	list := []any{}
	pg := w.page
	if pg == nil {
		pg = &page{}
	}
	pg.seek(rows)
	pg.from = pg.offset
	stopped := false
	rows.each(func(row any) bool {
		pg.total++
		if pg.total > pg.offset && len(pg.marks) <= pg.returned {
			pg.marks = append(pg.marks, markOf(row, pg.id))
		}
		if stopped || pg.total <= pg.offset || pg.limit > 0 && pg.returned >= pg.limit {
			return true
		}
		tree := w.value(reflect.ValueOf(row), path, foreign)
		if pg.emit != nil {
			if stopped = !pg.emit(tree); stopped {
				return true
			}
		} else {
			list = append(list, tree)
		}
		pg.returned++
		return true
	})
	return list
}

// query identifies the list: a cursor is only valid for the same query.
func (c *Call) query() string {
	h := fnv.New32a()
	values := c.ownValues()
	_, _ = h.Write([]byte(c.Command.Path))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		_, _ = h.Write([]byte("\x00" + name + "\x00" + strings.Join(values[name], "\x00")))
	}
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

// seek moves the page if rows have come or gone since the cursor was written, so that it neither repeats nor skips any.
// If several places match, the nearest counts: a row may have moved, and not every list has unique names.
func (pg *page) seek(rows rower) {
	if !rows.repeatable() || pg.around == [2]uint32{} {
		return
	}
	was, n, nearest := pg.offset, 0, -1
	rows.each(func(row any) bool {
		for i, mark := range pg.around {
			place := n + 1 - i
			if markOf(row, pg.id) == mark && (nearest < 0 || max(place-was, was-place) < nearest) {
				pg.offset, nearest = place, max(place-was, was-place)
			}
		}
		n++
		return true
	})
}

// markOf returns a hash of the member that identifies a row, which a cursor has room for.
func markOf(row any, id string) uint32 {
	if f, ok := row.(foreigner); ok {
		row = f.foreign()
	}
	h := fnv.New32a()
	if v := reflect.Indirect(reflect.ValueOf(row)); v.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if name, _ := wireName(f); name == id && !f.Anonymous {
				_, _ = fmt.Fprint(h, v.FieldByIndex(f.Index))
			}
		}
	}
	return h.Sum32()
}

// pageCursor is a decoded cursor.
type pageCursor struct {
	offset int
	query  string
	around [2]uint32
}

const cursorMark = "c2."

func writeCursor(p pageCursor) string {
	return cursorMark + base64.RawURLEncoding.EncodeToString(
		fmt.Appendf(nil, "%d %s %d %d", p.offset, p.query, p.around[0], p.around[1]))
}

func readCursor(cursor string) (p pageCursor, ok bool) {
	body, marked := strings.CutPrefix(cursor, cursorMark)
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if !marked || err != nil {
		return pageCursor{}, false
	}
	_, err = fmt.Sscanf(string(raw), "%d %s %d %d", &p.offset, &p.query, &p.around[0], &p.around[1])
	return p, err == nil && p.offset >= 0 && writeCursor(p) == cursor
}

// next returns the cursor of the next page, or "" for the last page. It also returns "" for a page without rows, whose
// cursor would lead back to that page.
func (pg *page) next() string {
	end := pg.offset + pg.returned
	if end >= pg.total || pg.returned == 0 {
		return ""
	}
	p := pageCursor{offset: end, query: pg.query}
	copy(p.around[:], pg.marks[end-pg.from-1:])
	return writeCursor(p)
}
