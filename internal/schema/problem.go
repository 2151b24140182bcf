package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// step leads from a value to one within it.
type step struct {
	name  string
	index int
	named bool
}

// path is the way to where we are.
type path []step

func (p *path) push(s step) { *p = append(*p, s) }
func (p *path) pop()        { *p = (*p)[:len(*p)-1] }

const (
	stepsShown = 12  // of each end of a long way
	textShown  = 100 // characters of a value, a name or a pattern
	mostListed = 10  // values of an enum, names of properties
)

// String is a JSON pointer, cut in the middle where it is long. The whole value has a name, so that a sentence can
// begin with it.
func (p path) String() string {
	if len(p) == 0 {
		return "the whole value"
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if len(p) > 2*stepsShown && i == stepsShown {
			b.WriteString("/…")
			i = len(p) - stepsShown
		}
		b.WriteByte('/')
		if s := p[i]; s.named {
			b.WriteString(escape(shorten(s.name, textShown)))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	return b.String()
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func unescape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// problem is one thing that is wrong, and where.
type problem struct{ place, words string }

// problems are what is wrong with a value, up to a number.
type problems struct {
	list []problem
	most int
}

func (p *problems) full() bool { return len(p.list) >= p.most }

func (p *problems) add(at path, format string, args ...any) {
	if !p.full() {
		p.list = append(p.list, problem{at.String(), fmt.Sprintf(format, args...)})
	}
}

// first is the first of them, for a sentence about the place.
func (p *problems) first(at path) string {
	if len(p.list) == 0 {
		return ""
	}
	one := p.list[0]
	if one.place == at.String() {
		return shorten(one.words, 2*textShown)
	}
	return one.place + " " + shorten(one.words, 2*textShown)
}

func (p *problems) Error() string {
	var said []string
	for _, one := range p.list {
		said = append(said, one.place+" "+one.words)
	}
	return strings.Join(said, "; ")
}

// The words for a value are found only where somebody reads them: a value may be large, and it is often nobody.
type (
	described struct{ value any } // what it is
	brief     struct{ value any } // as JSON, cut where it is long
	briefList []any               // the first of several
	quoted    string
)

func (d described) String() string {
	switch x := d.value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(x)
	case json.Number:
		return "the number " + shorten(string(x), textShown)
	case string:
		return "the string " + quoted(x).String()
	case []any:
		return "an array"
	}
	return "an object"
}

func (q quoted) String() string { return string(appendText(nil, string(q))) }

func (b brief) String() string {
	written, _ := appendBrief(nil, b.value)
	return string(written)
}

func (l briefList) String() string {
	var b strings.Builder
	for i, value := range l {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == mostListed || b.Len() > 4*textShown {
			b.WriteString("…")
			break
		}
		b.WriteString(brief{value}.String())
	}
	return b.String()
}

// appendBrief writes JSON until it is long enough. Whole is false if something is left out.
func appendBrief(to []byte, value any) (written []byte, whole bool) {
	if len(to) > textShown {
		return append(to, "…"...), false
	}
	whole = true
	switch x := value.(type) {
	case string:
		return appendText(to, x), true
	case json.Number:
		return append(to, shorten(string(x), textShown)...), true
	case []any:
		to = append(to, '[')
		for i := 0; i < len(x) && whole; i++ {
			if i > 0 {
				to = append(to, ',')
			}
			to, whole = appendBrief(to, x[i])
		}
		return append(to, ']'), whole
	case map[string]any:
		to = append(to, '{')
		for i, name := range slices.Sorted(maps.Keys(x)) {
			if i > 0 {
				to = append(to, ',')
			}
			if to, whole = appendBrief(append(appendText(to, name), ':'), x[name]); !whole {
				break
			}
		}
		return append(to, '}'), whole
	}
	return append(to, described{value}.String()...), true
}

func appendText(to []byte, s string) []byte {
	written, err := json.Marshal(shorten(s, textShown))
	if err != nil {
		return append(to, `"…"`...)
	}
	for _, pair := range [][2]string{{`\u003c`, "<"}, {`\u003e`, ">"}, {`\u0026`, "&"}} {
		written = []byte(strings.ReplaceAll(string(written), pair[0], pair[1]))
	}
	return append(to, written...)
}

func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for i := range s {
		if most--; most < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// length counts code points.
func length(s string) int { return utf8.RuneCountInString(s) }
