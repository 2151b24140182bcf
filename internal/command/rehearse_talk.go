package command

import (
	"fmt"
	"os"
	"path/filepath"

	"omniagent/internal/agent"
	"omniagent/internal/agent/native"
	"omniagent/internal/contract"
	"omniagent/internal/fault"
	"omniagent/internal/ident"
	"omniagent/internal/opening"
	"omniagent/internal/setting"
)

// Shared by chat and start: a conversation with a scripted model, and what to do where there is no model.

// rehearsalScript is what a person hears who tries chat without a model.
const rehearsalScript = `[
	{"say": "This is a rehearsal: a script answers, not a model. I run one command, as a model would."},
	{"shell": "ls"},
	{"say": "It said: ${result}\nAnd you said: ${input}"}
]`

func rehearsalParams() []contract.Param {
	return []contract.Param{
		{
			Name: "rehearse", Kind: contract.Bool, Help: "on a scripted model: no key, no network, nothing is kept",
			Else: "; a file is named with --script FILE",
		},
		{Name: "script", Kind: contract.File, Help: "with --rehearse: what the model says: docs/shim.md"},
	}
}

func rehearsalRules() []contract.Rule {
	return []contract.Rule{
		{If: "rehearse", Not: []string{"provider", "model", "api-base", "resume", "continue"}},
		{If: "script", Then: []string{"rehearse"}},
	}
}

// onScript changes a request and its environment so that a scripted model answers, if the call asks for that. stop
// ends the model and removes what was made for it.
func onScript(c *contract.Call, e *opening.Env, r *opening.Request, usual string) (stop func(), err error) {
	if !c.Bool("rehearse") {
		return func() {}, nil
	}
	home := filepath.Join(c.Paths.State, "rehearsal", ident.Hex(12)) // not temporary: codex refuses to work there
	rehearsal, end, err := rehearse(c.Path("script"), usual, home)
	if err != nil {
		return nil, err
	}
	e.Keep = false
	if r.Agent == native.Name {
		lookup := e.Own.Programs
		e.Own.Programs = func(name string) (string, bool) {
			if name == "OPENAI_API_KEY" {
				return rehearsal.Key, true
			}
			return lookup(name)
		}
		r.Provider, r.Base = "openai", rehearsal.URL+"/v1"
		r.Spec.Shared.Model = setting.AsTyped(rehearsal.Model)
		return end, nil
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		end()
		return nil, fault.New(fault.PermissionDenied, "there is no place for the home of a rehearsal").Because(err).
			Hint("set HOME or XDG_STATE_HOME")
	}
	r.Spec.Rehearsal = &rehearsal
	return func() { end(); _ = os.RemoveAll(home) }, nil
}

// firstStart adds next steps to the fault of a person who has no model yet: ways to one, and installed agents.
func (p Parts) firstStart(c *contract.Call, err error) error {
	f := fault.Of(err)
	if err == nil || f.Code != fault.AuthRequired || f.Detail["choices"] == nil {
		return err
	}
	told, talk := *f, "chat"
	told.Suggestion = "Choose one of these:"
	if c.Command.Path == "start" { // a program reads the suggestion alone
		talk = "start"
		told.Suggestion = "store a key with omniagent login, choose an installed agent with --agent, or try --rehearse"
	}
	told.Ways = []string{
		fmt.Sprintf("%-27s try it now: a script answers, no key, no network", "omniagent "+talk+" --rehearse"),
		"omniagent login anthropic   store a key, typed unseen; also openai, gemini",
		"ANTHROPIC_API_KEY           or OPENAI_API_KEY, GEMINI_API_KEY, as variables",
		"gcloud auth login           then --provider gemini",
		"omniagent models list       profiles of ~/.eidolon, and what else there is",
		"--provider openai --api-base http://127.0.0.1:11434/v1 --model NAME",
		"                            a server on this machine, without a key",
	}
	for _, d := range p.Agents {
		if _, err := d.Locate(agent.Env{Lookup: c.Host.Lookup, Dir: c.Dir()}); err == nil && d.Name() != native.Name {
			told.Ways = append(told.Ways, fmt.Sprintf("omniagent %s --agent %-8s is installed", talk, d.Name()))
		}
	}
	return &told
}
