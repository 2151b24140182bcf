package talk

import (
	"context"
	"fmt"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/launch"
	"omniagent/internal/native"
)

// refusesTalk is refusesRun for start and chat.
func (p commands) refusesTalk(ctx context.Context, c *contract.Call) error {
	if c.Command.Path == "chat" {
		if err := needsTerminal(c); err != nil {
			return err
		}
	}
	r := openRequest{Request: launch.Request{Agent: c.String("agent")}}
	if !p.passes(c) {
		var err error
		if r, err = p.requestOf(c, true); err != nil {
			return err
		}
	}
	if c.Bool("rehearse") || c.Given("resume") || c.Bool("continue") { // a session knows its agent
		return nil
	}
	return p.firstStart(c, p.Refuses(ctx, c, r.Request, false))
}

// firstStart adds next steps to the fault of a person who has no model yet: ways to one, and installed agents.
func (p commands) firstStart(c *contract.Call, err error) error {
	f := fault.Of(err)
	if err == nil || f.Code != fault.AuthRequired || f.Detail["choices"] == nil {
		return err
	}
	told, talk, message := *f, "chat", ""
	told.Suggestion = "Choose one of these:"
	if c.Command.Path == "start" { // a program reads the suggestion alone
		talk, message = "start", " -p hi"
		told.Suggestion = "store a key with omniagent login, choose an installed agent with --agent, or try --rehearse"
	}
	told.Ways = []string{
		fmt.Sprintf("%-27s try it now: a script answers, no key, no network", "omniagent "+talk+" --rehearse"+message),
		"omniagent login anthropic   store a key, typed unseen; also openai, gemini",
		"ANTHROPIC_API_KEY           or OPENAI_API_KEY, GEMINI_API_KEY, as variables",
		"gcloud auth login           then --provider gemini",
		"omniagent models list       profiles of ~/.eidolon, and what else there is",
		"--provider openai --api-base http://127.0.0.1:11434/v1 --model NAME",
		"                            a server on this machine, without a key",
	}
	for _, d := range p.Agents {
		if _, err := d.Locate(agent.Env{Lookup: c.Host.Lookup, Dir: c.Dir()}); err == nil && d.Name() != native.Name {
			told.Ways = append(told.Ways, fmt.Sprintf("omniagent %s --agent %-8s is installed", talk, d.Name()+message))
		}
	}
	return &told
}
