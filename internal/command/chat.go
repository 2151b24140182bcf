package command

import (
	"context"
	"os"
	"slices"

	"omniagent/internal/contract"
	"omniagent/internal/conversation"
	"omniagent/internal/fault"
	"omniagent/internal/repl"
)

// chat declares the command that runs the native agent for a person.
func (p Parts) chat() *contract.Command {
	own := []string{"provider", "model", "cwd", "session-id", "resume", "api-base", "sandbox", "network", "web"}
	params := []contract.Param{{Name: "plain", Kind: contract.Bool, Help: "line by line, in a pipe too"}}
	like := p.start()
	for _, one := range like.Params {
		for _, name := range own {
			if one.Name == name {
				params = append(params, one)
			}
		}
	}
	params = slices.Concat(params, rehearsalParams(), hostParams())
	return &contract.Command{
		Path: "chat", Summary: "talk to the native agent in this terminal", Class: contract.Terminal,
		Danger: contract.Mutating,
		Detail: "A line is a message; while the agent works it waits, and /steer TEXT says something to the turn " +
			"that runs. Ctrl-C ends that turn, pressed\n" +
			"twice it kills it, and without a turn it ends the conversation. /exit ends it when everything is " +
			"answered. A question is answered with a line\n" +
			"that was typed after it was asked; what was typed before is a message. In a pipe the next line is the " +
			"answer.",
		Scopes: []string{}, Params: params, Files: like.Files, Network: like.Network,
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the conversation was ended"},
			{Code: contract.GeneralError, When: "what the agent says cannot be written"},
			{Code: contract.AuthRequired, When: "no model was chosen, and there is no key that would"},
			{Code: contract.PreconditionFailed, When: "there is no terminal, and --plain was not given"},
		},
		Rules: rehearsalRules(),
		Examples: []contract.Example{
			{Description: "Talk", Command: "omniagent chat"},
			{Description: "Try it without a key", Command: "omniagent chat --rehearse"},
		},
		Serve: quiet(p.serveChat),
	}
}

func (p Parts) serveChat(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	if !c.Host.StdinTerminal && !c.Bool("plain") {
		return 0, fault.New(fault.ReplProhibited, "a conversation needs a terminal").Hint(
			"omniagent --agent native -p TEXT answers one message; chat --plain works in a pipe")
	}
	log := logger(c)
	r, err := p.requestOf(c, true)
	if err != nil {
		return 0, err
	}
	env := p.openerOf(c, log, func(string, ...any) {}, nil).env()
	stop, err := onScript(c, &env, &r.Request, rehearsalScript)
	if err != nil {
		return 0, err
	}
	defer stop()
	conv, err := untilOpen(ctx, signals, func(ctx context.Context) (*conversation.Conversation, error) {
		return env.Open(ctx, r.Request)
	})
	if err != nil {
		return 0, firstStart(err)
	}
	facts := conv.Facts()
	return (&repl.Plain{
		Conversation: conv, In: c.Host.Stdin, Typed: c.Host.StdinTerminal, Out: c.Host.Stdout, Signals: signals,
		Greet: facts.Model + " of " + facts.Provider + ", session " + conv.ID() + ". /exit ends it.",
	}).Run(ctx)
}
