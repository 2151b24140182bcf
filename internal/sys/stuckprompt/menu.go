package stuckprompt

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"omniagent/internal/kit/text"
)

// menu is a list of choices that ends a screen.
type menu struct {
	question string
	choices  []string
	chosen   string // where the pointer is, or what the prompt below the list names
}

// item is a line of a menu.
type item struct {
	at      int // index of the line
	pointed bool
	number  string
	column  int // where its label begins
	label   string
}

// itemOf reads a line as one of a menu. A line without pointer and number is one if the label begins at that column.
func itemOf(lines []string, at, column int) (item, bool) {
	m := shapes().item.FindStringSubmatchIndex(lines[at])
	if m == nil {
		return item{}, false
	}
	line := lines[at]
	i := item{at: at, pointed: m[4] >= 0, column: utf8.RuneCountInString(line[:m[8]])}
	i.label = text.OneLine(line[m[8]:], maxQuestion)
	if m[6] >= 0 {
		i.number = line[m[6]:m[7]]
	}
	return i, i.pointed || i.number != "" || i.column == column
}

// readMenu finds the menu that ends the lines.
func readMenu(lines []string) menu {
	if m := pointed(lines); len(m.choices) > 0 {
		return m
	}
	return numbered(lines)
}

// pointed finds a menu with a pointer. A few lines may stand below it if one says how to use it.
func pointed(lines []string) menu {
	for at := len(lines) - 1; at >= max(0, len(lines)-13); at-- {
		i, ok := itemOf(lines, at, -1)
		if !ok || !i.pointed {
			continue
		}
		items := siblings(lines, i)
		below := lines[items[len(items)-1].at+1:]
		question := questionAbove(lines, items[0].at)
		explained := slices.ContainsFunc(below, shapes().hint.MatchString)
		inquirer := strings.HasPrefix(question, "? ") || shapes().hint.MatchString(question)
		if len(items) > 1 && len(below) <= 8 && (explained || len(below) == 0 && (i.number != "" || inquirer)) {
			return newMenu(question, items, i.label)
		}
	}
	return menu{}
}

// numbered finds a numbered list above a last line at which one of its numbers is typed.
func numbered(lines []string) menu {
	last := len(lines) - 1
	if !shapes().mark.MatchString(lines[last]) {
		return menu{}
	}
	for at := last - 1; at >= max(0, last-2); at-- {
		i, ok := itemOf(lines, at, -1)
		if !ok || i.number == "" {
			continue
		}
		items := siblings(lines, i)
		if len(items) < 2 {
			return menu{}
		}
		question := questionAbove(lines, items[0].at)
		if !strings.HasSuffix(question, "?") && strings.ContainsFunc(lines[last], unicode.IsLetter) {
			question = lines[last]
		}
		_, preset := alternatives(lines[last])
		for _, i := range items {
			if i.number == preset {
				preset = i.label
			}
		}
		return newMenu(question, items, preset)
	}
	return menu{}
}

func newMenu(question string, items []item, chosen string) menu {
	m := menu{question: question}
	for _, i := range items[:min(len(items), maxChoices)] {
		m.choices = append(m.choices, i.label)
		if i.label == chosen {
			m.chosen = chosen
		}
	}
	return m
}

// siblings returns the items of the list in which first stands, in their order. Lines that are indented further than a
// label explain it.
func siblings(lines []string, first item) []item {
	items := []item{first}
	for _, step := range []int{-1, 1} {
		for at := first.at + step; at >= 0 && at < len(lines); at += step {
			i, ok := itemOf(lines, at, first.column)
			if ok && i.column == first.column && (i.number != "") == (first.number != "") {
				items = append(items, i)
				continue
			}
			if len(lines[at])-len(strings.TrimLeft(lines[at], " ")) < first.column {
				break
			}
		}
	}
	slices.SortFunc(items, func(a, b item) int { return a.at - b.at })
	return items
}

// questionAbove returns the question that a list answers: the nearest sentence above it that ends in a question mark,
// or the nearest line.
func questionAbove(lines []string, at int) string {
	for i := at - 1; i >= max(0, at-8); i-- {
		if found := shapes().ask.FindString(lines[i]); found != "" {
			return strings.TrimSpace(found)
		}
	}
	if at == 0 {
		return ""
	}
	return strings.TrimSpace(lines[at-1])
}
