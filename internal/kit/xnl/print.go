package xnl

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Print returns a value as XNL: a node, a list of nodes, or any value of an Object. An empty indent prints it on one
// line; otherwise each member and item has a line of its own. Raw text is printed as it is, so one line means that of
// the notation. A number that is not finite is printed as null.
//
// A text element whose text has its closing marker in it is printed with another marker. A text that ends in a line of
// blanks cannot be written in XNL: those blanks would be read as indentation.
func Print(v any, indent string) string {
	p := printer{indent: indent}
	if nodes, ok := v.([]*Node); ok {
		between := " "
		if indent != "" {
			between = "\n"
		}
		for i, n := range nodes {
			if i > 0 {
				p.WriteString(between)
			}
			p.value(n, 0)
		}
		return p.String()
	}
	p.value(v, 0)
	return p.String()
}

// Record returns a record of a conversation's history: the role as the tag, the fields of the message as attributes.
func Record(role string, fields Object) string {
	if fields == nil {
		fields = Object{}
	}
	return Print(&Node{Tag: role, Attributes: fields}, "  ")
}

type printer struct {
	strings.Builder
	indent string
}

func (p *printer) margin(level int) {
	for range level {
		p.WriteString(p.indent)
	}
}

func (p *printer) value(v any, level int) {
	switch v := v.(type) {
	case string:
		p.quoted(v)
	case int64:
		p.WriteString(strconv.FormatInt(v, 10))
	case int:
		p.WriteString(strconv.Itoa(v))
	case float64:
		p.WriteString(float(v))
	case bool:
		p.WriteString(strconv.FormatBool(v))
	case Object:
		p.object(v, level)
	case []any:
		p.array(v, level)
	case *Node:
		p.node(v, level)
	default:
		p.WriteString("null")
	}
}

// float writes a number that is read as a float64 again.
func float(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "null"
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func (p *printer) quoted(s string) {
	if strings.ContainsAny(s, "\\\"\n\t\r") {
		s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s)
	}
	p.WriteString(`"` + s + `"`)
}

func (p *printer) key(key string) {
	if isName(key) {
		p.WriteString(key)
		return
	}
	p.quoted(key)
}

// list prints what stands between two brackets: n items, each by print. tight leaves out the blanks inside.
func (p *printer) list(brackets string, n, level int, tight bool, print func(i, level int)) {
	p.WriteByte(brackets[0])
	switch {
	case p.indent != "":
		p.WriteByte('\n')
		for i := range n {
			p.margin(level + 1)
			print(i, level+1)
			p.WriteByte('\n')
		}
		if n == 0 {
			p.WriteByte('\n')
		}
		p.margin(level)
	default:
		if !tight {
			p.WriteByte(' ')
		}
		for i := range n {
			if i > 0 {
				p.WriteByte(' ')
			}
			print(i, level)
		}
		if !tight {
			p.WriteByte(' ')
		}
	}
	p.WriteByte(brackets[1])
}

func (p *printer) object(o Object, level int) {
	p.list("{}", len(o), level, false, func(i, level int) {
		p.key(o[i].Key)
		p.WriteString(" = ")
		p.value(o[i].Value, level)
	})
}

func (p *printer) array(items []any, level int) {
	p.list("[]", len(items), level, true, func(i, level int) { p.value(items[i], level) })
}

func (p *printer) node(n *Node, level int) {
	p.margin(level) // in addition to that of its list: the layout of seed 2's own files
	if n.Kind == Comment {
		p.WriteString("<!-- " + n.Text + " -->")
		return
	}
	p.WriteString("<" + n.Tag)
	for _, m := range n.Metadata {
		p.WriteByte(' ')
		p.key(m.Key)
		p.WriteByte('=')
		p.value(m.Value, level)
	}
	if n.Kind == Text {
		p.textPart(n)
		return
	}
	if n.Attributes != nil {
		p.WriteByte(' ')
		p.object(n.Attributes, level)
	}
	if n.Body != nil {
		p.WriteByte(' ')
		p.list("[]", len(n.Body), level, false, func(i, level int) { p.value(n.Body[i], level) })
	}
	if n.Extend != nil {
		p.WriteByte(' ')
		p.list("()", len(n.Extend), level, false, func(i, level int) { p.node(n.Extend[i], level) })
	}
	p.WriteByte('>')
}

func (p *printer) textPart(n *Node) {
	if n.Attributes != nil {
		inline := printer{}
		inline.object(n.Attributes, 0)
		p.WriteString(" " + inline.String())
	}
	marker := Marker(n.Marker, n.Text)
	p.WriteString(" #" + marker + ">" + n.Text + "</#" + marker + ">")
}

// Marker returns a marker with which a text can be closed: the wanted one, if it is a name or empty and the text does
// not have it, and otherwise one like it.
func Marker(wanted, text string) string {
	if wanted != "" && !isName(wanted) {
		wanted = "t"
	}
	for marker, n := wanted, 1; ; n++ {
		if !strings.Contains(text, "</#"+marker+">") {
			return marker
		}
		marker = cmp.Or(wanted, "t")
		marker += strconv.Itoa(n)
	}
}
