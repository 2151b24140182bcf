package talk

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/host/chat"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
	"omniagent/internal/term/lineedit"
	"omniagent/internal/term/screen"
	"omniagent/internal/term/terminal"
	"omniagent/internal/work/run"
)

// chatView returns the view of a chat, and the signals to handle, which include those that its keys send.
func chatView(c *contract.Call, with *chat.Chat, signals <-chan os.Signal) (chat.View, <-chan os.Signal, error) {
	lookup := c.Host.Lookup
	if c.Bool("plain") || !c.Host.StdinTerminal || !c.Host.StdoutTerminal {
		return chat.NewPlain(c.Host.Stdin, c.Host.Stdout, c.Host.StdinTerminal), signals, nil
	}
	all := make(chan os.Signal, 8)
	paging, stop := context.WithCancel(context.Background())
	go func() {
		for s := range signals {
			if s != os.Interrupt { // the pager handles it itself
				stop()
			}
			all <- s
		}
	}()
	secrets := redact.Known(redact.Secrets(os.Environ())...)
	history, err := lineedit.OpenHistory(filepath.Join(c.Paths.State, "chat-history"), secrets.String)
	if err != nil {
		c.Log("what was typed earlier is not at hand: %v", err)
	}
	hooks := run.Hooks{Notify: c.Config.List("run.notify"), Programs: parts.HookPrograms(c)}
	device, err := terminal.Open(terminal.Options{
		In: os.Stdin, Out: os.Stdout, State: c.Host.UserState(c.Program.Name),
	})
	if err != nil {
		return nil, nil, fault.New(fault.Unsupported, "this terminal cannot be used").Because(err).
			Hint("omniagent chat --plain works line by line")
	}
	return chat.NewWindow(chat.WindowOptions{
		Terminal: device, Out: c.Host.Stdout, Signals: all, History: history, Complete: with.Complete,
		Plain: !screen.Colour(lookup), Reader: c.Bool("screen-reader"),
		Pager: func(text string) error {
			return screen.Page(paging, device, c.Programs(), os.Environ(), c.Paths.Temp, text)
		},
		Notify: func(what string) {
			if len(hooks.Notify) > 0 {
				go notify(c, with, hooks, what)
				return
			}
			_, _ = io.WriteString(device, screen.Notify("omniagent: "+what, lookup)) // a lost notification does no harm
		},
	}), all, nil
}

// chatLog returns a function that writes lines without the secrets of the environment, into the window if there is one.
func chatLog(c *contract.Call, view chat.View) func(format string, args ...any) {
	window, ok := view.(*chat.Window)
	if !ok {
		return parts.Logger(c)
	}
	known := redact.Known(redact.Secrets(os.Environ())...)
	return func(format string, args ...any) {
		window.Notice("· " + text.Flat(known.String(fmt.Sprintf(format, args...))))
	}
}

// notify runs the user's program for notifications.
func notify(c *contract.Call, with *chat.Chat, hooks run.Hooks, what string) {
	conv := with.Conversation()
	facts := conv.Facts()
	if err := hooks.Tell(context.Background(), conv.ID(), facts.Agent, facts.Dir, what); err != nil {
		c.Log("run.notify: %v", err)
	}
}
