//go:build unix

package agenttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/sys/process"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/policy"
)

// direct is a conversation in this process.
type direct struct{ *conversation.Conversation }

func (d direct) id() string { return d.ID() }

func (d direct) send(text string) error {
	ctx, cancel := soon()
	defer cancel()
	_, err := d.Send(ctx, []event.Block{{Text: text}})
	return err
}

func (d direct) steer(text string) (bool, error) {
	ctx, cancel := soon()
	defer cancel()
	_, reached, err := d.Steer(ctx, []event.Block{{Text: text}})
	return reached, err
}

func (d direct) answer(ask event.Ask, option string) error {
	ctx, cancel := soon()
	defer cancel()
	_, err := d.Answer(ctx, event.Reply{Question: ask.ID, Option: option})
	return err
}

func (d direct) set(c agent.Change) error {
	ctx, cancel := soon()
	defer cancel()
	return d.Set(ctx, c)
}

func (d direct) interrupt(drop bool) error {
	d.Interrupt(drop)
	return nil
}

func (d direct) close() error {
	_, err := d.Close(context.Background())
	return err
}

func (d direct) next() func(context.Context) (event.Event, error) { return d.Events(1).Next }

// soon bounds what takes milliseconds.
func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// openDirect opens a conversation in this process.
func openDirect(t *testing.T, s Subject, w wish) side {
	t.Helper()
	c, err := converse(context.Background(), s, w, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return direct{c}
}

// converse opens a conversation as the program's opener does.
func converse(ctx context.Context, s Subject, w wish, log func(string, ...any)) (*conversation.Conversation, error) {
	sv := agent.Services{Grace: w.grace, CanAsk: !w.mute}
	if s.Driver == nil {
		return converseEngine(ctx, w, sv, log)
	}
	spec, err := specOf(s, w)
	if err != nil {
		return nil, err
	}
	journal, err := w.journal(ctx, session.Begin{Agent: s.Driver.Name(), Mode: string(w.mode), Cwd: w.in.work})
	if err != nil {
		return nil, err
	}
	spec.Resume = journal.State().Session
	mind := s.Driver.Mind
	if s.around != nil {
		mind = func(ctx context.Context, spec agent.Spec, sv agent.Services) (agent.Mind, error) {
			m, err := s.Driver.Mind(ctx, spec, sv)
			if err != nil {
				return nil, err
			}
			return s.around(m), nil
		}
	}
	c, err := conversation.Open(ctx, conversation.Options{
		Journal: journal, Mind: mind, Spec: spec, Services: sv, Patience: w.patience, Log: log,
	})
	if err != nil {
		_ = journal.Close()
	}
	return c, err
}

func (w wish) journal(ctx context.Context, b session.Begin) (*session.Session, error) {
	if w.resume != "" {
		return w.in.store().Resume(ctx, w.resume)
	}
	return w.in.store().Create(ctx, b)
}

// specOf returns the Spec for a driver.
func specOf(s Subject, w wish) (agent.Spec, error) {
	env := slices.Concat(w.in.env, w.in.more)
	lookup := process.In(env)
	install, err := s.Driver.Locate(agent.Env{Lookup: lookup, Dir: w.in.work})
	if err != nil {
		return agent.Spec{}, err
	}
	spec := agent.Spec{
		Install: install, Dir: w.in.work, Env: env, Temp: filepath.Join(w.in.temp,
			"private"), Shared: setting.Defaults(),
		Machine: agent.Machine{
			Root: os.Geteuid() == 0, OS: runtime.GOOS, Has: func(p string) bool {
				return process.Find(p,
					lookup) != ""
			},
		},
		Fresh: fmt.Sprintf("00000000-0000-4000-8000-%012x", time.Now().UnixNano()&0xffffffffffff),
	}
	spec.Shared.Sandbox = setting.Chosen[setting.Sandbox]{Value: setting.Off, Origin: setting.Typed}
	spec.Shared.Approval = setting.Chosen[setting.Approval]{Value: setting.Prompt, Origin: setting.Typed}
	for _, a := range setting.Common() {
		if a == w.mode {
			spec.Shared.Approval.Value = a
		}
	}
	spec.Terms.Mode, spec.Terms.Bypass = w.mode, true
	if s.prepare != nil {
		s.prepare(w.in, &spec)
	}
	return spec, nil
}

// converseEngine opens a conversation with the engine.
func converseEngine(
	ctx context.Context, w wish, sv agent.Services, log func(string, ...any),
) (*conversation.Conversation, error) {
	p := w.in
	choice, err := provider.Choose(provider.Options{
		Provider: "anthropic", Base: p.model.URL(), Model: "claude-sonnet-5-5", Home: p.home,
		Lookup: func(name string) (string, bool) { return "key-of-a-test", name == "ANTHROPIC_API_KEY" },
	})
	if err != nil {
		return nil, err
	}
	o := native.Options{
		Settings: native.Settings{
			Sandbox: "off", Walls: policy.Wanted{Home: p.home, State: p.temp}, HandOn: []string{"OMNI_TEST_MARK"},
		},
		Choice: choice, Dir: p.work, Store: p.store(), Mode: w.mode, CanAsk: !w.mute, Temp: p.temp,
		Env: append(p.env, "PATH="+os.Getenv("PATH")),
		Log: log, Services: sv, Resume: w.resume,
	}
	if o.Kept, err = native.Keep(ctx, o); err != nil {
		return nil, err
	}
	spec := agent.Spec{Dir: p.work, Env: o.Env, Terms: agent.Terms{Mode: w.mode, Bypass: true}}
	spec.Shared.Model.Value = choice.Model
	c, err := conversation.Open(ctx, conversation.Options{
		Journal: o.Kept, Spec: spec, Services: sv, Recorded: true, Patience: w.patience, Log: log,
		Mind: func(ctx context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
			o := o
			o.Services, o.Mode = sv, cli.ModeOf(s)
			if name := s.Shared.Model.Value; name != choice.Model {
				if o.Choice, err = o.Choice.With(name); err != nil {
					return nil, err
				}
			}
			return native.Open(ctx, o)
		},
	})
	if err != nil {
		_ = o.Kept.Close()
	}
	return c, err
}

func quiet(string, ...any) {}
