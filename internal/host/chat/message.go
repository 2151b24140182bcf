package chat

import (
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"

	"omniagent/internal/core/event"
	"omniagent/internal/native/eidolon"
)

// enter handles a line that answers no question. It reports whether the person wants to leave.
func (c *Chat) enter(ctx context.Context, in Input) (leaves bool) {
	words := strings.TrimSpace(in.Text)
	switch command, shell := strings.CutPrefix(words, eidolon.ShellWord); {
	case words == "":
		c.ready()
	case c.World.Bare && (words == "exit" || words == "quit" || words == "q"):
		return true
	case shell:
		c.shell(ctx, strings.TrimSpace(command))
	case isCommand(words):
		return c.do(ctx, words)
	default:
		c.say(ctx, in.Text, in.Steer)
	}
	return false
}

// commandIn returns the command of a line and the text after it. is is false for a message, even one that begins with a
// path.
func commandIn(words string) (name, rest string, is bool) {
	first := words
	if i := strings.IndexFunc(words, unicode.IsSpace); i >= 0 {
		first, rest = words[:i], words[i:]
	}
	name, is = strings.CutPrefix(first, "/")
	return name, strings.TrimSpace(rest), is && !strings.Contains(name, "/")
}

// isCommand reports whether a line is a command, and so neither a message nor an answer.
func isCommand(words string) bool {
	_, _, is := commandIn(words)
	return is || strings.HasPrefix(words, eidolon.ShellWord)
}

// say sends a message. Unless it steers the turn, it waits for postponed actions and the person's command.
func (c *Chat) say(ctx context.Context, text string, steers bool) {
	c.mu.Lock()
	behind := len(c.later) > 0 || c.command.Load() != nil
	c.mu.Unlock()
	if steers || !behind {
		c.send(ctx, text, steers)
		return
	}
	c.idle("the message", text, func() { c.sendShown(ctx, text) })
}

// send sends a message, with the files to which it refers and the results that wait for the next message.
func (c *Chat) send(ctx context.Context, text string, steers bool) {
	if c.ofAgent(text) { // with any text before it, it would be a message
		c.deliver(ctx, []event.Block{{Text: text}}, nil, text, steers)
		return
	}
	blocks, agent, ok := c.references(ctx, text)
	if !ok {
		c.unsent()
		c.ready()
		return
	}
	send := func() {
		c.mu.Lock()
		carried := slices.Clip(c.before)
		blocks := slices.Concat(carried, c.reminder(), blocks)
		c.mu.Unlock()
		if c.deliver(ctx, blocks, carried, text, steers) {
			c.mu.Lock()
			c.before = nil
			c.agent = agent
			c.mu.Unlock()
		}
	}
	if secret := c.secret(blocks); secret != "" {
		c.ask(&Question{
			Title: secret + " lies where logins and keys are kept. Send it to the agent?",
			Hint:  "y sends it, anything else does not: ",
			answer: func(_ context.Context, words string) error {
				if !yes(words) {
					c.notice("· nothing was sent")
					c.unsent()
					return nil
				}
				send()
				return nil
			},
		})
		return
	}
	send()
}

// ofAgent reports whether a text is a command of the agent.
func (c *Chat) ofAgent(text string) bool {
	name, _, is := commandIn(text)
	return is && slices.Contains(c.Conversation().Facts().Commands, name)
}

// unsent records that a message was not sent.
func (c *Chat) unsent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
}

// deliver passes a message to the conversation, and shows what becomes of it. carried are those of its blocks that the
// next message gets if this one is taken back. It reports whether the message was accepted.
func (c *Chat) deliver(ctx context.Context, blocks, carried []event.Block, text string, steers bool) bool {
	with := c.Conversation()
	c.mu.Lock()
	c.turns.sending = true
	c.update()
	c.mu.Unlock()
	var number int64
	var steered bool
	var err error
	if steers {
		number, steered, err = with.Steer(ctx, blocks)
	} else {
		number, err = with.Send(ctx, blocks)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns.sending = false
	defer c.update()
	waits := c.turns.earlier(number)
	if err == nil && !steered {
		c.count(number)
		if number > c.turns.prompted {
			c.turns.texts[number] = ""
		}
	}
	switch able := with.Abilities().Steer; {
	case err != nil:
		c.View.Notice("the message was not taken: " + err.Error())
		c.failed = true
		return false
	case steered:
		c.View.Notice("· the turn that runs hears it")
		return true
	case !waits:
		return true
	case steers && !able:
		c.View.Notice("· this agent hears nothing in the middle of a turn: the message waits for its end")
	case able:
		c.View.Notice("· the message waits for the end of the turn; /steer TEXT says something to the turn itself")
	default:
		c.View.Notice("· the message waits for the end of the turn")
	}
	if _, open := c.turns.texts[number]; open {
		c.turns.texts[number], c.turns.carries[number] = text, carried
	}
	return true
}

// takeBackLine gives the person the last waiting line back, if its turn has not begun. The next message gets the blocks
// that were sent with it.
func (c *Chat) takeBackLine(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.later); n > 0 {
		c.View.Draft(c.later[n-1].typed)
		c.later = c.later[:n-1]
		c.update()
		return
	}
	last := int64(0)
	for n, words := range c.turns.texts {
		if words != "" {
			last = max(last, n)
		}
	}
	if last == 0 {
		return
	}
	if words, taken := c.unsend(ctx, last); taken {
		c.View.Draft(words)
		c.update()
	}
}

// unsend takes a waiting message back from the conversation, if its turn has not begun. The next message gets the
// blocks that were sent with it. The caller holds the lock, which is released meanwhile.
func (c *Chat) unsend(ctx context.Context, number int64) (words string, taken bool) {
	words = c.turns.texts[number]
	c.turns.unsent[number] = true // its end may come at once
	c.mu.Unlock()
	taken = c.Conversation().Unsend(ctx, number)
	c.mu.Lock()
	if !taken {
		delete(c.turns.unsent, number)
		return "", false
	}
	if c.turns.unsent[number] {
		c.turns.texts[number] = ""
	}
	c.before = append(c.turns.carries[number], c.before...)
	delete(c.turns.carries, number)
	c.agent.known, c.messages = false, c.messages-1 // its prompt may have been among them
	return words, true
}

// hold takes all waiting messages back from the conversation, and returns actions that send them again, in order.
func (c *Chat) hold(ctx context.Context) (held []later) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(c.turns.texts))) {
		if c.turns.texts[n] == "" {
			continue
		}
		if words, taken := c.unsend(ctx, n); taken {
			held = append(held, later{words, func() { c.sendShown(ctx, words) }})
		}
	}
	slices.Reverse(held)
	return held
}

// sendShown sends a message that has waited, and shows it, because it was typed long before.
func (c *Chat) sendShown(ctx context.Context, text string) {
	c.mu.Lock()
	c.View.Message(text)
	c.mu.Unlock()
	c.send(ctx, text, false)
}

// running returns the number of the turn that runs, or 0.
func (t turns) running() (number int64) {
	for n, words := range t.texts {
		if words == "" && !t.unsent[n] && (number == 0 || n < number) {
			number = n
		}
	}
	return number
}

// earlier reports whether an earlier turn is still open.
func (t turns) earlier(number int64) bool {
	for n := range t.texts {
		if n < number {
			return true
		}
	}
	return false
}
