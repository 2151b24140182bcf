package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/touch"
)

// DelegateName is the tool that delegates work to another agent. RunnerName is the kind of sub-agent that does the
// work.
const (
	DelegateName = "Delegate"
	RunnerName   = "cli-runner"
)

// Agents runs other agents.
type Agents interface {
	// Names returns the agents that may be started, the preferred one first.
	Names() []string
	// Carry makes an agent do the work that a packet describes, with no more rights than the caller has. The report is
	// for the model; done is false if the work was not completed.
	Carry(ctx context.Context, p Packet, by Caller) (report any, done bool)
}

// Packet describes a piece of work.
type Packet struct {
	Chunk      string
	Agent      string
	Dir        string // the agent's working directory
	Goal       string
	Scope      []string // what may be changed; nil for everything
	OutOfScope []string
	Criteria   []string
	Tests      []string
}

// Caller is the conversation for which another agent works.
type Caller interface {
	Mode() setting.Approval // the current mode
	CanAsk() bool           // a person can be asked
	// Ask passes a question of the agent to a person. ok is false if nobody answers before ctx ends.
	Ask(ctx context.Context, ask event.Ask) (reply event.Reply, ok bool)
	// Tell shows an event of the agent, below the call.
	Tell(e event.Event)
	// Spend counts the agent's usage, which is nil if unknown.
	Spend(u *event.Usage)
	Touched() *touch.Log // gets what the agent writes; nil: not recorded
}

// Delegate returns the tool that delegates work to another agent.
func Delegate(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: DelegateName, Kind: event.Agent})
	var names []string
	if env.Agents != nil {
		names = env.Agents.Names()
	}
	if len(names) > 0 {
		known := `"Which agent: ` + strings.Join(names, ", ") + "; " + names[0] + ` if left out"`
		s.Input = bytes.Replace(s.Input, []byte(`"Which agent"`), []byte(known), 1)
	}
	return s.plan(func(in *input) (Action, error) {
		p := Packet{
			Goal: in.text("goal", true), Agent: in.text("agent", false), Chunk: in.text("chunk_id", false),
			Scope: in.texts("scope_paths"), OutOfScope: in.texts("out_of_scope"),
			Criteria: in.texts("acceptance_criteria"), Tests: in.texts("tests"),
		}
		switch {
		case in.raw("goal") != nil && strings.TrimSpace(p.Goal) == "":
			in.problem("%q is empty", "goal")
		case len(names) == 0:
		case p.Agent == "":
			p.Agent = names[0]
			in.add("agent", p.Agent)
		case !slices.Contains(names, p.Agent):
			in.problem("the agent %q may not be asked: there are %s", clip(p.Agent), strings.Join(names, ", "))
		}
		return Action{
			Title: "Delegate to " + text.Name(p.Agent) + ": " + text.Name(clip(p.Goal)),
			Delegate: func(ctx context.Context, by Caller) Result {
				p.Dir = env.Files.Path()
				report, done := env.Agents.Carry(ctx, p, by)
				line, err := text.JSON(report)
				if err != nil {
					return failed(err)
				}
				var words bytes.Buffer
				_ = json.Indent(&words, line, "", "  ") // it is valid
				return Result{Text: words.String(), Failed: !done}
			},
		}, nil
	})
}

// texts returns a list of strings.
func (in *input) texts(name string) (all []string) {
	for _, one := range in.list(name, false) {
		var s string
		if json.Unmarshal(one, &s) != nil {
			in.wrong(name, "a list of strings", one)
			return nil
		}
		all = append(all, s)
	}
	return all
}

// Prompt returns the prompt that the agent gets.
func (p Packet) Prompt() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(p.Goal) + "\n")
	for _, part := range []struct {
		title, mark string
		items       []string
	}{
		{"Change only:", "- ", p.Scope},
		{"Leave alone:", "- ", p.OutOfScope},
		{"It is done when all of this holds:", "", p.Criteria},
		{"Run these commands at the end, and mend what they find:", "- ", p.Tests},
	} {
		if len(part.items) == 0 {
			continue
		}
		b.WriteString("\n" + part.title + "\n")
		for i, item := range part.items {
			mark := cmp.Or(part.mark, fmt.Sprintf("%d. ", i+1))
			b.WriteString(mark + item + "\n")
		}
	}
	b.WriteString("\nEnd with a short report: what you changed, and why.")
	if len(p.Criteria) > 0 {
		b.WriteString(" Behind it, write one line for each number above: \"PASS 1\", or \"BLOCKED 1: the reason\".")
	}
	return b.String()
}
