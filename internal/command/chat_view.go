package command

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/chat"
	"omniagent/internal/contract"
	"omniagent/internal/fault"
	"omniagent/internal/lineedit"
	"omniagent/internal/process"
	"omniagent/internal/redact"
	"omniagent/internal/screen"
	"omniagent/internal/terminal"
)

// chatView returns what a person sees of a chat, and the signals with those that its keys send.
func chatView(c *contract.Call, with *chat.Chat, signals <-chan os.Signal) (chat.View, <-chan os.Signal, error) {
	lookup := c.Host.Lookup
	if c.Bool("plain") || !c.Host.StdinTerminal || !c.Host.StdoutTerminal {
		return chat.NewPlain(c.Host.Stdin, c.Host.Stdout, c.Host.StdinTerminal), signals, nil
	}
	all := make(chan os.Signal, 8)
	go func() {
		for s := range signals {
			all <- s
		}
	}()
	secrets := redact.Known(redact.Secrets(os.Environ())...)
	history, err := lineedit.OpenHistory(filepath.Join(c.Paths.State, "chat-history"), secrets.String)
	if err != nil {
		c.Log("what was typed earlier is not at hand: %v", err)
	}
	device, err := terminal.Open(terminal.Options{In: os.Stdin, Out: os.Stdout, State: c.Paths.State})
	if err != nil {
		return nil, nil, fault.New(fault.Unsupported, "this terminal cannot be used").Because(err).
			Hint("omniagent chat --plain works line by line")
	}
	return chat.NewWindow(chat.WindowOptions{
		Terminal: device, Out: c.Host.Stdout, Signals: all, History: history, Complete: with.Complete,
		Plain: !screen.Colour(lookup), Reader: c.Bool("screen-reader"), Reflows: screen.Reflows(lookup),
		Pager: pager(lookup),
		Notify: func(what string) {
			_, _ = io.WriteString(device, screen.Notify("omniagent: "+what, lookup)) // nothing depends on it
		},
	}), all, nil
}

// pager returns what shows a long text in the person's pager, or nil if there is none. A text that fits is printed.
func pager(lookup func(string) (string, bool)) func(string) error {
	command, _ := lookup("PAGER")
	argv := strings.Fields(cmp.Or(strings.TrimSpace(command), "less -R"))
	program := process.Find(argv[0], lookup)
	if program == "" {
		return nil
	}
	return func(text string) error {
		child, err := process.Start(process.Plan{
			Argv: argv, Path: program, Stdin: strings.NewReader(text), Stdout: os.Stdout, Stderr: os.Stderr,
			Terminal: os.Stdin,
		})
		if err != nil {
			return err
		}
		child.Wait()
		return nil
	}
}
