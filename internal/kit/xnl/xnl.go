// Package xnl reads and prints XNL, the notation of seed 2 for data that models write: nodes with metadata, attributes,
// lists, unique children and raw text.
//
//	<note id="n1" { tags = ["a" "b"] } #m>raw text, in which </#> and & need no escape</#m>
//
// It promises: a text is read whole or not at all, and an error names one place; what is printed and read again is
// equal; the time is linear in the length of the text, and nesting is bounded. It refuses bare words as values, commas
// between values, and a blank that is missing between two values. docs/xnl.md describes the notation.
package xnl

// Kind is the kind of a node.
type Kind uint8

// The kinds. A parser never returns a comment.
const (
	Data Kind = iota
	Text
	Comment
)

func (k Kind) String() string {
	switch k {
	case Text:
		return "TextElement"
	case Comment:
		return "Comment"
	}
	return "DataElement"
}

// Node is an element. A part that the text does not have is nil; an empty part is not.
type Node struct {
	Kind       Kind
	Tag        string
	Offset     int // of its first byte in the text that was read
	Metadata   Object
	Attributes Object
	Body       []any
	Extend     []*Node // no two have the same tag
	Text       string  // of a text element, or of a comment
	Marker     string  // between "#" and ">"
}

// Object is a list of keys with values, in the order of the text; no key is there twice. A value is a string, an int64,
// a float64, a bool, nil, an Object, a []any or, in a body, a *Node.
type Object []Member

// Member is a key with its value.
type Member struct {
	Key   string
	Value any
}

// Get returns the value of a key.
func (o Object) Get(key string) (value any, ok bool) {
	for _, m := range o {
		if m.Key == key {
			return m.Value, true
		}
	}
	return nil, false
}

// String returns the value of a key that is a string, or "".
func (o Object) String(key string) string {
	value, _ := o.Get(key)
	text, _ := value.(string)
	return text
}

// few is how many entries are compared one by one before a map is made of them.
const few = 12

// distinct returns the object without repeated keys: the last value counts, in the place of the first.
func (o Object) distinct() Object {
	if len(o) <= few {
		for i := 1; i < len(o); i++ {
			for j := range i {
				if o[j].Key == o[i].Key {
					o[j].Value = o[i].Value
					o = append(o[:i], o[i+1:]...)
					i--
					break
				}
			}
		}
		return o
	}
	seen, kept := make(map[string]int, len(o)), o[:0]
	for _, m := range o {
		if i, twice := seen[m.Key]; twice {
			kept[i].Value = m.Value
			continue
		}
		seen[m.Key] = len(kept)
		kept = append(kept, m)
	}
	return kept
}

// Warning is something that a parser noticed and went on.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Parent  string `json:"parentName"`
	Child   string `json:"childName"`
}

// DuplicateChild is the code of a warning that a node replaced an earlier one of the same tag.
const DuplicateChild = "DUPLICATE_CHILD"

// unique keeps of the children with the same tag the last one, in its place.
func (p *parser) unique(parent string, children []*Node) []*Node {
	if !p.repeats(children) {
		return children
	}
	last := make(map[string]int, len(children))
	for i, child := range children {
		if _, twice := last[child.Tag]; twice {
			p.warnings = append(p.warnings, Warning{
				Code: DuplicateChild, Parent: parent, Child: child.Tag,
				Message: "Duplicate child '" + child.Tag + "' inside <" + parent +
					" ( ... )> (later node overwrote earlier)",
			})
		}
		last[child.Tag] = i
	}
	kept := make([]*Node, 0, len(last))
	for i, child := range children {
		if last[child.Tag] == i {
			kept = append(kept, child)
		}
	}
	return kept
}

func (p *parser) repeats(children []*Node) bool {
	if len(children) > few {
		return true // unique finds out
	}
	for i, child := range children {
		for _, earlier := range children[:i] {
			if earlier.Tag == child.Tag {
				return true
			}
		}
	}
	return false
}
