package literal

import (
	"bytes"
	"slices"
	"strings"
)

// insertKey inserts a new key at its place. The path leads through tables only, and its last name is new.
func insertKey(data []byte, statements []statement, path []string, text string) []byte {
	if out, ok := insertInline(data, statements, path, text); ok {
		return out
	}
	if out, ok := insertInTable(data, statements, path, text); ok {
		return out
	}
	if len(path) == 1 {
		return insertBeforeHeaders(data, statements, path, text)
	}
	feed := lineFeed(data)
	var out bytes.Buffer
	out.Write(data)
	if blank := len(bytes.TrimPrefix(data, []byte(byteOrderMark))) == 0; !blank {
		if !bytes.HasSuffix(data, []byte("\n")) {
			out.WriteString(feed)
		}
		out.WriteString(feed)
	}
	out.WriteString("[" + encodePath(path[:len(path)-1]) + "]" + feed)
	out.WriteString(encodePath(path[len(path)-1:]) + " = " + text + feed)
	return out.Bytes()
}

// lineFeed returns the document's newline.
func lineFeed(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// insertInTable uses the table's own section, else the lines that define a table above the key with dotted keys,
// because such a table cannot have a header.
func insertInTable(data []byte, statements []statement, path []string, text string) ([]byte, bool) {
	rest := path[len(path)-1:]
	anchor, ok := sectionEnd(statements, path[:len(path)-1])
	if !ok {
		anchor, rest, ok = dottedPlace(statements, path)
	}
	if !ok {
		return nil, false
	}
	return insertAfter(data, anchor, encodePath(rest)+" = "+text), true
}

// sectionEnd finds the last line of the table's own section.
func sectionEnd(statements []statement, table []string) (last statement, ok bool) {
	open := len(table) == 0
	for _, st := range statements {
		if st.header {
			open = !st.array && slices.Equal(names(st.keys), table)
		}
		if open {
			last, ok = st, true
		}
	}
	return last, ok
}

// dottedPlace finds the last line that defines the deepest table above the key, and the rest of the path in that
// section. If a header reaches deeper, that table is not dotted.
func dottedPlace(statements []statement, path []string) (anchor statement, rest []string, ok bool) {
	var in []string
	deepest, headers := 0, 0
	for _, st := range statements {
		if st.header {
			in = names(st.keys)
			headers = max(headers, sharedTable(append(in, ""), path))
			continue
		}
		shared := sharedTable(slices.Concat(in, names(st.keys)), path)
		if shared > len(in) && shared >= deepest {
			anchor, rest, ok, deepest = st, path[len(in):], true, shared
		}
	}
	return anchor, rest, ok && deepest >= headers
}

// sharedTable returns the length of the common table path of both keys.
func sharedTable(a, b []string) int {
	n := 0
	for n < len(a)-1 && n < len(b)-1 && a[n] == b[n] {
		n++
	}
	return n
}

func names(keys []keyPart) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = key.name
	}
	return out
}

// insertAfter adds a line below the statement, indented like it.
func insertAfter(data []byte, st statement, line string) []byte {
	feed := lineFeed(data)
	line = indentation(data, st) + line
	if st.end > 0 && data[st.end-1] == '\n' {
		return splice(data, st.end, st.end, line+feed)
	}
	return splice(data, st.end, st.end, feed+line)
}

func indentation(data []byte, st statement) string {
	start := st.lineStart
	return string(data[start:skipBlanks(data, start)])
}

// insertBeforeHeaders inserts the first key without a table above the first header and its comment.
func insertBeforeHeaders(data []byte, statements []statement, path []string, text string) []byte {
	feed := lineFeed(data)
	line := encodePath(path) + " = " + text
	if len(statements) == 0 {
		if n := len(data); n > 0 && data[n-1] != '\n' && !bytes.Equal(data, []byte(byteOrderMark)) {
			line = feed + line
		}
		return splice(data, len(data), len(data), line+feed)
	}
	at := statements[0].lineStart
	first := len(data) - len(bytes.TrimPrefix(data, []byte(byteOrderMark)))
	for at > first {
		above := max(first, 1+bytes.LastIndexByte(data[:at-1], '\n'))
		if !strings.HasPrefix(strings.TrimLeft(string(data[above:at]), " \t"), "#") {
			break
		}
		at = above
	}
	return splice(data, at, at, line+feed+feed)
}

// insertInline adds the key to an inline table on its path.
func insertInline(data []byte, statements []statement, path []string, text string) ([]byte, bool) {
	inline, rest, ok := inlineOnWay(statements, path)
	if !ok {
		return nil, false
	}
	line := encodePath(rest) + " = " + text
	if n := len(inline.pairs); n > 0 {
		at := inline.pairs[n-1].value.end
		return splice(data, at, at, ", "+line), true
	}
	line = " " + line
	at := inline.start + 1
	if data[at] == '}' {
		line += " "
	}
	return splice(data, at, at, line), true
}

// inlineOnWay finds the innermost inline table on the path, and the rest of the path inside it.
func inlineOnWay(statements []statement, path []string) (node, []string, bool) {
	var in []string
	for _, st := range statements {
		if st.header {
			in = names(st.keys)
			continue
		}
		full := slices.Concat(in, names(st.keys))
		if st.value.kind == Object && len(full) < len(path) && slices.Equal(full, path[:len(full)]) {
			inner, rest := descend(st.value, path[len(full):])
			return inner, rest, true
		}
	}
	return node{}, nil, false
}

func descend(inline node, path []string) (node, []string) {
	for _, p := range inline.pairs {
		keys := names(p.keys)
		if p.value.kind == Object && len(keys) < len(path) && slices.Equal(keys, path[:len(keys)]) {
			return descend(p.value, path[len(keys):])
		}
	}
	return inline, path
}

// cutKey removes the key of a value: its line, or its place in an inline table.
func cutKey(data []byte, statements []statement, old Value) []byte {
	for _, st := range statements {
		if st.header || old.Pos.Offset < st.value.start || old.Pos.Offset >= st.value.end {
			continue
		}
		if st.value.start == old.Pos.Offset {
			return splice(data, st.lineStart, st.end, "")
		}
		return cutPair(data, st.value, old)
	}
	return data // cannot happen, since reach has found it; the comparison would notice
}

func cutPair(data []byte, inline node, old Value) []byte {
	for i, p := range inline.pairs {
		switch {
		case old.Pos.Offset < p.value.start || old.Pos.Offset >= p.value.end:
		case p.value.start != old.Pos.Offset:
			return cutPair(data, p.value, old)
		default:
			return cutFromList(data, inline, i)
		}
	}
	return data
}

// cutFromList removes the pair and one comma, and keeps the comments between them.
func cutFromList(data []byte, inline node, i int) []byte {
	start, end := inline.pairs[i].keys[0].start, inline.pairs[i].value.end
	if comma := skipTrivia(data, end, false); data[comma] == ',' {
		after := skipBlanks(data, comma+1)
		if data[after] == '}' && after > comma+1 && data[start-1] != ' ' {
			after-- // keep one space before the brace
		}
		if skipBlanks(data, end) == comma {
			return splice(data, start, after, "")
		}
		return slices.Concat(data[:start], data[end:comma], data[after:])
	}
	if i == 0 {
		return splice(data, start, end, "")
	}
	comma := skipTrivia(data, inline.pairs[i-1].value.end, false)
	if skipBlanks(data, comma+1) == start {
		return splice(data, comma, end, "")
	}
	return slices.Concat(data[:comma], data[comma+1:start], data[end:])
}
