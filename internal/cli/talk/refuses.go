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

// refusesTalk returns the error with which a call of start or chat would fail, as far as that is known before standard
// input is read. It changes nothing.
func (p commands) refusesTalk(ctx context.Context, c *contract.Call) error {
	if c.Command.Path == "chat" {
		if err := needsTerminal(c); err != nil {
			return err
		}
	}
	r := openRequest{Request: launch.Request{Agent: c.String("agent")}}
	if !p.canRelay(c) {
		var err error
		if r, err = p.requestOf(c, true); err != nil {
			return err
		}
	}
	if c.Bool("rehearse") || c.Given("resume") || c.Bool("continue") { // the session decides which agent is started
		return nil
	}
	return p.firstStart(c, p.Refuses(ctx, c, r.Request, false))
}

// firstStart adds next steps to the fault that no model is configured: ways to get one, and the installed agents.
func (p commands) firstStart(c *contract.Call, err error) error {
	f := fault.Of(err)
	if err == nil || f.Code != fault.AuthRequired || f.Detail["choices"] == nil {
		return err
	}
	more, talk, message := *f, "chat", ""
	more.Suggestion = "Choose one of these:"
	if c.Command.Path == "start" { // a program reads the suggestion alone
		talk, message = "start", " -p hi"
		more.Suggestion = "store a key with omniagent login, choose an installed agent with --agent, or try --rehearse"
	}
	more.Ways = []string{
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
			more.Ways = append(more.Ways, fmt.Sprintf("omniagent %s --agent %-8s is installed", talk, d.Name()+message))
		}
	}
	return &more
}
