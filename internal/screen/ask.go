package screen

import (
	"context"
	"slices"
	"strings"

	"omniagent/internal/cells"
	"omniagent/internal/fault"
	"omniagent/internal/keys"
	"omniagent/internal/lineedit"
	"omniagent/internal/terminal"
	"omniagent/internal/text"
)

// Item is a row of a picker.
type Item struct {
	Text        string // what is searched, too
	Description string
}

// Picker is a list of which one item is chosen: typing narrows it, the arrows move, Enter chooses, Escape leaves. It is
// a state machine, for a host that has the terminal; Pick runs one.
type Picker struct {
	Title string
	Items []Item
	Rows  int // shown at once; 0: 10

	editor *lineedit.Editor
	found  []int // indexes of the items that match
	chosen int   // index in found
	words  string
}

// Key handles a key. done says that the picker is left: with index, or with -1 where nothing was chosen.
func (p *Picker) Key(k keys.Key) (index int, done bool) {
	p.prepare()
	switch {
	case k.Is(keys.Up), k == keys.C("p"), k == keys.Key{Code: keys.Tab, Mod: keys.Shift}:
		p.chosen = max(p.chosen-1, 0)
	case k.Is(keys.Down), k == keys.C("n"), k.Is(keys.Tab):
		p.chosen = min(p.chosen+1, max(len(p.found)-1, 0))
	case k.Is(keys.PageUp):
		p.chosen = max(p.chosen-p.rows(), 0)
	case k.Is(keys.PageDown):
		p.chosen = min(p.chosen+p.rows(), max(len(p.found)-1, 0))
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

func (p *Picker) rows() int {
	if p.Rows <= 0 {
		return 10
	}
	return p.Rows
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
	rows := p.rows()
	from := min(max(p.chosen-rows/2, 0), max(len(p.found)-rows, 0))
	for i := from; i < min(from+rows, len(p.found)); i++ {
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

// Pick lets a person choose an item, on a terminal that nobody else uses. ok is false if they left without one.
func Pick(ctx context.Context, t *terminal.Terminal, o Options, p *Picker) (index int, ok bool, err error) {
	index = -1
	err = Ask(ctx, t, o, p.View, func(k keys.Key) (done bool) {
		index, done = p.Key(k)
		return done
	})
	return index, index >= 0, err
}

// Confirm asks a question that Enter answers with no. It returns the answer when y or n was typed.
func Confirm(ctx context.Context, t *terminal.Terminal, o Options, question string) (yes bool, err error) {
	e := lineedit.New(lineedit.Options{Prompt: question + " [y/N] "})
	err = Ask(ctx, t, o, e.View, func(k keys.Key) bool {
		switch {
		case k.Code == keys.Text && k.Mod == 0 && strings.EqualFold(k.Text, "y"):
			yes = true
			return true
		case k.Code == keys.Text && k.Mod == 0 && strings.EqualFold(k.Text, "n"), k.Is(keys.Enter), k.Is(keys.Escape),
			k == keys.C("c"), k == keys.C("d"):
			return true
		}
		return false
	})
	if err == nil {
		word := "no"
		if yes {
			word = "yes"
		}
		err = printLine(o, question+" "+word)
	}
	return yes, err
}

func printLine(o Options, line string) error {
	_, err := o.Out.Write([]byte(line + "\r\n"))
	return err
}

// Ask shows a view and hands keys on until one of them ends it. The view is gone then.
func Ask(ctx context.Context, t *terminal.Terminal, o Options, view func(width int) lineedit.View,
	key func(keys.Key) (done bool),
) error {
	s := New(o)
	defer func() { _ = s.Close() }()
	for {
		s.Set(Live{Input: view(s.Width())})
		select {
		case <-ctx.Done():
			return fault.New(fault.Interrupted, "the question was not answered").Because(ctx.Err())
		case k, more := <-t.Input():
			switch {
			case !more:
				return fault.New(fault.InputRequired, "the terminal has gone before the question was answered")
			case s.Handle(k):
			case k == keys.C("z"):
				_ = s.Clear()
				if err := t.Suspend(); err != nil {
					return err
				}
			case key(k):
				return s.Close()
			}
		}
	}
}

// Handle handles what concerns the screen: the size and the cursor's position. It reports whether it was that.
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
