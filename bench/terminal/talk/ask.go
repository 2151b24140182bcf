package main

import (
	"context"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/term/keys"
	"omniagent/internal/term/lineedit"
	"omniagent/internal/term/screen"
	"omniagent/internal/term/terminal"
)

// pick lets a person choose an item, on a terminal that nobody else uses. ok is false if they left without one.
func pick(ctx context.Context, t *terminal.Terminal, o screen.Options, p *screen.Picker) (
	index int, ok bool, err error,
) {
	index = -1
	err = ask(ctx, t, o, p.View, func(k keys.Key) (done bool) {
		index, done = p.Key(k)
		return done
	})
	return index, index >= 0, err
}

// confirm asks a question that Enter answers with no. It returns the answer when y or n was typed.
func confirm(ctx context.Context, t *terminal.Terminal, o screen.Options, question string) (yes bool, err error) {
	e := lineedit.New(lineedit.Options{Prompt: question + " [y/N] "})
	err = ask(ctx, t, o, e.View, func(k keys.Key) bool {
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

func printLine(o screen.Options, line string) error {
	_, err := o.Out.Write([]byte(line + "\r\n"))
	return err
}

// ask shows a view and passes keys on until one of them ends it. It removes the view when it returns.
func ask(ctx context.Context, t *terminal.Terminal, o screen.Options, view func(width int) lineedit.View,
	key func(keys.Key) (done bool),
) error {
	s := screen.New(o)
	defer func() { _ = s.Close() }()
	for {
		s.Set(screen.Live{Input: view(s.Width())})
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
