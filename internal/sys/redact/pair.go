package redact

import "strings"

// maxName is the longest text that counts as a name.
const maxName = 128

// quote is a quotation mark and the backslashes before it: a string inside a JSON string is quoted \"so\".
type quote struct {
	mark    byte
	slashes int
}

// pair judges the text around the colon or equals sign at i: NAME=value, "name": "value", name: value, Header: value.
func pair(s string, low, i int) (span, bool) {
	end := i
	for end > low && (s[end-1] == ' ' || s[end-1] == '\t') {
		end--
	}
	spaced := end < i
	quoted, q := false, quote{}
	if end > low && isQuote(s[end-1]) {
		quoted, q.mark = true, s[end-1]
		for end--; end > low && s[end-1] == '\\'; end-- {
			q.slashes++
		}
	}
	start := end
	for start > low && nameByte(s[start-1]) {
		if start--; end-start > maxName {
			return span{}, false
		}
	}
	name := strings.Trim(s[start:end], "-.")
	if name == "" {
		return span{}, false
	}
	// In \nAPI_KEY=x the n does not belong to the name.
	if start > 0 && s[start-1] == '\\' && !quoted && len(name) > 1 && (Name(name[1:]) || isHeader(name[1:])) {
		name = name[1:]
	}
	inQuery := s[i] == '=' && start > 0 && (s[start-1] == '?' || s[start-1] == '&')
	header := s[i] == ':' && isHeader(name)
	if !header && !Name(name) && !(inQuery && secretParameter(name)) {
		return span{}, false
	}
	return value(s, i, start, nameContext{quoted: quoted, q: q, spaced: spaced, header: header, inQuery: inQuery})
}

// nameContext is what is known of a name before its value is read.
type nameContext struct {
	quoted  bool
	q       quote
	spaced  bool // there is space before the sign
	header  bool
	inQuery bool
}

// value finds the value after the sign at i.
func value(s string, i, nameStart int, p nameContext) (span, bool) {
	k := i + 1
	for k < len(s) && (s[k] == ' ' || s[k] == '\t') {
		k++
	}
	spaced := p.spaced || k > i+1
	if k == len(s) {
		return span{}, false
	}
	if q, inside, ok := openQuote(s, k); ok {
		return nonEmpty(inside, closeQuote(s, inside, q))
	}
	switch c := s[k]; {
	case p.header && !p.quoted:
		return nonEmpty(k, headerEnd(s, k))
	case c == '[' && p.quoted:
		return array(s, k)
	case c == '{' && p.quoted:
		return span{}, false // what is inside has names of its own
	case s[i] == ':' && p.quoted:
		return scalar(s, k, p.q)
	case s[i] == ':' && (c == ':' || c == '='), spaced && c == '=':
		return span{}, false // token := x, token::T, token == x
	}
	end := tokenEnd(s, k, p.inQuery)
	if end <= k || plain(s[k:end]) {
		return span{}, false
	}
	if spaced && !assignment(s, i, nameStart, k, end) {
		return span{}, false
	}
	return span{k, end, Mask}, true
}

func nonEmpty(start, end int) (span, bool) { return span{start, end, Mask}, end > start }

// assignment distinguishes `password: hunter2` and `token = abc` from prose and program text. The value is a single
// word at the end of its line. After a colon, the name also begins the line, or the value has a character that words do
// not have.
func assignment(s string, i, nameStart, k, end int) bool {
	after := end
	for after < len(s) && strings.IndexByte(" \t\r,;", s[after]) >= 0 {
		after++
	}
	if after < len(s) && s[after] != '\n' && !closes(s, after) {
		return false
	}
	if strings.IndexByte(s[k:end], '(') >= 0 {
		return false
	}
	if s[i] == '=' {
		return true
	}
	for j := k; j < end; j++ {
		if !lower(s[j]) && !upper(s[j]) {
			return true
		}
	}
	j := nameStart
	for j > 0 && (s[j-1] == ' ' || s[j-1] == '\t' || s[j-1] == '-') {
		j--
	}
	return j == 0 || s[j-1] == '\n'
}

// scalar returns an unquoted JSON value: a number becomes a string, true, false and null hold no secret.
func scalar(s string, k int, q quote) (span, bool) {
	end := k
	for end < len(s) && !space(s[end]) && strings.IndexByte(",}]\\", s[end]) < 0 && !isQuote(s[end]) {
		end++
	}
	if end == k || plain(s[k:end]) {
		return span{}, false
	}
	if strings.HasPrefix(s[k:], Mask) { // already masked, without quotes
		return span{k, k + len(Mask), Mask}, true
	}
	mark := strings.Repeat(`\`, q.slashes) + string(q.mark)
	return span{k, end, mark + Mask + mark}, true
}

// array returns all between the first and the last quotation mark of a list of strings.
func array(s string, k int) (span, bool) {
	k++
	for k < len(s) && space(s[k]) {
		k++
	}
	q, start, ok := openQuote(s, k)
	if !ok {
		return span{}, false
	}
	end := closeQuote(s, start, q)
	for {
		next := end + q.slashes + 1
		for next < len(s) && (space(s[next]) || s[next] == ',') {
			next++
		}
		other, inside, ok := openQuote(s, min(next, len(s)))
		if !ok || other != q {
			return nonEmpty(start, end)
		}
		end = closeQuote(s, inside, q)
	}
}

// flag returns the value after --name at i, also where the two are elements of a JSON list.
func flag(s string, i int) (span, bool) {
	if i+3 >= len(s) || s[i+1] != '-' || !lower(s[i+2]) && !upper(s[i+2]) || i > 0 && nameByte(s[i-1]) {
		return span{}, false
	}
	end := i + 2
	for end < len(s) && nameByte(s[end]) {
		if end++; end-i > maxName {
			return span{}, false
		}
	}
	if end == len(s) || !Name(s[i+2:end]) {
		return span{}, false
	}
	k := end
	if q, after, ok := openQuote(s, k); ok { // "--token","value"
		for k = after; k < len(s) && (s[k] == ' ' || s[k] == ','); k++ {
		}
		if other, inside, ok := openQuote(s, k); ok && other == q && k > after && s[inside-1] == q.mark &&
			!strings.HasPrefix(s[inside:], "--") {
			return nonEmpty(inside, closeQuote(s, inside, q))
		}
		return span{}, false
	}
	for k < len(s) && (s[k] == ' ' || s[k] == '\t') {
		k++
	}
	if k == end || k == len(s) {
		return span{}, false
	}
	if q, inside, ok := openQuote(s, k); ok {
		return nonEmpty(inside, closeQuote(s, inside, q))
	}
	if s[k] == '-' && k+1 < len(s) && (s[k+1] == '-' || k+2 >= len(s) || !nameByte(s[k+2])) {
		return span{}, false // another flag
	}
	word := tokenEnd(s, k, false)
	if word <= k || plain(s[k:word]) || prose(s[k:word]) {
		return span{}, false
	}
	return span{k, word, Mask}, true
}

// prose reports whether a word after a flag belongs to a sentence about it.
func prose(w string) bool {
	switch w {
	case "is", "was", "are", "to", "and", "or", "not", "of", "in", "for", "on", "with", "must", "can", "cannot", "has",
		"needs",
		"takes", "from", "by", "as", "if", "when", "the", "a", "an", "may", "instead", "given", "there", "would",
		"where":
		return true
	}
	return false
}

// plain reports whether a value is harmless whatever its name.
func plain(v string) bool {
	switch v {
	case "true", "false", "null", "nil", "none", "None", "undefined", "True", "False":
		return true
	}
	return false
}

// tokenEnd returns the end of an unquoted word. Punctuation at its end belongs to the text around it.
func tokenEnd(s string, k int, inQuery bool) int {
	least := k
	if strings.HasPrefix(s[k:], Mask) {
		least = k + len(Mask)
	}
	end := least
	for end < len(s) && !space(s[end]) && !closes(s, end) {
		if inQuery && (s[end] == '&' || s[end] == '#') {
			break
		}
		end++
	}
	for end > least && strings.IndexByte(",;.)]}:", s[end-1]) >= 0 {
		end--
	}
	return end
}

// headerEnd returns the end of a header's value: the end of the line, or of the quotation that the header stands in. A
// quotation mark after an equals sign opens a parameter, as in Digest username="x".
func headerEnd(s string, k int) int {
	end := k
	for end < len(s) && s[end] != '\n' && s[end] != '\r' {
		if s[end] == '\\' && end+1 < len(s) && (s[end+1] == 'n' || s[end+1] == 'r') {
			break
		}
		if q, inside, ok := openQuote(s, end); ok && end > k && s[end-1] == '=' {
			end = min(len(s), closeQuote(s, inside, q)+q.slashes+1)
			continue
		}
		if closes(s, end) {
			break
		}
		end++
	}
	for end > k && (s[end-1] == ' ' || s[end-1] == '\t') {
		end--
	}
	return end
}

// openQuote reads a quotation mark with the backslashes before it at k.
func openQuote(s string, k int) (q quote, inside int, ok bool) {
	for k < len(s) && s[k] == '\\' && q.slashes < 16 {
		q.slashes++
		k++
	}
	if k == len(s) || !isQuote(s[k]) {
		return quote{}, 0, false
	}
	q.mark = s[k]
	return q, k + 1, true
}

// closeQuote returns where the quotation ends, before the backslashes of its mark; an open one takes all the rest. Each
// level of quoting doubles the backslashes, so the count decides whether a mark is the end of this level or text within
// it.
func closeQuote(s string, k int, q quote) int {
	run := 0
	for i := k; i < len(s); i++ {
		switch s[i] {
		case '\\':
			run++
			continue
		case q.mark:
			if run < q.slashes { // the quotation around ours ends
				return i - run
			}
			if (run-q.slashes)%(2*(q.slashes+1)) == 0 {
				return i - q.slashes
			}
		}
		run = 0
	}
	return len(s)
}

// closes reports whether the quotation mark at i ends something, rather than being inside a word.
func closes(s string, i int) bool {
	j := i
	for j < len(s) && s[j] == '\\' && j-i < 16 {
		j++
	}
	if j == len(s) || !isQuote(s[j]) {
		return false
	}
	return j+1 == len(s) || space(s[j+1]) || strings.IndexByte(`,;:.)]}>\|&`, s[j+1]) >= 0
}

func isQuote(c byte) bool  { return c == '"' || c == '\'' || c == '`' }
func nameByte(c byte) bool { return alnum(c) || c == '_' || c == '-' || c == '.' }

// isHeader reports whether a header is masked to the end of the line.
func isHeader(name string) bool {
	for _, header := range [...]string{
		"authorization", "cookie", "set-cookie", "x-api-key", "x-auth-token", "x-goog-api-key", "proxy-authorization",
	} {
		if len(name) == len(header) && strings.EqualFold(name, header) {
			return true
		}
	}
	return false
}

// secretParameter reports whether a name is secret in the query of a URL only.
func secretParameter(name string) bool {
	switch strings.ToLower(name) {
	case "key", "sig", "signature", "x-amz-signature", "x-goog-signature":
		return true
	}
	return false
}
