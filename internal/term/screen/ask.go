package screen

import (
	"slices"
	"strings"

	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/keys"
	"omniagent/internal/term/lineedit"
)

// Item is a row of a picker.
type Item struct {
	Text        string // what is searched, too
	Description string
}

// Picker is a list from which a person chooses one item: typing narrows it, the arrows move, Enter chooses, Escape
// leaves. It reads no terminal: the host passes it the keys and shows its View.
type Picker struct {
	Title string
	Items []Item

	editor *lineedit.Editor
	found  []int // indexes of the items that match
	chosen int   // index in found
	words  string
}

// mostItems of a picker are shown at once.
const mostItems = 10

// Key handles a key. If done is true, the person has left the picker; index is that of the chosen item, or -1.
func (p *Picker) Key(k keys.Key) (index int, done bool) {
	p.prepare()
	switch {
	case k.Is(keys.Up), k == keys.C("p"), k == keys.Key{Code: keys.Tab, Mod: keys.Shift}:
		p.chosen = max(p.chosen-1, 0)
	case k.Is(keys.Down), k == keys.C("n"), k.Is(keys.Tab):
		p.chosen = min(p.chosen+1, max(len(p.found)-1, 0))
	case k.Is(keys.PageUp):
		p.chosen = max(p.chosen-mostItems, 0)
	case k.Is(keys.PageDown):
		p.chosen = min(p.chosen+mostItems, max(len(p.found)-1, 0))
	case k.Is(keys.Enter) && len(p.found) > 0:
		return p.found[p.chosen], true
	case k.Is(keys.Escape), k == keys.C("c"), k == keys.C("g"), k == keys.C("d"):
		return -1, true
	case k.Is(keys.Enter):
	default:
		p.editor.Key(k)
		p.filter()
	}
	return -1, false
}

func (p *Picker) prepare() {
	if p.editor == nil {
		p.editor = lineedit.New(lineedit.Options{Prompt: p.Title + " ", Hint: "type to search"})
		p.words = "\x00"
		p.filter()
	}
}

// filter finds the items that have every typed word.
func (p *Picker) filter() {
	words := strings.ToLower(p.editor.Text())
	if words == p.words {
		return
	}
	p.words, p.chosen, p.found = words, 0, nil
	for i, item := range p.Items {
		all := strings.ToLower(item.Text + " " + item.Description)
		if !slices.ContainsFunc(strings.Fields(words), func(w string) bool { return !strings.Contains(all, w) }) {
			p.found = append(p.found, i)
		}
	}
}

// View returns how the picker looks.
func (p *Picker) View(width int) lineedit.View {
	p.prepare()
	view := p.editor.View(width)
	from := min(max(p.chosen-mostItems/2, 0), max(len(p.found)-mostItems, 0))
	for i := from; i < min(from+mostItems, len(p.found)); i++ {
		item := p.Items[p.found[i]]
		row := "  " + text.Name(item.Text)
		if i == p.chosen {
			row = cells.Bold.Of("▸ " + text.Name(item.Text))
		}
		if item.Description != "" {
			row += "  " + cells.Faint.Of(text.Flat(item.Description))
		}
		view.Below = append(view.Below, row)
	}
	if len(p.found) == 0 {
		view.Below = append(view.Below, cells.Faint.Of("  nothing matches"))
	}
	return view
}

// Handle handles a key that concerns the screen: its size or the position of the cursor. It reports whether the key was
// one of these.
func (s *Screen) Handle(k keys.Key) bool {
	switch k.Code {
	case keys.Resize:
		s.Resize()
	case keys.Position:
		s.Position(k.Row, k.Column)
	case keys.Continue:
		s.Restart()
	default:
		return false
	}
	return true
}
