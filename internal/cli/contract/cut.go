package contract

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"omniagent/internal/kit/text"
)

// Answers have a size limit, in bytes for every caller and in tokens for those that ask. Both become a budget in bytes.
// To fit the data into it, whole rows are left out, from the end; other data loses the ends of its longest members.

const (
	cutMark       = "[TRUNCATED]"
	bytesPerToken = 4 // an estimate: every model divides text differently
)

func tokens(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

func size(v any) int { return len(appendJSON(nil, v)) }

// cutter records what it left out.
type cutter struct {
	fields []cutField
}

type cutField struct {
	name      string // dotted
	had, kept int    // bytes
}

// nullSize is the size of null, the smallest value. Nothing is cut to less.
const nullSize = len("null")

// fit cuts v to at most budget bytes, but not to less than the size of null.
func (k *cutter) fit(v any, budget int, path string) any {
	had := size(v)
	if had <= max(budget, nullSize) {
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
	k.note(path, had, nullSize)
	return nil
}

func (k *cutter) note(path string, had, kept int) {
	k.fields = append(k.fields, cutField{path, had, kept})
}

// cutText cuts a text so that it and the mark at its end take at most budget bytes as JSON. It returns false if there
// is no room even for the mark.
func cutText(s string, budget int) (string, bool) {
	left := budget - len(cutMark) - len(`""`)
	if left < 0 {
		return "", false
	}
	keep := 0
	for ; keep < len(s); keep++ {
		if left -= len(appendString(nil, s[keep:keep+1])) - len(`""`); left < 0 { // escapes count too
			break
		}
	}
	for keep > 0 && keep < len(s) && !utf8.RuneStart(s[keep]) {
		keep--
	}
	return s[:keep] + cutMark, true
}

// list keeps whole elements. If not even the first one fits, that one is cut: otherwise no call could ever show any of
// it.
func (k *cutter) list(list []any, budget int, path string) []any {
	kept := cutList(list, budget)
	if room := budget - 2; len(kept) == 0 && len(list) > 0 && room >= nullSize {
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

// members keeps small members and shares the rest of the budget among the others. If there is no room even for the
// names, it leaves out the last members.
func (k *cutter) members(o object, budget int, path string) any {
	isMark := func(m member) bool { return m.name == "_source" || m.name == "_trusted" }
	unmarked := slices.DeleteFunc(slices.Clone(o), isMark)
	if len(unmarked) < len(o) { // a mark of foreign content stays with the content
		marks := slices.DeleteFunc(slices.Clone(o), func(m member) bool { return !isMark(m) })
		if budget -= size(marks) - 1; budget < 2 {
			k.note(path, size(o), budget)
			return nil
		}
		rest, ok := k.members(unmarked, budget, path).(object)
		if !ok {
			return nil
		}
		return append(rest, marks...)
	}
	left, fitting := budget-1, 0
	for _, m := range o {
		if need := size(m.name) + 2; left >= need+nullSize {
			left -= need + nullSize
			fitting++
			continue
		}
		k.note(path, size(o), budget)
		break
	}
	out := slices.Clone(o[:fitting])
	left += fitting * nullSize
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

// cutToTokens implements --token-offset, --token-limit and --token-count.
func (c *Call) cutToTokens(a *answer) {
	if c.Bool("token-count") && a.fault == nil {
		a.meta = a.meta.set("token_count", number(tokens(size(a.data))))
		a.data = nil
		return
	}
	whole, path, offset := a.data, longest(a.data), c.Int("token-offset")
	if offset > 0 && a.data != nil {
		a.meta = a.meta.set("token_offset", number(offset))
		a.data = c.skipRows(a, offset)
		if a.page == nil {
			a.data = replace(whole, path, skip(follow(whole, path), offset))
		}
	}
	n := c.Int("token-limit")
	if n <= 0 || a.data == nil {
		return
	}
	a.meta = a.meta.set("token_limit", number(n))
	if size(a.data) <= n*bytesPerToken {
		return
	}
	c.cut(a, n*bytesPerToken, c.lineWith("--token-limit", itoa(2*n)))
	if a.page != nil {
		return
	}
	if leaf := follow(a.data, path); leaf != nil {
		kept, next := resume(follow(whole, path), leaf, offset)
		if a.data = replace(a.data, path, kept); next > offset {
			a.meta = a.meta.set("truncation_hint", c.lineWith("--token-offset", itoa(next)))
		}
	}
}

// skipRows leaves out the rows that the first offset tokens of a page cover, and moves the beginning of the page.
func (c *Call) skipRows(a *answer, offset int) any {
	rows, isList := c.rows(a.data)
	if a.page == nil || !isList {
		return a.data
	}
	left := skip(rows, offset).([]any)
	a.page.offset += len(rows) - len(left)
	a.page.returned = len(left)
	return slices.Clone(a.data.(object)).set(a.page.key, left)
}

// cut makes the data fit into budget bytes and reports what is missing. It names the command that returns the rest: the
// one for the next page of a list, otherwise next.
func (c *Call) cut(a *answer, budget int, next string) {
	a.meta = a.meta.set("total_bytes", number(size(a.data)))
	k := &cutter{}
	if list, isList := c.rows(a.data); isList && a.page != nil {
		head := size(a.data) - size(list)
		kept := k.list(list, max(0, budget-head), a.page.key)
		a.page.returned = len(kept)
		a.data = slices.Clone(a.data.(object)).set(a.page.key, kept)
		if len(kept) > 0 && a.page.next() != "" {
			next = c.next(a.page)
		}
	} else {
		a.data = k.fit(a.data, budget-len(`,"_truncated":true`), "")
		if o, ok := a.data.(object); ok {
			a.data = o.set("_truncated", true)
		}
	}
	if a.page == nil || len(k.fields) > 0 {
		c.reportCuts(a, k.fields)
	}
	a.meta = a.meta.set("truncated", true).set("truncation_hint", next)
}

// mostCutsListed is how many shortened members are listed: the list must leave room for the data.
const mostCutsListed = 10

func (c *Call) reportCuts(a *answer, cuts []cutField) {
	slices.SortStableFunc(cuts, func(a, b cutField) int { return (b.had - b.kept) - (a.had - a.kept) })
	fields := []any{}
	for i, f := range cuts {
		if i == mostCutsListed {
			c.Warn("FIELD_TRUNCATED", "%d more members are shortened or missing", len(cuts)-i)
			break
		}
		f.name = cmp.Or(f.name, "data")
		fields = append(fields, f.name)
		c.warn(warning{
			Code: "FIELD_TRUNCATED", Message: f.name + " is longer than the answer may be; its end is missing",
			Detail: map[string]any{"field": f.name, "original_size": f.had, "returned_size": f.kept},
		})
	}
	a.meta = a.meta.set("truncated_fields", fields)
}

// next returns the command for the next page.
func (c *Call) next(pg *page) string { return c.lineWith("--token-offset", "", "--cursor", pg.next()) }

// lineWith returns the command to run next: the call as typed, with some flags changed. flags are pairs of a flag that
// takes a value and its new value. An empty value removes the flag.
func (c *Call) lineWith(flags ...string) string {
	var words, end []string
	typed := c.masked()
	for i := 0; i < len(typed); i++ {
		name, _, joined := strings.Cut(typed[i], "=")
		if typed[i] == "--" {
			end = typed[i:]
			break
		}
		if at := slices.Index(flags, name); at >= 0 && at%2 == 0 {
			if !joined {
				i++
			}
			continue
		}
		words = append(words, typed[i])
	}
	for i := 0; i+1 < len(flags); i += 2 {
		if flags[i+1] != "" {
			words = append(words, flags[i], flags[i+1])
		}
	}
	return text.Shell(slices.Concat([]string{c.Program.Name}, words, end)...)
}

// longest returns the path to the longest string or list, as indexes of members. --token-offset counts in that value,
// so that a caller can continue where the last answer was cut.
func longest(v any) (path []int) {
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

// follow returns the value at the end of a path, or nil.
func follow(v any, path []int) any {
	for _, i := range path {
		o, ok := v.(object)
		if !ok || i >= len(o) {
			return nil
		}
		v = o[i].value
	}
	return v
}

// replace returns a copy of the tree with another value at the end of the path.
func replace(v any, path []int, value any) any {
	if len(path) == 0 {
		return value
	}
	o := slices.Clone(v.(object))
	o[path[0]].value = replace(o[path[0]].value, path[1:], value)
	return o
}

// skip leaves out the first n tokens of a string, or the elements of a list that lie wholly within them.
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

// boundary returns the first start of a character at or after n.
func boundary(s string, n int) int {
	n = min(n, len(s))
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return n
}

// resume shortens kept so that --token-offset can continue where it ends. kept is what was left of whole after offset
// tokens were skipped and the rest was cut. resume also returns the next offset; if that is not more than offset,
// another call would show nothing new.
func resume(whole, kept any, offset int) (any, int) {
	switch whole := whole.(type) {
	case string:
		text, _ := kept.(string)
		text, ok := strings.CutSuffix(text, cutMark)
		if !ok {
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
