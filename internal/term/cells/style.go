package cells

import "strings"

// Style is the look of text: the parameters of an SGR sequence, separated by semicolons. The empty Style is the
// terminal's default. Only the sixteen colours of the terminal are used, so that text is readable on every background.
type Style string

// The styles.
const (
	None      Style = ""
	Bold      Style = "1"
	Faint     Style = "2"
	Italic    Style = "3"
	Underline Style = "4"
	Reverse   Style = "7"
	Struck    Style = "9"
	Red       Style = "31"
	Green     Style = "32"
	Yellow    Style = "33"
	Blue      Style = "34"
	Magenta   Style = "35"
	Cyan      Style = "36"
)

// With returns both styles combined.
func (s Style) With(more Style) Style {
	switch {
	case s == None:
		return more
	case more == None:
		return s
	}
	return s + ";" + more
}

// Of returns text in the style. The text has no styles of its own.
func (s Style) Of(text string) string {
	if s == None || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + reset
}

// Cell is a cluster on the screen, with its style.
type Cell struct {
	Text  string
	Width int
	Style Style
}

// Parse returns the cells of a row. Tabs become spaces, and a piece without a width that does not change the style is
// left out.
func Parse(s string) []Cell {
	row := make([]Cell, 0, len(s))
	now, used := None, 0
	for s != "" {
		piece, rest, width := First(s)
		s = rest
		switch {
		case IsStyle(piece):
			if now = now.With(Style(piece[2 : len(piece)-1])); piece == reset || piece == "\x1b[0m" {
				now = None
			}
			continue
		case piece == "\t":
			for range tab - used%tab {
				row = append(row, Cell{" ", 1, now})
			}
			used += tab - used%tab
			continue
		case width == 0:
			continue
		}
		row = append(row, Cell{piece, width, now})
		used += width
	}
	return row
}

// Sure reports whether all terminals agree on the width of a cluster. After any other cluster the column of the cursor
// is unknown.
func Sure(cluster string) bool {
	if len(cluster) == 1 {
		return true
	}
	runes := []rune(cluster)
	if len(runes) != 1 {
		return false
	}
	switch r := runes[0]; {
	case r >= 0xa1 && r < 0x300 && r != 0xad, r >= 0x370 && r < 0x483, r >= 0x48a && r < 0x530:
		return true
	case r >= 0x2500 && r < 0x2580, r >= 0x2800 && r < 0x2900: // frames and Braille
		return true
	case r >= 0x3041 && r < 0x3097, r >= 0x30a1 && r < 0x30fb, r >= 0x4e00 && r < 0x9fd0, r >= 0xac00 && r < 0xd7a4:
		return true
	}
	return strings.ContainsRune("–—‘’“”•…", rune(runes[0]))
}
