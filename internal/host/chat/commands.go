package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/eidolon"
)

// command is a command of the chat, which is typed with a slash.
type command struct {
	name, arg, help string
	run             func(c *Chat, ctx context.Context, rest string)
}

// builtIn returns the commands that every chat has. A file's command with such a name becomes /project:NAME or
// /user:NAME.
func builtIn() []command {
	return []command{
		{"help", "", "show what can be typed here", (*Chat).help},
		{"status", "", "show the agent, the model, the mode and the walls", (*Chat).status},
		{"model", "[NAME]", "show or change the model", (*Chat).model},
		{"permissions", "[MODE]", "show or change what runs unasked", (*Chat).permissions},
		{"add-dir", "DIR", "let the agent work in a further directory too", (*Chat).addDir},
		{"agent", "[NAME]", "list the agents, or go on with another", (*Chat).another},
		{"sessions", "", "list the conversations about this directory", (*Chat).sessions},
		{"resume", "[ID]", "go on with one of them", (*Chat).resume},
		{"clear", "", "begin a new conversation", (*Chat).clear},
		{"compact", "[TEXT]", "have the agent shorten the conversation", (*Chat).compact},
		{"cost", "", "show what this has cost so far", (*Chat).cost},
		{"undo", "", "take back what this conversation last did here", (*Chat).undo},
		{"redo", "", "take back the last undo", (*Chat).redo},
		{"show", "N", "show the whole result of tool call N", (*Chat).show},
		{"steer", "TEXT", "say something to the turn that runs", (*Chat).steer},
		{"quit", "", "leave when all is answered; so do /exit, Ctrl-D", nil},
		{"exit", "", "", nil},
	}
}

// do runs a line that begins with a slash. It reports whether the person wants to leave.
func (c *Chat) do(ctx context.Context, words string) (leaves bool) {
	name, rest, _ := commandIn(words)
	var known []string
	for _, one := range builtIn() {
		if one.name == name {
			switch {
			case one.arg == "" && rest != "":
				c.notice("/" + name + " takes no arguments, so nothing was done")
			case one.run == nil:
				return true
			default:
				one.run(c, ctx, rest)
			}
			c.ready()
			return false
		}
		known = append(known, one.name)
	}
	for _, p := range c.fileCommands(ctx) {
		if p.Name == name {
			c.runFile(ctx, p, rest)
			return false
		}
		known = append(known, p.Name)
	}
	announced := c.announced()
	if slices.Contains(announced, name) {
		c.say(ctx, words, false)
		return false
	}
	known = append(known, announced...)
	line := "There is no command " + text.Name("/"+name)
	if near := text.Nearest(name, known); near != "" {
		line += "; /" + near + " is the nearest"
	}
	c.notice(line + ". /help lists all.")
	c.unsent()
	c.ready()
	return false
}

// announced returns the agent's own commands, except those with the name of one of ours.
func (c *Chat) announced() (names []string) {
	with := c.Conversation()
	if with == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(with.Facts().Commands), isBuiltIn)
}

func isBuiltIn(name string) bool {
	return slices.ContainsFunc(builtIn(), func(one command) bool { return one.name == name })
}

// mostProblems limits the problems of files that are shown.
const mostProblems = 5

// problems shows which files of agents and commands are invalid, and where.
func (c *Chat) problems(ctx context.Context) {
	all := c.World.prompts(ctx).Problems
	for _, p := range all[:min(len(all), mostProblems)] {
		c.notice("· " + text.Flat(p.String()))
	}
	if more := len(all) - mostProblems; more > 0 {
		c.notice(fmt.Sprintf("· and %d more files that could not be understood", more))
	}
}

// fileCommands returns the commands that files define, with the names that a person types.
func (c *Chat) fileCommands(ctx context.Context) []eidolon.Prompt {
	all := c.World.prompts(ctx).Commands
	for i, p := range all {
		if !isBuiltIn(p.Name) {
			continue
		}
		if all[i].Name = "user:" + p.Name; p.Project {
			all[i].Name = "project:" + p.Name
		}
	}
	slices.SortFunc(all, func(a, b eidolon.Prompt) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (c *Chat) runFile(ctx context.Context, p eidolon.Prompt, rest string) {
	if p.Untrusted {
		c.notice(untrusted("command", p))
		c.ready()
		return
	}
	c.say(ctx, inserted(p.Text, rest), false)
}

// inserted returns the message for a command of a file: its text, and then what was typed after its name.
func inserted(content, rest string) string {
	if rest == "" {
		return content
	}
	return content + "\n\n" + rest
}

func (c *Chat) help(ctx context.Context, _ string) {
	var lines []string
	add := func(name, help string) { lines = append(lines, fmt.Sprintf("  %-20s %s", name, text.Flat(help))) }
	lines = append(lines, "A line is a message. While the agent works it waits for the end of the turn.", "")
	for _, one := range builtIn() {
		if one.help != "" {
			add(strings.TrimSpace("/"+one.name+" "+one.arg), one.help)
		}
	}
	for _, p := range c.fileCommands(ctx) {
		help := p.Description
		if p.Untrusted {
			help = "not trusted; " + p.Path
		}
		add("/"+text.Name(p.Name), help)
	}
	for _, name := range c.announced() {
		add("/"+text.Name(name), "a command of the agent")
	}
	add(eidolon.FileWord+"PATH", "send a file with the message")
	add(eidolon.AgentWord+"NAME", "bring the prompt of .eidolon/agents/NAME.md")
	add(eidolon.ShellWord+"COMMAND", "run it; the result goes with the next message")
	add("Up", "on an empty line: take back the last that waits; else the one before, of all that was typed")
	add("Ctrl-C", "end the turn; else clear the line; two quick presses on an empty one leave")
	c.notice(strings.Join(lines, "\n"))
	c.problems(ctx)
}

func (c *Chat) status(context.Context, string) {
	with := c.Conversation()
	f := with.Facts()
	lines := []string{
		"agent:        " + text.Name(strings.TrimSpace(f.Agent+" "+f.Version)),
		"model:        " + text.Name(modelOf(f)),
		"mode:         " + string(f.Mode),
		"directory:    " + text.Name(f.Dir),
		"conversation: " + with.ID(),
	}
	for _, dir := range with.Dirs() {
		lines = append(lines, "open as well: "+text.Name(dir))
	}
	if f.Walls != nil {
		line := "walls:        " + f.Walls.String()
		if len(f.Walls.Holes) > 0 {
			line += "; omniagent sandbox explain . lists the gaps"
		}
		lines = append(lines, text.Flat(line))
	}
	if used := c.spent.Context; used > 0 {
		line := fmt.Sprintf("context:      %d tokens", used)
		if f.Window > 0 {
			line += fmt.Sprintf(" of %d (%d %%)", f.Window, used*100/f.Window)
		}
		lines = append(lines, line)
	}
	for _, s := range f.Servers {
		lines = append(lines, "MCP server:   "+text.Name(s.Name)+", "+text.Name(s.Status))
	}
	c.notice(strings.Join(lines, "\n"))
}

func modelOf(f event.Facts) string {
	if of := cmp.Or(f.Vendor, f.Provider); of != "" {
		return f.Model + " of " + of
	}
	return f.Model
}

func (c *Chat) model(ctx context.Context, rest string) {
	if rest == "" {
		c.notice("The model is " + text.Name(modelOf(c.Conversation().Facts())) + ". /model NAME changes it.")
		return
	}
	if c.World.Rehearses {
		c.notice("nothing was changed: in a rehearsal the script answers, whatever the model is called")
		return
	}
	c.set(ctx, agent.Change{Model: rest})
}

func (c *Chat) permissions(ctx context.Context, rest string) {
	if rest == "" {
		c.notice(fmt.Sprintf("The mode is %s. /permissions %s changes it.", c.Conversation().Facts().Mode,
			strings.Join(modes(), "|")))
		return
	}
	mode, ok := setting.ParseApproval(rest)
	if words := setting.Elsewhere().Refusal(rest); words != "" {
		c.notice(fmt.Sprintf("There is no mode %s. With that word, %s.", text.Name(rest), words))
		return
	}
	if !ok {
		c.notice(fmt.Sprintf("There is no mode %s: %s", text.Name(rest), text.Either(modes())))
		return
	}
	c.set(ctx, agent.Change{Mode: mode})
}

// set changes the mode or the model. An event of the conversation shows the change.
func (c *Chat) set(ctx context.Context, change agent.Change) {
	if err := c.Conversation().Set(ctx, change); err != nil {
		c.notice("nothing was changed: " + advised(err))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chosen = cmp.Or(change.Model, c.chosen)
}

func (c *Chat) cost(context.Context, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.View.Notice(c.spent.String())
}

func (c *Chat) steer(ctx context.Context, rest string) {
	if rest == "" {
		c.notice("/steer TEXT says something to the turn that runs")
		return
	}
	c.say(ctx, rest, true)
}

// compact sends /compact to agents that have this command.
func (c *Chat) compact(ctx context.Context, rest string) {
	if !slices.Contains(c.Conversation().Facts().Commands, "compact") {
		c.notice("This agent shortens a conversation by itself when it has to.")
		return
	}
	c.say(ctx, strings.TrimSpace("/compact "+rest), false)
}

func (c *Chat) undo(ctx context.Context, _ string) { c.takeBackLater(ctx, false) }

func (c *Chat) redo(ctx context.Context, _ string) { c.takeBackLater(ctx, true) }

// takeBackLater undoes or redoes at once if nothing runs. An undo during a turn is about that turn: it waits for its
// end, and the waiting messages wait for the undo.
func (c *Chat) takeBackLater(ctx context.Context, redo bool) {
	if c.World.Undo == nil {
		c.notice(notHere)
		return
	}
	c.mu.Lock()
	turn, runs := c.turns.running(), c.runs()
	c.mu.Unlock()
	typed := "/undo"
	if redo {
		turn, typed = 0, "/redo"
	}
	if !runs {
		c.idle(typed, typed, func() { c.takeBack(ctx, 0, redo) })
		return
	}
	what, held := "turn; Ctrl-C interrupts it", c.hold(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.update()
	if turn != 0 && c.turns.running() > turn { // it ended, and the next message was not held in time
		c.later = slices.Concat(held, c.later)
		c.View.Notice("nothing was taken back: the next turn has begun. /undo is about that one now.")
		return
	}
	if c.command.Load() != nil {
		what = "command"
	}
	c.later = slices.Concat([]later{{typed, func() { c.takeBack(ctx, turn, redo) }}}, held, c.later)
	c.View.Notice("· " + typed + " waits for the end of the " + what)
	if len(held) > 0 {
		c.View.Notice("· the messages that wait are sent after that")
	}
}

// takeBack undoes or redoes the last turn in the workspace. The conversation does not change, and the agent is not
// told. If turn is not 0, it undoes only that turn.
func (c *Chat) takeBack(ctx context.Context, turn int64, redo bool) {
	said, err := c.World.Undo(ctx, c.Conversation().ID(), turn, redo)
	switch {
	case errors.Is(err, fault.NotFoundCode) && turn != 0:
		said = "That turn changed nothing here, so nothing was taken back. /undo now takes back the one before."
	case errors.Is(err, fault.NotFoundCode) && redo:
		said = "There is no undo of this conversation to take back."
	case errors.Is(err, fault.NotFoundCode):
		said = "There is no turn of this conversation to take back. " +
			"omniagent undo takes back the last turn of any other."
	case err != nil:
		said = "nothing was taken back: " + advised(err)
	}
	for _, dir := range c.Conversation().Dirs() {
		if !c.undoes(dir) {
			said += "\nNo undo reaches " + text.Name(dir) + "."
		}
	}
	c.notice(text.Visible(said))
}

// show shows a result in full.
func (c *Chat) show(ctx context.Context, rest string) {
	var n int
	_, err := fmt.Sscanf(rest, "%d", &n)
	c.mu.Lock()
	if err != nil || n < 1 || n > len(c.results) {
		there := fmt.Sprintf("/show N: there are results 1 to %d", len(c.results))
		if len(c.results) == 0 {
			there = "There is no result to show yet."
		}
		c.View.Notice(there)
		c.mu.Unlock()
		return
	}
	one, with := c.results[n-1], c.Conversation()
	if one.record == 0 {
		c.View.Page(text.Visible(one.text))
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	events := with.Events(one.record)
	defer events.Close()
	e, err := events.Next(ctx)
	if err == nil && e.Result == nil {
		err = errors.New("the record is another one")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.View.Notice("the result cannot be read: " + err.Error())
		return
	}
	c.View.Page(text.Visible(e.Result.Output))
}
