package chat

import (
	"context"
	"path/filepath"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
)

// addDir gives the agent access to a further directory, between two turns.
func (c *Chat) addDir(ctx context.Context, rest string) {
	if rest == "" {
		c.notice("/add-dir DIR lets the agent work in a further directory, until this conversation is left.")
		return
	}
	dir := filepath.Clean(pathname.From(c.World.Dir, pathname.Typed(c.World.Home, rest)))
	c.idle("/add-dir "+text.Name(rest), "/add-dir "+rest, func() { c.opens(ctx, dir) })
}

// opens gives the agent access to a directory, and reports whether it has it.
func (c *Chat) opens(ctx context.Context, dir string) bool {
	if err := c.Conversation().Set(ctx, agent.Change{Dir: dir}); err != nil {
		c.notice("nothing was changed: " + advised(err))
		return false
	}
	c.notice("· " + text.Name(dir) + " is open to " + text.Name(c.Conversation().Facts().Agent) + " now")
	return true
}

// widen refuses a call, opens the directory that it needs after the turn, and tells the agent to continue.
func (c *Chat) widen(ctx context.Context, dir string, send func(context.Context, event.Reply) error) error {
	words := text.Name(dir) + " is being opened to you. The next message says when that is done."
	if err := send(ctx, event.Reply{Option: event.Deny, Text: words, Stop: true}); err != nil {
		return err
	}
	c.idle("opening "+text.Name(dir), "/add-dir "+dir, func() {
		if c.opens(ctx, dir) {
			c.send(ctx, text.Name(dir)+" is open to you now. Go on.", false)
		}
	})
	return nil
}
