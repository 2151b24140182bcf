package xnl

import "strings"

// textPart reads the raw text of a node, from "#" to behind the closing marker.
func (p *parser) textPart(n *Node) {
	n.Kind = Text
	p.at++
	n.Marker = p.name()
	if p.peek() != '>' {
		p.fail(UnexpectedToken, p.at, "Expected '>' to start the text of <%s>", n.Tag)
	}
	p.at++
	length, closer := p.closing(n)
	content := p.text[p.at : p.at+length]
	p.at += length + closer
	n.Text = dedent(content)
}

// closing returns the length of the raw text and that of its closing marker. The exact marker counts, whatever other
// markers come before it. The first dialect of XNL closed with "<#marker>"; that counts where no "</#" follows.
func (p *parser) closing(n *Node) (length, closer int) {
	rest := p.text[p.at:]
	if !p.unclosed {
		exact := "</#" + n.Marker + ">"
		if i := strings.Index(rest, exact); i >= 0 {
			return i, len(exact)
		}
		if i := strings.Index(rest, "</#"); i >= 0 {
			p.mismatch(n, i, i+len("</#"))
		}
		p.unclosed = true // and it is so for all that follows
	}
	if i := strings.Index(rest, "<#"); i >= 0 {
		if old := "<#" + n.Marker + ">"; strings.HasPrefix(rest[i:], old) {
			return i, len(old)
		}
		if found := (&parser{text: rest, at: i + len("<#")}); found.name() != "" && found.peek() == '>' {
			p.mismatch(n, i, i+len("<#"))
		}
	}
	p.fail(MismatchedTag, p.at, "Missing closing text tag </#%s> for <%s>", n.Marker, n.Tag)
	return 0, 0
}

// mismatch reports a closing marker, at i, that is not the one of the node; its name begins at after.
func (p *parser) mismatch(n *Node, i, after int) {
	start := p.at + i
	p.at += after
	found := p.name()
	if p.peek() != '>' {
		p.fail(UnexpectedToken, start, "Invalid closing text tag for <%s>; expected '>' after marker '%s'", n.Tag,
			found)
	}
	p.fail(MismatchedTag, start, "Mismatched text marker for <%s>: expected '%s' but found '%s'", n.Tag, n.Marker,
		found)
}

// dedent removes the indentation of the closing marker from each line, if the marker stands on a line of its own.
func dedent(content string) string {
	last := strings.LastIndexByte(content, '\n')
	if last < 0 {
		return content
	}
	indent := content[last+1:]
	if indent == "" || strings.Trim(indent, " \t") != "" {
		return content
	}
	content = strings.TrimPrefix(content, "\n")
	var b strings.Builder
	b.Grow(len(content))
	for line := range strings.Lines(content) {
		cut := 0
		for cut < len(indent) && cut < len(line) && line[cut] == indent[cut] {
			cut++
		}
		b.WriteString(line[cut:])
	}
	return b.String()
}
