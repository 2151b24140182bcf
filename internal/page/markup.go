package page

import (
	"html"
	"strings"
)

// scanner divides HTML into tags and text, in one pass and without a tree, as the tokenizer of the standard does where
// it matters for text: comments, attributes with and without quotes, elements whose content is no markup, and
// characters by name. It never fails, and its time grows with the length of the page only.
type scanner struct {
	s   string
	at  int
	raw string // the element whose content is no markup, until its end tag
}

func newScanner(s string) *scanner { return &scanner{s: s} }

type tokenKind int

const (
	textToken tokenKind = iota
	startTag
	endTag
)

type token struct {
	kind       tokenKind
	name       string // of a tag, in small letters
	text       string // with its characters by name decoded
	attributes map[string]string
	closed     bool // a start tag that says that it has no content
}

// rawElement says whether the content of an element is no markup, and whether characters have names in it.
func rawElement(name string) (raw, named bool) {
	switch name {
	case "script", "style", "xmp", "iframe", "noembed", "noframes":
		return true, false
	case "title", "textarea":
		return true, true
	}
	return false, false
}

// next is the next tag or text.
func (z *scanner) next() (t token, ok bool) {
	for z.at < len(z.s) {
		if z.raw != "" {
			if t, ok = z.rawText(); ok {
				return t, true
			}
			continue
		}
		rest := z.s[z.at:]
		if rest[0] != '<' || !opensMarkup(rest) {
			end := 1
			for end < len(rest) && (rest[end] != '<' || !opensMarkup(rest[end:])) {
				step := strings.IndexByte(rest[end+1:], '<')
				if step < 0 {
					end = len(rest)
					break
				}
				end += 1 + step
			}
			z.at += end
			return token{kind: textToken, text: html.UnescapeString(rest[:end])}, true
		}
		switch c := rest[1]; {
		case isLetter(c):
			if t, ok = z.tag(startTag, 1); ok {
				if raw, _ := rawElement(t.name); raw {
					z.raw = t.name
				}
				return t, true
			}
		case c == '/' && len(rest) > 2 && isLetter(rest[2]):
			if t, ok = z.tag(endTag, 2); ok {
				return t, true
			}
		case strings.HasPrefix(rest, "<!--"):
			z.comment()
		default:
			z.skipPast(">")
		}
	}
	return token{}, false
}

// opensMarkup says whether what begins with < is more than a character.
func opensMarkup(s string) bool {
	return len(s) > 1 && (isLetter(s[1]) || s[1] == '!' || s[1] == '?' || s[1] == '/' && len(s) > 2)
}

func (z *scanner) skipPast(mark string) {
	if n := strings.Index(z.s[z.at:], mark); n >= 0 {
		z.at += n + len(mark)
		return
	}
	z.at = len(z.s)
}

// comment skips one. <!--> and <!---> are whole.
func (z *scanner) comment() {
	z.at += len("<!--")
	for _, short := range []string{">", "->"} {
		if strings.HasPrefix(z.s[z.at:], short) {
			z.at += len(short)
			return
		}
	}
	rest := z.s[z.at:]
	for from := 0; ; {
		n := strings.Index(rest[from:], "--")
		if n < 0 {
			z.at = len(z.s)
			return
		}
		from += n
		for _, end := range []string{"-->", "--!>"} {
			if strings.HasPrefix(rest[from:], end) {
				z.at += from + len(end)
				return
			}
		}
		from++
	}
}

// rawText is the content of an element that has no markup. There may be none.
func (z *scanner) rawText() (t token, ok bool) {
	rest, end := z.s[z.at:], len(z.s)-z.at
	for from := 0; ; {
		n := strings.Index(rest[from:], "</")
		if n < 0 {
			break
		}
		from += n
		name := rest[from+2:]
		if len(name) >= len(z.raw) && strings.EqualFold(name[:len(z.raw)], z.raw) &&
			(len(name) == len(z.raw) || strings.IndexByte(" \t\n\r\f/>", name[len(z.raw)]) >= 0) {
			end = from
			break
		}
		from += 2
	}
	_, named := rawElement(z.raw)
	z.at, z.raw = z.at+end, ""
	if end == 0 {
		return t, false
	}
	t = token{kind: textToken, text: rest[:end]}
	if named {
		t.text = html.UnescapeString(t.text)
	}
	return t, true
}

// tag reads a tag. One that the page ends within is none.
func (z *scanner) tag(kind tokenKind, skip int) (t token, ok bool) {
	z.at += skip
	t = token{kind: kind, name: strings.ToLower(z.until(" \t\n\r\f/>"))}
	for {
		for z.at < len(z.s) && strings.IndexByte(" \t\n\r\f/", z.s[z.at]) >= 0 {
			t.closed = z.s[z.at] == '/'
			z.at++
		}
		if z.at >= len(z.s) {
			return t, false
		}
		if z.s[z.at] == '>' {
			z.at++
			return t, true
		}
		t.closed = false
		name, value := z.attribute()
		if kind == startTag && wanted(name) {
			if _, there := t.attributes[name]; !there {
				if t.attributes == nil {
					t.attributes = map[string]string{}
				}
				t.attributes[name] = unescapeAttribute(value)
			}
		}
	}
}

// wanted are the attributes that are looked at.
func wanted(name string) bool {
	switch name {
	case "href", "src", "alt", "class", "start", "charset", "http-equiv", "content":
		return true
	}
	return false
}

func (z *scanner) attribute() (name, value string) {
	first := z.at
	z.at++ // even a sign of equality begins a name
	z.until(" \t\n\r\f/>=")
	name = strings.ToLower(z.s[first:z.at])
	z.spaces()
	if z.at >= len(z.s) || z.s[z.at] != '=' {
		return name, ""
	}
	z.at++
	z.spaces()
	if z.at >= len(z.s) {
		return name, ""
	}
	if quote := z.s[z.at]; quote == '"' || quote == '\'' {
		z.at++
		value = z.until(string(quote))
		z.at = min(z.at+1, len(z.s))
		return name, value
	}
	return name, z.until(" \t\n\r\f>")
}

func (z *scanner) spaces() {
	for z.at < len(z.s) && strings.IndexByte(" \t\n\r\f", z.s[z.at]) >= 0 {
		z.at++
	}
}

func (z *scanner) until(any string) string {
	first := z.at
	if n := strings.IndexAny(z.s[z.at:], any); n >= 0 {
		z.at += n
	} else {
		z.at = len(z.s)
	}
	return z.s[first:z.at]
}

// unescapeAttribute leaves alone what is a parameter of an address rather than a character by name: ?a=1&copy=2.
func unescapeAttribute(s string) string {
	if !strings.Contains(s, "&") {
		return s
	}
	var b strings.Builder
	for {
		at := strings.IndexByte(s, '&')
		if at < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:at])
		s = s[at:]
		end := 1
		for end < len(s) && (isLetter(s[end]) || s[end] >= '0' && s[end] <= '9' || end == 1 && s[end] == '#') {
			end++
		}
		name := s[:end]
		if end < len(s) && s[end] == ';' {
			end++
			b.WriteString(html.UnescapeString(s[:end]))
		} else if plain := html.UnescapeString(name); len([]rune(plain)) == 1 && (end == len(s) || s[end] != '=') {
			b.WriteString(plain)
		} else {
			b.WriteString(name)
		}
		s = s[end:]
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
