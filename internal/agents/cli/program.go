package cli

import (
	"context"
	"slices"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// Matrix returns the matrix of a version. Without a Table, the agent can only be started.
func (p Program) Matrix(version string) agent.Matrix {
	if p.Table == nil {
		return agent.Matrix{}
	}
	return p.Table(version)
}

// Command puts the translated flags after the arguments of the mode, and the passthrough after those.
func (p Program) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	t, err := Translate(p.Matrix(s.Install.Version), s)
	if err != nil {
		return agent.Launch{}, nil, err
	}
	return p.Launch(s, t), t.Warnings, nil
}

// Launch returns the program with translated flags. Drivers change the result where they differ.
func (p Program) Launch(s agent.Spec, t Translation) agent.Launch {
	args := slices.Clone(p.Interactive)
	if s.Mode == setting.OneShot {
		args = slices.Clone(p.OneShot)
	}
	args = append(args, t.Args...)
	return agent.Launch{
		Path: s.Install.Path, Args: append(args, s.Passthrough...), Translated: len(args),
		Env: Environ(s.Env, t.Env, t.Unset...), Files: t.Files, Dir: s.Dir,
		Policies: t.Policies, Spec: s, Interactive: s.Mode == setting.Interactive, UsageCodes: p.UsageCodes,
	}
}

// Observe finds no records.
func (p Program) Observe(agent.Launch) agent.Observer { return blind{} }

type blind struct{}

func (blind) After(agent.Exit) agent.Evidence { return agent.Evidence{} }

// Decode uses NewDecoder for both JSON forms. It returns nil if there is no NewDecoder.
func (p Program) Decode(o setting.Output) agent.Decoder {
	if o == setting.Text || p.NewDecoder == nil {
		return nil
	}
	return p.NewDecoder()
}

// Login looks for a login in the places of Credentials.
func (p Program) Login(env agent.Env) agent.Login {
	if p.Credentials == nil {
		return agent.Login{}
	}
	return p.Credentials(env).find(env)
}

// Classify returns why a run failed, judging by its exit and its events, or nil.
func (p Program) Classify(x agent.Exit, events []event.Event) *fault.Fault {
	return ProcessFault(x, EvidenceOf(events), p.UsageCodes...)
}

// Mind returns a Mind that runs the program once for every turn.
func (p Program) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	return TurnMind(p, s, sv)
}
