package command

import (
	"fmt"
	"os"
	"path/filepath"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/native"
	"omniagent/internal/work/run"
)

// Shared by chat and start: a conversation with a scripted model, and what to do where there is no model.

// rehearsalScript is what a person hears who tries chat without a model.
const rehearsalScript = `[
	{"say": "This is a rehearsal: a script answers, not a model. I run one command, as a model would."},
	{"shell": "ls"},
	{"say": "It said: ${result}\nAnd you said: ${input}"}
]`

// runScript is what happens in a run without a model: a file is written, a question is asked.
const runScript = `[
	{"write": {"path": "greeting.txt", "content": "Hello!\n"}},
	{"ask": "Shall the greeting stay?"},
	{"say": "This was a rehearsal: a script answered, not a model."}
]`

// reviewScript is a review without a model, which finds nothing.
const reviewScript = `[{"say": "{\"findings\": 0}"}]`

func rehearsalParams() []contract.Param {
	return []contract.Param{
		{
			Name: "rehearse", Kind: contract.Bool, Help: "on a scripted model: no key, no cost",
			Else: "; a file is named with --script FILE",
		},
		{Name: "script", Kind: contract.File, Help: "what it says; see help script"},
	}
}

func rehearsalRules() []contract.Rule {
	return []contract.Rule{
		{If: "rehearse", Not: []string{"provider", "model", "api-base", "resume", "continue"}},
		{If: "script", Then: []string{"rehearse"}},
	}
}

// runRehearsal are the rules of a run, which is a conversation of its own.
func runRehearsal() []contract.Rule {
	return []contract.Rule{
		{If: "rehearse", Not: []string{"provider", "model", "api-base"}},
		{If: "script", Then: []string{"rehearse"}},
	}
}

// onScript changes a request and its environment so that a scripted model answers, if the call asks for that. stop
// ends the model and removes what was made for it.
func onScript(c *contract.Call, e *launch.Env, r *launch.Request, usual string) (stop func(), err error) {
	if !c.Bool("rehearse") {
		return func() {}, nil
	}
	home := rehearsalHome(c, ident.Hex(12))
	rehearsal, end, err := rehearse(c.Path("script"), usual, home, 0, 0)
	if err != nil {
		return nil, err
	}
	e.Keep = false
	if err := onRehearsal(&rehearsal, e, r); err != nil {
		end()
		return nil, err
	}
	return func() { end(); _ = os.RemoveAll(home) }, nil
}

// rehearsalHome is the home of an agent that rehearses. It is not temporary: codex refuses to work there.
func rehearsalHome(c *contract.Call, name string) string {
	return filepath.Join(c.Paths.State, "rehearsal", name)
}

// onRehearsal changes a request and its environment so that the model of a rehearsal answers.
func onRehearsal(by *agent.Rehearsal, e *launch.Env, r *launch.Request) error {
	r.Spec.Rehearsal = by
	if r.Agent == native.Name {
		lookup := e.Own.Programs
		e.Own.Programs = func(name string) (string, bool) {
			if name == "OPENAI_API_KEY" {
				return by.Key, true
			}
			return lookup(name)
		}
		r.Provider, r.Base = "openai", by.URL+"/v1"
		r.Spec.Shared.Model = setting.AsTyped(by.Model)
		return nil
	}
	if err := os.MkdirAll(by.Home, 0o700); err != nil {
		return fault.New(fault.PermissionDenied, "there is no place for the home of a rehearsal").Because(err).
			Hint("set HOME or XDG_STATE_HOME")
	}
	return nil
}

// rehearsedRun lets a script answer in the conversations of a run that is a rehearsal. What an agent keeps is left
// until the run is over, since it may go on after an answer. Any agent may rehearse, allowed for runs or not.
func rehearsedRun(c *contract.Call, o *opener, r *run.Run) (stop func(), err error) {
	if !r.Rehearse {
		return func() {}, nil
	}
	home := rehearsalHome(c, r.ID)
	usual := runScript
	if c.Command.Path == "review" {
		usual = reviewScript
	}
	answered, here := r.Asks()
	by, end, err := rehearse(r.Script, usual, home, answered, here)
	if err != nil {
		return nil, err
	}
	o.rehearsal, o.closed = &by, false
	return func() {
		end()
		if r.State.Terminal() {
			_ = os.RemoveAll(home)
		}
	}, nil
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
