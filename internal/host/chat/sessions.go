package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/term/screen"
)

// another lists the agents, or continues with one of them.
func (c *Chat) another(ctx context.Context, name string) {
	if c.World.Agents == nil || c.World.Open == nil {
		c.notice(notHere)
		return
	}
	var lines, known []string
	now := c.Conversation().Facts().Agent
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
	}
	if slices.Contains(known, name) {
		c.idle("/agent "+name, "/agent "+name, func() { c.handOver(ctx, name) })
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

// handOver continues with another agent, which gets a summary of the conversation.
func (c *Chat) handOver(ctx context.Context, name string) {
	with := c.Conversation()
	if with.Facts().Agent == name {
		c.notice("You talk with " + name + " already.")
		return
	}
	summary, err := handover(ctx, with)
	if err != nil {
		c.notice("nothing was changed: " + advised(err))
		return
	}
	c.goTo(ctx, Next{Agent: name, Mode: with.Facts().Mode}, summary)
}

// goTo leaves the conversation for another one. handed is a summary for that one, or "".
func (c *Chat) goTo(ctx context.Context, n Next, handed string) {
	next, err := c.World.Open(ctx, n)
	if err != nil {
		c.notice("nothing was changed: " + advised(err))
		return
	}
	old := c.Conversation()
	from := next.Last() + 1
	if n.Session != "" {
		from = 1
	}
	c.join(ctx, next, from)
	select {
	case c.switched <- struct{}{}:
	default:
	}
	if err := c.end(ctx, old); err != nil {
		c.notice("the conversation " + old.ID() + " did not end well: " + err.Error())
	}
	c.mu.Lock()
	c.agent, c.chosen = applied{}, n.Model
	c.before = slices.DeleteFunc(c.before, func(b event.Block) bool { // keep the results of commands
		return b.Name == handedOver && (handed != "" || n.Agent == "" || n.Like != "")
	})
	if handed != "" {
		c.before = slices.Insert(c.before, 0, blockOf(handedOver, handed))
	}
	c.mu.Unlock()
	f := next.Facts()
	line := "· " + strings.TrimSpace(f.Agent+" "+modelOf(f)) + ", conversation " + next.ID()
	if f.Mode != "" && f.Mode != setting.Default {
		line += ", permission mode " + string(f.Mode)
	}
	c.notice(line)
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
	if c.World.Rehearses {
		lines = []string{"Conversations about this directory; a rehearsal continues none of them:"}
	}
	if len(all) == 0 {
		lines = []string{"There is no other conversation about this directory."}
	}
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("  %-14s %-9s %-8s %s", s.ID, s.When, text.Name(s.Agent), text.Flat(s.Title)))
	}
	c.notice(strings.Join(lines, "\n"))
}

// known returns the other conversations about this directory. ok is false if they cannot be listed.
func (c *Chat) known(ctx context.Context) ([]Session, bool) {
	if c.World.Sessions == nil {
		c.notice(notHere)
		return nil, false
	}
	all, err := c.World.Sessions(ctx)
	if err != nil {
		c.notice("the conversations cannot be listed: " + err.Error())
		return nil, false
	}
	own := c.Conversation().ID()
	return slices.DeleteFunc(all, func(s Session) bool { return s.ID == own }), true
}

// resume continues the conversation whose id is or begins with id. Without an id, the person chooses from a list.
func (c *Chat) resume(ctx context.Context, id string) {
	if c.World.Rehearses {
		c.notice("nothing was changed: a rehearsal cannot continue a saved conversation")
		return
	}
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
		c.goLater(ctx, found[0])
	case len(found) > 1:
		c.notice(fmt.Sprintf("%s is the beginning of %s", text.Name(id), text.Either(found)))
	case c.World.Open != nil: // one about another directory
		c.goLater(ctx, id)
	}
}

func (c *Chat) goLater(ctx context.Context, id string) {
	c.idle("/resume "+text.Name(id), "/resume "+id, func() { c.goTo(ctx, Next{Session: id}, "") })
}

// choose asks which conversation to continue.
func (c *Chat) choose(ctx context.Context, all []Session) {
	q := event.FormQuestion{Question: "Which conversation?"}
	var items []screen.Item
	for _, s := range all {
		about := fmt.Sprintf("%s, %s, %s", s.When, s.Agent, text.OneLine(s.Title, 60))
		q.Options = append(q.Options, event.FormOption{Label: s.ID, Description: about})
		items = append(items, screen.Item{Text: s.ID, Description: about})
	}
	const most = 20 // fit on a screen that does not scroll
	shown := q
	shown.Options = q.Options[:min(len(all), most)]
	c.ask(&Question{
		Title: q.Question, Detail: options(shown), Hint: "say its number or its id; Return goes on here: ",
		Items: items,
		answer: func(_ context.Context, words string) error {
			if words != "" {
				c.resume(ctx, shown.Chosen(words))
			}
			return nil
		},
	})
}

// clear begins a new conversation with the same agent, model and mode.
func (c *Chat) clear(ctx context.Context, _ string) {
	if c.World.Open == nil {
		c.notice(notHere)
		return
	}
	c.idle("/clear", "/clear", func() {
		old := c.Conversation()
		c.mu.Lock()
		model := c.chosen
		c.mu.Unlock()
		now := old.Facts()
		c.goTo(ctx, Next{Agent: now.Agent, Mode: now.Mode, Model: model, Like: old.ID()}, "")
	})
}

// reminder returns the block that reminds the agent, if one is due. The caller holds the lock.
func (c *Chat) reminder() []event.Block {
	if c.World.Reminder == nil {
		return nil
	}
	if words := c.World.Reminder(c.Conversation(), c.messages); words != "" {
		return []event.Block{blockOf(event.Reminder, words)}
	}
	return nil
}
