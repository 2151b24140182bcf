package guard

import (
	"slices"
	"strconv"
	"strings"
)

// tableEntry is what a table says of a program, or of what has two words, such as "find expression". The comment at the
// beginning of each table tells what its words mean.
type tableEntry struct {
	name  string              // "": it is not there
	words map[string][]string // of its line, each with the values behind =
	lines []string            // the indented ones below
}

func (e tableEntry) is(word string) bool { return e.words[word] != nil }

// number returns the value of a word, or 0.
func (e tableEntry) number(word string) int {
	n, _ := strconv.Atoi(strings.Join(e.words[word], ""))
	return n
}

// lookUp finds a program in a table.
func lookUp(table, name string) (e tableEntry) {
	for line := range strings.Lines(table) {
		switch below := line[0] == ' ' || line[0] == '\t'; {
		case below && e.name != "":
			e.lines = append(e.lines, strings.TrimSpace(line))
		case e.name != "":
			return e
		case !below:
			names, rest, _ := strings.Cut(line, ":")
			if !slices.Contains(strings.Split(names, ", "), name) {
				continue
			}
			e.name, e.words = name, map[string][]string{}
			for word := range strings.FieldsSeq(rest) {
				key, value, _ := strings.Cut(word, "=")
				e.words[key] = strings.Split(value, ",")
			}
		}
	}
	return e
}
