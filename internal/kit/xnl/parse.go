package xnl

import "strings"

// maxDepth bounds nesting, so that no text can exhaust the stack of those who walk the nodes.
const maxDepth = 256

const byteOrderMark = "\uFEFF"

// Parse reads the nodes of a text. The error is an *Error.
func Parse(text string) (nodes []*Node, warnings []Warning, err error) {
	defer catch(&err)
	p := newParser(text)
	nodes = p.document()
	return nodes, p.warnings, nil
}

// ParseSingle reads a text that has one node and nothing else.
func ParseSingle(text string) (node *Node, warnings []Warning, err error) {
	defer catch(&err)
	p := newParser(text)
	p.skip()
	node = p.node()
	if p.skip(); p.at < len(p.text) {
		p.fail(UnexpectedToken, p.at, "Expected a single node")
	}
	return node, p.warnings, nil
}

// ParseUnique reads the nodes of a text as the unique children of a node named root.
func ParseUnique(root, text string) (node *Node, warnings []Warning, err error) {
	defer catch(&err)
	p := newParser(text)
	node = &Node{Tag: root, Attributes: Object{}}
	node.Extend = p.unique(root, p.document())
	return node, p.warnings, nil
}

type parser struct {
	text     string
	at       int
	depth    int
	warnings []Warning
	unclosed bool // no "</#" follows
}

func newParser(text string) *parser {
	p := &parser{text: text, warnings: []Warning{}}
	if strings.HasPrefix(text, byteOrderMark) {
		p.at = len(byteOrderMark)
	}
	return p
}

func (p *parser) document() []*Node {
	nodes := []*Node{}
	for p.skip(); p.at < len(p.text); p.skip() {
		nodes = append(nodes, p.node())
	}
	return nodes
}

// peek returns the next byte; 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// take passes the next byte and returns it. An error about it is placed behind it, where seed 2's own parser places it.
func (p *parser) take() byte {
	c := p.peek()
	p.at = min(p.at+1, len(p.text))
	return c
}

func (p *parser) ended() bool { return p.at >= len(p.text) }

// skip passes blanks and comments.
func (p *parser) skip() {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			p.at++
		case c == '<' && strings.HasPrefix(p.text[p.at:], "<!--"):
			end := strings.Index(p.text[p.at+len("<!--"):], "-->")
			if end < 0 {
				p.fail(UnexpectedEOF, p.at, "Unterminated comment")
			}
			p.at += len("<!--") + end + len("-->")
		default:
			return
		}
	}
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(InvalidContent, p.at, "Nested deeper than %d levels", maxDepth)
	}
}

func (p *parser) node() *Node {
	p.enter()
	n := &Node{Offset: p.at}
	if p.take() != '<' {
		p.fail(UnexpectedToken, p.at, "Expected '<' to start a node")
	}
	if n.Tag = p.name(); n.Tag == "" {
		p.fail(UnexpectedToken, p.at, "Expected node name")
	}
	p.metadata(n)
	p.sections(n)
	p.depth--
	return n
}

func (p *parser) metadata(n *Node) {
	for {
		p.skip()
		if p.ended() {
			p.fail(UnexpectedEOF, p.at, "Unexpected end while reading metadata")
		}
		switch p.text[p.at] {
		case '{', '[', '(', '#', '>':
			n.Metadata = n.Metadata.distinct()
			return
		}
		n.Metadata = append(n.Metadata, p.member("metadata key"))
	}
}

// member reads key = value. what names the key in errors.
func (p *parser) member(what string) (m Member) {
	var ok bool
	if m.Key, ok = p.key(); !ok {
		p.fail(UnexpectedToken, p.at, "Expected %s", what)
	}
	p.skip()
	if p.take() != '=' {
		p.fail(UnexpectedToken, p.at, "Expected '=' after %s", what)
	}
	p.skip()
	m.Value = p.value()
	return m
}

// sections reads the parts behind the metadata, and the end of the node.
func (p *parser) sections(n *Node) {
	for {
		p.skip()
		if p.ended() {
			p.fail(UnexpectedEOF, p.at, "Unexpected end of input")
		}
		switch c := p.text[p.at]; c {
		case '>':
			p.at++
			return
		case '{':
			p.once("attribute", n.Attributes != nil)
			n.Attributes = p.attributes(n.Tag)
		case '[':
			p.once("array", n.Body != nil)
			n.Body = p.body(n.Tag)
		case '(':
			p.once("extend", n.Extend != nil)
			n.Extend = p.extend(n.Tag)
		case '#':
			if n.Body != nil || n.Extend != nil {
				p.fail(InvalidContent, p.at+1, "Text block not allowed with array/extend sections in <%s>", n.Tag)
			}
			p.textPart(n)
			return
		default:
			p.fail(UnexpectedToken, p.at, "Expected '>' to end <%s>", n.Tag)
		}
	}
}

func (p *parser) once(what string, had bool) {
	if had {
		p.fail(InvalidContent, p.at, "Multiple %s blocks are not allowed", what)
	}
}

// more passes blanks and comments, and reports whether the part goes on. It passes the closing bracket.
func (p *parser) more(closing byte, what, tag string) bool {
	p.skip()
	if p.ended() {
		if tag == "" {
			p.fail(UnexpectedEOF, p.at, "Missing closing '%c' for %s", closing, what)
		}
		p.fail(UnexpectedEOF, p.at, "Missing closing '%c' for %s in <%s>", closing, what, tag)
	}
	if p.text[p.at] != closing {
		return true
	}
	p.at++
	return false
}

func (p *parser) attributes(tag string) Object {
	p.at++
	o := Object{}
	for p.more('}', "attributes", tag) {
		o = append(o, p.member("key in attribute block"))
	}
	return o.distinct()
}

func (p *parser) body(tag string) []any {
	p.at++
	items := []any{}
	for p.more(']', "array", tag) {
		if p.text[p.at] == '<' {
			items = append(items, p.node())
			continue
		}
		items = append(items, p.value())
		p.apart()
	}
	return items
}

func (p *parser) extend(tag string) []*Node {
	p.at++
	children := []*Node{}
	for p.more(')', "extend", tag) {
		if p.text[p.at] != '<' {
			p.fail(InvalidContent, p.at, "Extend block inside <%s> must contain child nodes", tag)
		}
		children = append(children, p.node())
	}
	return p.unique(tag, children)
}
