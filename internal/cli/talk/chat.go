package talk

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/host/chat"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
	"omniagent/internal/native"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/sandbox"
)

func (p commands) chat() *contract.Command {
	params := []contract.Param{
		{Name: "plain", Kind: contract.Bool, Help: "line by line, in a pipe too"},
		{Name: "screen-reader", Kind: contract.Bool, Help: "nothing on the screen moves or is erased"},
		{
			Name: "resume", Short: "r", Kind: contract.Name, Optional: true,
			Help: "conversation to go on with; alone, choose from a list",
		},
	}
	start := p.start()
	for _, one := range start.Params {
		if one.Name == "agent" {
			one.Default, one.Help = "", "the agent; else the one of config set agent, or native"
		}
		switch one.Name {
		case "agent", "provider", "model", "cwd", "add-dir", "session-id", "continue", "api-base", "sandbox",
			"network", "web", "tool-protocol":
			params = append(params, one)
		}
	}
	params = slices.Concat(params, flags.Rehearsal(), flags.Host(), []contract.Param{forks.Flag()})
	return &contract.Command{
		Path: "chat", Summary: "talk to an agent in this terminal",
		Here: true, Class: contract.Terminal, Danger: contract.Mutating,
		Interactive: true,
		Detail: "A line is a message; while the agent works it waits for the end of the turn. /help lists the " +
			"commands: " +
			"/agent changes the agent,\n/resume with an earlier conversation. @file:PATH sends a file, " +
			"@!COMMAND " +
			"runs a command whose result travels with the next message.\n" +
			"Ctrl-C ends the turn; pressed twice, it kills it. With no turn running it clears the line; on an " +
			"empty one, twice ends the conversation.\nA question is answered with a line that was typed after it was " +
			"asked; in a pipe the next line is the answer.",
		Files: stores.ConversationFiles(
			stores.RunFiles(),
			contract.FileEffect{
				Path: "~/.eidolon/projects", Type: "state", ClearableWith: "omniagent session delete",
			},
			contract.FileEffect{Path: "~/.local/state/omniagent/chat-history", Type: "state"},
		),
		Scopes: []string{}, Params: params, Children: start.Children, Network: start.Network, Auth: start.Auth,
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the conversation was ended"},
			{
				Code: contract.GeneralError,
				When: "what the agent says cannot be written; in a pipe also: a turn failed or a message was not sent",
			},
			{Code: contract.AuthRequired, When: "no model was chosen, and there is no key that would"},
			{Code: contract.PreconditionFailed, When: "there is no terminal, and --plain was not given"},
		},
		Rules: flags.RehearsalRules(),
		Examples: []contract.Example{
			{Description: "Talk to the native agent", Command: "omniagent chat"},
			{Description: "Try it without a key", Command: "omniagent chat --rehearse"},
			{Description: "Talk to an installed one", Command: "omniagent chat --agent claude"},
			{Description: "Go on where this directory's last conversation ended", Command: "omniagent chat --continue"},
		},
		Serve: parts.RedactErrors(p.forked(p.serveChat)),
	}
}

func (p commands) serveChat(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	if err := needsTerminal(c); err != nil {
		return 0, err
	}
	r, err := p.requestOf(c, true)
	if err != nil {
		return 0, err
	}
	r.Spec.Terms.Transport = agent.ByChoice // one over which the agent can ask the person
	r.Spec.Terms.Bypass = true              // the person may change to any mode
	picks := false
	if r.Request, picks, err = chatSession(ctx, c, r.Request); err != nil {
		return 0, err
	}
	one := &chat.Chat{Typed: c.Host.StdinTerminal, Picks: picks}
	if one.View, one.Signals, err = chatView(c, one, signals); err != nil {
		return 0, err
	}
	env := p.openerOf(c, chatLog(c, one.View), parts.NoLog, nil).Env()
	stop, err := parts.OnScript(c, &env, &r.Request, rehearsalScript)
	if err != nil {
		one.View.Close()
		return 0, err
	}
	defer stop()
	one.World = p.chatWorld(c, env, r.Request)
	one.World.Bare = p.Eidolon
	return one.Run(ctx, func(ctx context.Context) (*conversation.Conversation, error) {
		conv, err := parts.UntilOpen(ctx, one.Signals, func(ctx context.Context) (*conversation.Conversation, error) {
			return env.Open(ctx, r.Request)
		})
		if err != nil {
			return nil, p.firstStart(c, err)
		}
		first := greeting(conv, c.Bool("rehearse"))
		sees := p.visibleDirs(conv.Facts(), conv.Dirs(), c.Host.Home())
		one.Greet = strings.Join(append([]string{first}, sees...), "\n")
		return conv, nil
	})
}

// needsTerminal returns a fault unless there is a terminal or --plain.
func needsTerminal(c *contract.Call) error {
	if c.Host.StdinTerminal || c.Bool("plain") {
		return nil
	}
	return fault.New(fault.ReplProhibited, "a conversation needs a terminal").Hint(
		"omniagent --agent native -p TEXT answers one message; chat --plain works in a pipe")
}

// greeting returns the first line of a chat.
func greeting(conv *conversation.Conversation, rehearsed bool) string {
	facts := conv.Facts()
	if rehearsed {
		return facts.Agent + ", in a rehearsal: a script answers. /help lists the commands."
	}
	if of := cmp.Or(facts.Vendor, facts.Provider); facts.Model != "" && of != "" {
		return facts.Model + " of " + of + ". /help lists the commands."
	}
	return facts.Agent + ". /help lists the commands."
}

// visibleDirs returns lines about the further directories in which the agent works, and, if there are walls, about what
// it can see of the home directory.
func (p commands) visibleDirs(f event.Facts, dirs []string, home string) (lines []string) {
	walled := f.Walls != nil && f.Walls.Name == sandbox.Namespaces.String() && home != ""
	var inHome, others []string
	for i, dir := range append([]string{f.Dir}, dirs...) {
		switch rest, within := pathname.In(home, dir); {
		case walled && within:
			inHome = append(inHome, "~/"+text.Name(rest))
		case i > 0:
			others = append(others, text.Name(dir))
		}
	}
	if len(others) > 0 {
		lines = append(lines, "It works in "+strings.Join(others, " and ")+" too.")
	}
	if !walled {
		return lines
	}
	line := "Of your home directory it sees its own files and tools only"
	if len(inHome) > 0 {
		line = "Of your home directory it sees only " + strings.Join(inHome, ", ") + ", its own files and tools"
	}
	d, known := agent.Find(p.Agents, f.Agent)
	if f.Agent == native.Name || known && d.Describe().Lasting {
		line += "; /add-dir DIR opens more"
	}
	return append(lines, line+".")
}

// chatSession sets the conversation that --resume or --continue means, and its agent. picks reports whether the person
// has to choose one from a list.
func chatSession(
	ctx context.Context, c *contract.Call, r launch.Request,
) (_ launch.Request, picks bool, err error) {
	id := r.Spec.Resume
	if !c.Given("resume") && !c.Bool("continue") {
		return r, false, nil
	}
	if c.Given("resume") && id == "" {
		return r, true, nil
	}
	store, err := stores.Sessions(c)
	if err != nil {
		return r, false, err
	}
	filter := session.Filter{}
	if id == "" {
		filter.Dir = cmp.Or(r.Spec.Dir, c.Dir())
	}
	all, _, err := store.List(ctx, filter)
	if err != nil {
		return r, false, err
	}
	var found []session.Info
	for _, s := range all {
		named := c.Given("agent") && s.Begin.AgentName() != r.Agent
		switch { // a rehearsal cannot be continued
		case id == "" && s.Begin.Cwd == filter.Dir && !named && !s.Begin.Rehearsed:
			found = append(found, s)
		case id == "":
		case s.Begin.ID == id:
			found = []session.Info{s}
		case strings.HasPrefix(s.Begin.ID, id):
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 0 && id == "":
		return r, false, fault.New(fault.NotFoundCode, "there is no conversation about this directory yet").
			Hint("omniagent chat begins one")
	case len(found) == 0: // the agent may have it in its own records
		return r, false, nil
	case len(found) > 1 && id != "" && found[0].Begin.ID != id:
		var ids []string
		for _, s := range found {
			ids = append(ids, s.Begin.ID)
		}
		return r, false, fault.New(fault.ArgError, "%s is the beginning of %s", id, text.Either(ids)).
			Hint("name one of them")
	}
	r.Spec.Resume, r.Spec.Terms.Continue = found[0].Begin.ID, false
	if !c.Given("agent") {
		r.Agent = cmp.Or(found[0].Begin.Agent, native.Name)
	}
	return r, false, nil
}
