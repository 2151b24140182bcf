package guard

import (
	_ "embed" // the grammars
	"slices"
	"strconv"
	"strings"
)

//go:embed grammars.txt
var grammars string

// operandKind is the meaning of the arguments that are not flags.
type operandKind uint8

const (
	files   operandKind = iota // are read
	data                       // are only text
	numbers                    // are numbers
	pattern                    // the first is text, the rest are read
)

// grammar is a closed grammar of arguments; grammars.txt says what its parts mean.
type grammar struct {
	name        string // "": it is not there
	lines       []string
	operands    operandKind
	least, most int // most 0: any number
	digits      bool
	ordered     bool
	apart       bool
	exact       bool
	nothing     bool
	recurses    []string
	script      []string
}

// grammarOf finds the grammar of a program, or of what has two words, such as "git log".
func grammarOf(name string) (g grammar) {
	for line := range strings.Lines(grammars) {
		switch below, head := strings.HasPrefix(line, " "), g.name == ""; {
		case below && !head:
			g.lines = append(g.lines, strings.TrimSpace(line))
		case !below && !head:
			return g
		case !below:
			names, rest, _ := strings.Cut(line, ":")
			if slices.Contains(strings.Split(names, ", "), name) {
				g = grammar{name: name}
				for word := range strings.FieldsSeq(rest) {
					g.read(word)
				}
			}
		}
	}
	return g
}

// read takes a word of the first line of a grammar. It returns false for an unknown word.
func (g *grammar) read(word string) bool {
	key, value, _ := strings.Cut(word, "=")
	list := strings.Split(value, ",")
	switch key {
	case "text":
		g.operands = data
	case "numbers":
		g.operands = numbers
	case "pattern":
		g.operands = pattern
	case "least":
		g.least, _ = strconv.Atoi(value)
	case "most":
		g.most, _ = strconv.Atoi(value)
	case "digits":
		g.digits = true
	case "ordered":
		g.ordered = true
	case "apart":
		g.apart = true
	case "exactly":
		g.exact = true
	case "nothing":
		g.nothing = true
	case "recurses":
		g.recurses = list
	case "script":
		g.script = list
	default:
		return false
	}
	return true
}

// kinds returns the flags, each with the letter for its value, or 0 if it takes none.
func (g grammar) kinds() map[string]byte {
	known := map[string]byte{}
	for _, line := range g.lines {
		for f := range strings.FieldsSeq(line) {
			name, kind := f, byte(0)
			if i := strings.IndexAny(f, ":?"); i > 0 {
				name, kind = f[:i], f[len(f)-1]
			}
			known[name] = kind
		}
	}
	return known
}
