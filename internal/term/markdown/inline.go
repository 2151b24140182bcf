package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"omniagent/internal/term/cells"
)

// token is a part of a line.
type token struct {
	text  string
	style cells.Style // of itself, as code has one

	// of a run of delimiters: * _ ~
	mark          byte
	count         int // those that are not used yet
	opens, closes bool
	size          int // as it was

	before, after []change // styles that begin or end there
}

// change is a style that begins, or ends.
type change struct {
	kind int // bold, italic, struck, link
	on   bool
}

const (
	bold = iota
	italic
	struck
	link
	kinds
)

// styleOf returns how a kind looks.
func styleOf(kind int) cells.Style {
	return [kinds]cells.Style{cells.Bold, cells.Italic, cells.Struck, cells.Underline}[kind]
}

// inline renders the spans of a line. open says that its end has not come: a span that is not closed may be yet, and
// is shown as if it were.
func inline(s string, base cells.Style, open bool) string {
	if !strings.ContainsAny(s, "\\`*_~[") {
		return base.Of(s)
	}
	tokens := scan(s, open)
	match(tokens, open)
	return write(tokens, base)
}

// scan divides a line into tokens.
func scan(s string, open bool) []token {
	var tokens []token
	runs := runsIn(s)
	var brackets []int // tokens that are [
	plain := 0         // where the text that is not a token yet begins
	flush := func(to int) {
		if plain < to {
			tokens = append(tokens, token{text: s[plain:to]})
		}
	}
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s) && isPunctuation(s[i+1]):
			flush(i)
			tokens = append(tokens, token{text: s[i+1 : i+2]})
			i += 2
		case c == '`':
			n := run(s, i)
			flush(i)
			end := runs.next(n, i+n)
			if end < 0 && !open {
				tokens = append(tokens, token{text: s[i : i+n]})
				i += n
				break
			}
			if end < 0 {
				end = len(s)
			}
			tokens = append(tokens, token{text: trimCode(s[i+n : end]), style: cells.Cyan})
			i = min(end+n, len(s))
		case c == '*' || c == '_' || c == '~':
			n := run(s, i)
			flush(i)
			tokens = append(tokens, delimiter(s, i, n))
			i += n
		case c == '[':
			flush(i)
			brackets = append(brackets, len(tokens))
			tokens = append(tokens, token{text: "["})
			i++
		case c == ']' && len(brackets) > 0:
			flush(i)
			from := brackets[len(brackets)-1]
			brackets = brackets[:len(brackets)-1]
			address := target(s[i+1:])
			if address == "" {
				tokens = append(tokens, token{text: "]"})
				i++
				break
			}
			tokens = endLink(tokens, from, address)
			i += 1 + len(address) + 2
		default:
			i++
			continue
		}
		plain = i
	}
	flush(len(s))
	return tokens
}

// endLink makes the tokens from a bracket on a link.
func endLink(tokens []token, from int, address string) []token {
	label := ""
	for _, t := range tokens[from+1:] {
		if len(label) <= len(address) {
			label += t.text
		}
	}
	tokens[from] = token{after: []change{{link, true}}}
	tokens = append(tokens, token{before: []change{{link, false}}})
	if label != address {
		tokens = append(tokens, token{text: " (" + address + ")", style: cells.Faint})
	}
	return tokens
}

const mostAddress = 2048

// target returns the address in the parentheses that s begins with.
func target(s string) string {
	if !strings.HasPrefix(s, "(") {
		return ""
	}
	depth := 0
	for i := 1; i < len(s) && i < mostAddress; i++ {
		switch c := s[i]; {
		case c == ')' && depth == 0:
			return s[1:i]
		case c == ')':
			depth--
		case c == '(':
			depth++
		case c <= ' ':
			return ""
		}
	}
	return ""
}

// run returns how often the character at i is repeated.
func run(s string, i int) int {
	n := 1
	for i+n < len(s) && s[i+n] == s[i] {
		n++
	}
	return n
}

// runs knows where runs of backticks of each length are, so that a search never goes over the line again.
type runs map[int][]int

func runsIn(s string) runs {
	r := runs{}
	for i := 0; i < len(s); {
		at := strings.IndexByte(s[i:], '`')
		if at < 0 {
			break
		}
		i += at
		n := run(s, i)
		r[n] = append(r[n], i)
		i += n
	}
	return r
}

// next returns where the next run of that length begins, from a position on, or -1. Positions only grow.
func (r runs) next(n, from int) int {
	for len(r[n]) > 0 && r[n][0] < from {
		r[n] = r[n][1:]
	}
	if len(r[n]) == 0 {
		return -1
	}
	return r[n][0]
}

// trimCode removes one space on both sides, which separates code from its backticks.
func trimCode(s string) string {
	if len(s) > 2 && s[0] == ' ' && s[len(s)-1] == ' ' && strings.Trim(s, " ") != "" {
		return s[1 : len(s)-1]
	}
	return s
}

func isPunctuation(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

// delimiter returns the token of a run, with what it may do: it opens before a word, and closes behind one.
func delimiter(s string, i, n int) token {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+n:])
	spaceBefore := i == 0 || unicode.IsSpace(before)
	spaceAfter := i+n == len(s) || unicode.IsSpace(after)
	markBefore := !spaceBefore && (unicode.IsPunct(before) || unicode.IsSymbol(before))
	markAfter := !spaceAfter && (unicode.IsPunct(after) || unicode.IsSymbol(after))
	left := !spaceAfter && (!markAfter || spaceBefore || markBefore)
	right := !spaceBefore && (!markBefore || spaceAfter || markAfter)
	t := token{text: s[i : i+n], mark: s[i], count: n, size: n, opens: left, closes: right}
	switch t.mark {
	case '_': // within a word it is a letter
		t.opens, t.closes = left && (!right || markBefore), right && (!left || markAfter)
	case '~':
		if n != 2 {
			t.mark = 0
		}
	}
	return t
}

// match finds which delimiters belong together, as CommonMark says.
func match(tokens []token, open bool) {
	var openers []int
	bottom := map[[3]int]int{} // per kind of closer: below it there is no opener for it
	for i := range tokens {
		closer := &tokens[i]
		if closer.mark == 0 {
			continue
		}
		kind := [3]int{int(closer.mark), closer.size % 3, 0}
		if closer.opens {
			kind[2] = 1
		}
		for closer.closes && closer.count > 0 {
			at := len(openers) - 1
			for ; at >= bottom[kind]; at-- {
				if o := &tokens[openers[at]]; o.mark == closer.mark && fits(o, closer) {
					break
				}
			}
			if at < bottom[kind] {
				bottom[kind] = len(openers)
				break
			}
			opener := &tokens[openers[at]]
			style, used := kindOf(min(opener.count, closer.count), closer.mark)
			opener.count -= used
			closer.count -= used
			opener.after = append([]change{{style, true}}, opener.after...)
			closer.before = append(closer.before, change{style, false})
			if openers = openers[:at+1]; opener.count == 0 {
				openers = openers[:at]
			}
			for k, b := range bottom {
				bottom[k] = min(b, len(openers))
			}
		}
		if closer.opens && closer.count > 0 {
			openers = append(openers, i)
		}
	}
	if !open {
		return
	}
	for _, i := range openers { // their ends may come
		style, used := kindOf(tokens[i].count, tokens[i].mark)
		tokens[i].count -= used
		tokens[i].after = append(tokens[i].after, change{style, true})
	}
}

// fits reports whether two runs may belong together although one of them can open and close.
func fits(opener, closer *token) bool {
	if opener.mark == '~' {
		return true
	}
	both := opener.closes || closer.opens
	return !both || (opener.size+closer.size)%3 != 0 || opener.size%3 == 0 && closer.size%3 == 0
}

// kindOf returns the style that so many delimiters mean, and how many of them it uses.
func kindOf(count int, mark byte) (style, used int) {
	switch {
	case mark == '~':
		return struck, 2
	case count >= 2:
		return bold, 2
	}
	return italic, 1
}

// write joins the tokens.
func write(tokens []token, base cells.Style) string {
	var b, part strings.Builder
	var depth [kinds]int
	now := cells.None
	put := func(s string, style cells.Style) {
		if s == "" {
			return
		}
		if style != now {
			b.WriteString(now.Of(part.String()))
			part.Reset()
			now = style
		}
		part.WriteString(s)
	}
	apply := func(list []change) {
		for _, c := range list {
			if depth[c.kind]++; !c.on {
				depth[c.kind] -= 2
			}
		}
	}
	style := func() cells.Style {
		s := base
		for kind, n := range depth {
			if n > 0 {
				s = s.With(styleOf(kind))
			}
		}
		return s
	}
	for _, t := range tokens {
		apply(t.before)
		rest := t.text
		if t.mark != 0 {
			rest = t.text[:t.count]
		}
		put(rest, style().With(t.style))
		apply(t.after)
	}
	b.WriteString(now.Of(part.String()))
	return b.String()
}
