package chat

import (
	"context"
	"fmt"
	"strings"

	"omniagent/internal/eidolon"
	"omniagent/internal/event"
	"omniagent/internal/text"
)

// another lists the agents, or continues with one of them.
func (c *Chat) another(ctx context.Context, name string) {
	if c.World.Agents == nil || c.World.Open == nil {
		c.notice(notHere)
		return
	}
	var lines, known []string
	with := c.conversation()
	now := with.Facts().Agent
	for _, a := range c.World.Agents() {
		state := "not installed"
		switch {
		case a.Name == now:
			state = "this one"
		case a.Installed:
			state = "installed"
		}
		lines = append(lines, fmt.Sprintf("  %-10s %-20s %s", a.Name, a.Title, state))
		known = append(known, a.Name)
		if a.Name != name {
			continue
		}
		if name == now {
			c.notice("You talk with " + name + " already.")
			return
		}
		project, err := handover(ctx, with)
		if err != nil {
			c.notice("nothing was changed: " + err.Error())
			return
		}
		c.goTo(ctx, Next{Agent: name}, project)
		return
	}
	if name == "" {
		c.notice(strings.Join(append(lines, "/agent NAME continues with another."), "\n"))
		return
	}
	line := "There is no agent " + text.Name(name)
	if near := text.Nearest(name, known); near != "" {
		line += "; " + near + " is the nearest"
	}
	c.notice(line + ".")
}

// goTo leaves the conversation for another one, which is told what is handed over.
func (c *Chat) goTo(ctx context.Context, n Next, handed string) {
	if c.busy.Load() {
		c.notice("A turn runs: Ctrl-C ends it.")
		return
	}
	next, err := c.World.Open(ctx, n)
	if err != nil {
		c.notice("nothing was changed: " + err.Error())
		return
	}
	old := c.conversation()
	from := next.Last() + 1
	if n.Session != "" {
		from = 1
	}
	c.join(ctx, next, from)
	select {
	case c.switched <- struct{}{}:
	default:
	}
	closed, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if _, err := old.Close(closed); err != nil {
		c.notice("the conversation " + old.ID() + " did not end well: " + err.Error())
	}
	c.mu.Lock()
	c.before, c.agent = nil, ""
	if handed != "" {
		c.before = []event.Block{blockOf("@handover", handed)}
	}
	c.mu.Unlock()
	f := next.Facts()
	c.notice("· " + strings.TrimSpace(f.Agent+" "+modelOf(f)) + ", conversation " + next.ID())
	if handed != "" {
		c.notice("· it gets this with your next message:\n" + handed)
	}
}

// sessions lists the conversations about this directory.
func (c *Chat) sessions(ctx context.Context, _ string) {
	all, ok := c.known(ctx)
	if !ok {
		return
	}
	lines := []string{"Conversations about this directory; /resume ID continues one:"}
	if len(all) == 0 {
		lines = []string{"There is no other conversation about this directory."}
	}
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("  %-14s %-9s %-8s %s", s.ID, s.When, text.Name(s.Agent), text.Flat(s.Title)))
	}
	c.notice(strings.Join(lines, "\n"))
}

// known are the other conversations about this directory.
func (c *Chat) known(ctx context.Context) (others []Session, ok bool) {
	if c.World.Sessions == nil {
		c.notice(notHere)
		return nil, false
	}
	all, err := c.World.Sessions(ctx)
	if err != nil {
		c.notice("the conversations cannot be listed: " + err.Error())
		return nil, false
	}
	own := c.conversation().ID()
	for _, s := range all {
		if s.ID != own {
			others = append(others, s)
		}
	}
	return others, true
}

// resume continues another conversation: the one named, by its id or the beginning of it, or one from a list.
func (c *Chat) resume(ctx context.Context, id string) {
	all, ok := c.known(ctx)
	if !ok {
		return
	}
	var found []string
	for _, s := range all {
		if s.ID == id {
			found = []string{id}
			break
		}
		if strings.HasPrefix(s.ID, id) {
			found = append(found, s.ID)
		}
	}
	switch {
	case len(all) == 0:
		c.notice("There is no other conversation about this directory.")
	case id == "":
		c.choose(ctx, all)
	case len(found) == 1:
		c.goTo(ctx, Next{Session: found[0]}, "")
	case len(found) > 1:
		c.notice(fmt.Sprintf("%s is the beginning of %s", text.Name(id), text.Either(found)))
	case c.World.Open != nil: // it may be about another directory
		c.goTo(ctx, Next{Session: id}, "")
	}
}

// choose asks which conversation to go to.
func (c *Chat) choose(ctx context.Context, all []Session) {
	const most = 20
	q := event.FormQuestion{Question: "Which conversation?"}
	for _, s := range all[:min(len(all), most)] {
		q.Options = append(q.Options, event.FormOption{Label: s.ID, Description: fmt.Sprintf("%s, %s, %s", s.When,
			s.Agent, text.OneLine(s.Title, 60))})
	}
	c.ask(&Question{
		Title: q.Question, Detail: options(q), Hint: "say its number or its id; Return goes on here: ",
		answer: func(_ context.Context, words string) error {
			if words != "" {
				c.resume(ctx, chosen(q, words))
			}
			return nil
		},
	})
}

// clear begins a new conversation with the same agent.
func (c *Chat) clear(ctx context.Context, _ string) {
	if c.World.Open == nil {
		c.notice(notHere)
		return
	}
	c.goTo(ctx, Next{}, "")
}

// reminder returns what the agent is reminded of, if it is time. The caller holds the lock.
func (c *Chat) reminder() []event.Block {
	if c.World.Reminder == nil {
		return nil
	}
	if words := c.World.Reminder(c.conversation(), c.messages); words != "" {
		return []event.Block{blockOf(eidolon.Reminder, words)}
	}
	return nil
}
