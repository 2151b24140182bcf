package contract

import (
	"slices"
	"unicode/utf8"
)

// Answers have a size limit, in bytes for every caller and in tokens for those that ask. Both are the same: a budget of bytes that the
// data is fitted into. Rows are left out whole, from the end; other data loses the ends of its longest members.

const (
	cutMark       = "[TRUNCATED]"
	bytesPerToken = 4 // an estimate: it needs no vocabulary, and the flag's help says so
)

func tokens(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

func size(v any) int { return len(appendJSON(nil, v)) }

// cutter remembers what it left out.
type cutter struct {
	fields []cutField
}

type cutField struct {
	name      string // dotted
	had, kept int    // bytes
}

// fit makes v fit into budget bytes.
func (k *cutter) fit(v any, budget int, path string) any {
	if size(v) <= budget {
		return v
	}
	switch v := v.(type) {
	case string:
		kept := cutText(v, budget)
		k.fields = append(k.fields, cutField{path, len(v), len(kept)})
		return kept
	case []any:
		kept := cutList(v, budget)
		k.fields = append(k.fields, cutField{path, size(v), size(kept)})
		return kept
	case object:
		return k.members(v, budget, path)
	}
	return nil
}

func cutText(s string, budget int) string {
	keep := max(0, min(len(s), budget-len(cutMark)-2))
	for size(s[:keep])+len(cutMark) > budget && keep > 0 { // escapes count too
		keep -= max(1, keep/16)
	}
	for keep > 0 && !utf8.RuneStart(s[keep]) {
		keep--
	}
	return s[:keep] + cutMark
}

func cutList(list []any, budget int) []any {
	used := 2
	for i, item := range list {
		if used += size(item) + 1; used > budget {
			return list[:i:i]
		}
	}
	return list
}

// members keeps what is small and shares the rest of the budget among what is not.
func (k *cutter) members(o object, budget int, path string) any {
	sizes := make([]int, len(o))
	for i, m := range o {
		sizes[i] = size(m.value) + len(m.name) + 4
	}
	order := make([]int, len(o))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	left, out := budget-2, slices.Clone(o)
	for n, i := range order {
		share := left / (len(order) - n)
		name := o[i].name
		if path != "" {
			name = path + "." + name
		}
		if sizes[i] > share {
			out[i].value = k.fit(o[i].value, max(0, share-len(o[i].name)-4), name)
		}
		left -= size(out[i].value) + len(o[i].name) + 4
	}
	return out
}

// skip leaves out about the first n bytes of the data's largest member, so that a caller can read on where the last answer was cut.
func skip(v any, n int) any {
	switch v := v.(type) {
	case string:
		n = min(n, len(v))
		for n < len(v) && !utf8.RuneStart(v[n]) {
			n++
		}
		return v[n:]
	case []any:
		for i, item := range v {
			if n -= size(item) + 1; n < 0 {
				return v[i:]
			}
		}
		return []any{}
	case object:
		largest, most := -1, 0
		for i, m := range v {
			if s := size(m.value); s > most {
				largest, most = i, s
			}
		}
		if largest < 0 {
			return v
		}
		out := slices.Clone(v)
		out[largest].value = skip(v[largest].value, n)
		return out
	}
	return v
}
