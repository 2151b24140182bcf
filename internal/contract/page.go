package contract

import (
	"encoding/base64"
	"hash/fnv"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/fault"
)

// Rows are the rows of a list, made one at a time: only those of the requested page are kept, however many there are.
type Rows[T any] struct{ Seq iter.Seq[T] }

// RowsOf makes rows from a slice.
func RowsOf[T any](list []T) Rows[T] { return Rows[T]{slices.Values(list)} }

// ForeignRows makes rows from a slice of what came from outside.
func ForeignRows[T any](list []T) Rows[Foreign[T]] {
	return Rows[Foreign[T]]{func(yield func(Foreign[T]) bool) {
		for _, row := range list {
			if !yield(Foreign[T]{row}) {
				return
			}
		}
	}}
}

func (r Rows[T]) each(yield func(any) bool) {
	if r.Seq == nil {
		return
	}
	r.Seq(func(row T) bool { return yield(row) })
}

func (r Rows[T]) row() reflect.Type { return reflect.TypeFor[T]() }

type rower interface {
	each(func(any) bool)
	row() reflect.Type
}

// page is the requested window of a list, and what was found there.
type page struct {
	key      string
	offset   int
	limit    int // 0: all
	query    string
	total    int
	returned int
	emit     func(any) bool // gets rows as they come, which are then not kept; false ends the list
}

// window reads --limit and --cursor.
func (c *Call) window() (*page, *fault.Problem) {
	list := c.Command.List
	if list == nil {
		return nil, nil
	}
	pg := &page{key: list.Key, limit: c.Int("limit"), query: c.query()}
	cursor := c.String("cursor")
	if cursor == "" {
		return pg, nil
	}
	offset, query, ok := readCursor(cursor)
	if !ok || query != pg.query {
		return nil, new(Wrong("cursor", fault.InvalidCursor, cursor,
			"--cursor is damaged or belongs to another query; start again without it"))
	}
	pg.offset = offset
	return pg, nil
}

// take walks the rows and keeps those of the page; it only counts the rest.
func (w *walker) take(rows rower, path string, foreign bool) []any {
	list := []any{}
	pg := w.page
	if pg == nil {
		pg = &page{}
	}
	stopped := false
	rows.each(func(row any) bool {
		pg.total++
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
	own := c.own()
	_, _ = h.Write([]byte(c.Command.Path))
	for _, name := range slices.Sorted(maps.Keys(own)) {
		_, _ = h.Write([]byte("\x00" + name + "\x00" + strings.Join(own[name], "\x00")))
	}
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

const cursorMark = "c1."

func writeCursor(offset int, query string) string {
	return cursorMark + base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(offset)+":"+query))
}

func readCursor(cursor string) (offset int, query string, ok bool) {
	body, marked := strings.CutPrefix(cursor, cursorMark)
	raw, err := base64.RawURLEncoding.DecodeString(body)
	number, query, split := strings.Cut(string(raw), ":")
	offset, bad := strconv.Atoi(number)
	return offset, query, marked && err == nil && split && bad == nil && offset >= 0
}

// next returns the cursor of the next page, or "".
func (pg *page) next() string {
	// a cursor that leads back here would be followed for ever
	if end := pg.offset + pg.returned; end < pg.total && pg.returned > 0 {
		return writeCursor(end, pg.query)
	}
	return ""
}
