package contract

import (
	"slices"
	"strings"
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

// least is what any value needs: null. Nothing is made smaller than that.
const least = len("null")

// fit makes v fit into budget bytes, or the least.
func (k *cutter) fit(v any, budget int, path string) any {
	had := size(v)
	if had <= max(budget, least) {
		return v
	}
	switch v := v.(type) {
	case string:
		if kept, ok := cutText(v, budget); ok {
			k.note(path, len(v), len(kept))
			return kept
		}
	case []any:
		kept := k.list(v, budget, path)
		k.note(path, had, size(kept))
		return kept
	case object:
		return k.members(v, budget, path)
	}
	k.note(path, had, least)
	return nil
}

func (k *cutter) note(path string, had, kept int) {
	k.fields = append(k.fields, cutField{path, had, kept})
}

// cutText is false where there is no room even for the mark.
func cutText(s string, budget int) (string, bool) {
	keep := min(len(s), budget-len(cutMark)-2)
	for keep > 0 && size(s[:keep])+len(cutMark) > budget { // escapes count too
		keep -= max(1, keep/16)
	}
	for keep > 0 && !utf8.RuneStart(s[keep]) {
		keep--
	}
	if keep < 0 {
		return "", false
	}
	return s[:keep] + cutMark, true
}

// list keeps whole elements; a first one that has no room by itself is cut inside, or nobody would ever see any of it.
func (k *cutter) list(list []any, budget int, path string) []any {
	kept := cutList(list, budget)
	if room := budget - 2; len(kept) == 0 && len(list) > 0 && room >= least {
		return []any{k.fit(list[0], room, path)}
	}
	return kept
}

func cutList(list []any, budget int) []any {
	used := 1
	for i, item := range list {
		if used += size(item) + 1; used > budget {
			return list[:i:i]
		}
	}
	return list
}

// members keeps what is small and shares the rest of the budget among what is not. Where there is no room even for the names, the last
// members are left out.
func (k *cutter) members(o object, budget int, path string) any {
	left, fitting := budget-1, 0
	for _, m := range o {
		if need := size(m.name) + 2; left >= need+least {
			left -= need + least
			fitting++
			continue
		}
		k.note(path, size(o), budget)
		break
	}
	out := slices.Clone(o[:fitting])
	left += fitting * least
	order, sizes := make([]int, fitting), make([]int, fitting)
	for i := range order {
		order[i], sizes[i] = i, size(out[i].value)
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	for n, i := range order {
		name := out[i].name
		if path != "" {
			name = path + "." + name
		}
		out[i].value = k.fit(out[i].value, left/(fitting-n), name)
		left -= size(out[i].value)
	}
	return out
}

// A caller reads on where the last answer was cut by skipping what it has, counted in tokens of the longest string or list. longest is
// the way there, member by member.
func longest(v any) (way []int) {
	o, ok := v.(object)
	if !ok || len(o) == 0 {
		return nil
	}
	largest, most := 0, 0
	for i, m := range o {
		if s := size(m.value); s > most {
			largest, most = i, s
		}
	}
	return append([]int{largest}, longest(o[largest].value)...)
}

func follow(v any, way []int) any {
	for _, i := range way {
		o, ok := v.(object)
		if !ok || i >= len(o) {
			return nil
		}
		v = o[i].value
	}
	return v
}

// replace puts another value at the end of the way, and copies what it passes.
func replace(v any, way []int, value any) any {
	if len(way) == 0 {
		return value
	}
	o := slices.Clone(v.(object))
	o[way[0]].value = replace(o[way[0]].value, way[1:], value)
	return o
}

// skip leaves out the first n tokens: of a list whole elements.
func skip(v any, n int) any {
	n *= bytesPerToken
	switch v := v.(type) {
	case string:
		return v[boundary(v, n):]
	case []any:
		for i, item := range v {
			if n -= size(item) + 1; n < 0 {
				return v[i:]
			}
		}
		return []any{}
	}
	return v
}

// boundary is the first beginning of a character at or after n.
func boundary(s string, n int) int {
	n = min(n, len(s))
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return n
}

// resume shortens what was kept of whole, of which offset tokens had been skipped, so that it ends where another skip begins. It returns
// how many tokens that one must skip; not more than offset when nothing was gained.
func resume(whole, kept any, offset int) (any, int) {
	switch whole := whole.(type) {
	case string:
		text, ok := kept.(string)
		if text, ok = strings.CutSuffix(text, cutMark); !ok {
			return kept, offset
		}
		start := boundary(whole, offset*bytesPerToken)
		next := (start + len(text)) / bytesPerToken
		end := boundary(whole, next*bytesPerToken)
		return whole[start:max(start, end)] + cutMark, next
	case []any:
		list, _ := kept.([]any)
		start := len(whole) - len(skip(whole, offset).([]any))
		if len(list) == 1 && size(list[0]) < size(whole[start]) {
			return kept, offset
		}
		ends := []int{0}
		for i := range min(start+len(list)+1, len(whole)) {
			ends = append(ends, ends[i]+size(whole[i])+1)
		}
		for n := len(list); n > 0 && start+n < len(whole); n-- {
			if next := tokens(ends[start+n]); next*bytesPerToken < ends[start+n+1] {
				return list[:n], next
			}
		}
	}
	return kept, offset
}
