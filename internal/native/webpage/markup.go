package webpage

import (
	"strings"

	"golang.org/x/net/html"
)

// scanner splits HTML into tags and text, in one pass and without a tree. It never fails, and its time is linear in the
// length of the page.
type scanner struct{ z *html.Tokenizer }

func newScanner(s string) *scanner { return &scanner{html.NewTokenizer(strings.NewReader(s))} }

type tokenKind int

const (
	textToken tokenKind = iota
	startTag
	endTag
)

type token struct {
	kind       tokenKind
	name       string // of a tag, in lower case
	text       string // with character references decoded
	attributes map[string]string
	closed     bool // a self-closing start tag
}

// next returns the next tag or text.
func (s *scanner) next() (t token, ok bool) {
	for {
		switch kind := s.z.Next(); kind {
		case html.ErrorToken:
			return token{}, false
		case html.TextToken:
			return token{kind: textToken, text: string(s.z.Text())}, true
		case html.EndTagToken:
			name, _ := s.z.TagName()
			return token{kind: endTag, name: string(name)}, true
		case html.StartTagToken, html.SelfClosingTagToken:
			return s.start(kind == html.SelfClosingTagToken), true
		}
	}
}

func (s *scanner) start(closed bool) token {
	name, more := s.z.TagName()
	t := token{kind: startTag, name: string(name), closed: closed}
	for more {
		var key, value []byte
		key, value, more = s.z.TagAttr()
		if !isUsedAttribute(string(key)) {
			continue
		}
		if _, there := t.attributes[string(key)]; !there {
			if t.attributes == nil {
				t.attributes = map[string]string{}
			}
			t.attributes[string(key)] = string(value)
		}
	}
	return t
}

// isUsedAttribute reports whether an attribute is used.
func isUsedAttribute(name string) bool {
	switch name {
	case "href", "src", "alt", "class", "start", "charset", "http-equiv", "content":
		return true
	}
	return false
}
