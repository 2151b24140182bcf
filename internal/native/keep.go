package native

import (
	"context"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native/engine"
	"omniagent/internal/sys/redact"
	"omniagent/internal/talk/session"
)

// Keep opens the session of a conversation: a new one, the one to resume, the newest of the directory, or a copy. It
// may import a history from a file. It returns an error for unsupported terms before it creates a session.
func Keep(ctx context.Context, o Options) (*session.Session, error) {
	quiet := o
	quiet.Log = func(string, ...any) {} // Open logs the same
	t, err := quiet.readTerms()
	if err != nil {
		return nil, err
	}
	servers, _ := quiet.readServers()
	known := quiet.secrets(withHosts(servers, t.hosts))
	kept, err := o.opened(ctx, known)
	if err == nil {
		kept.Mask(known.Bytes) // before the first record
	}
	return kept, err
}

// opened creates a session, or opens the one to resume.
func (o Options) opened(ctx context.Context, known *redact.Values) (*session.Session, error) {
	var history []model.Message
	if o.History != "" {
		var err error
		if history, err = session.ReadHistory(o.History); err != nil {
			return nil, err
		}
		history = engine.RedactMessages(known, history)
	}
	if o.Resume == "" && !o.Terms.Continue {
		return o.create(ctx, history)
	}
	kept, err := o.resumed(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.checkHistory(kept, history); err != nil {
		_ = kept.Close()
		return nil, err
	}
	return kept, nil
}

// create starts a session.
func (o Options) create(ctx context.Context, history []model.Message) (*session.Session, error) {
	kept, err := o.Store.New(ctx, session.Begin{
		ID: o.ID, Provider: o.Choice.Provider, Model: o.Choice.Model, Mode: string(o.Mode), Cwd: o.Dir,
		Address: o.address(), Rehearsed: o.Rehearsed,
	}, !o.Forget, o.Log)
	if err != nil || history == nil {
		return kept, err
	}
	if err := o.adopt(kept, history); err != nil {
		_ = kept.Close()
		return nil, err
	}
	return kept, nil
}

func (o Options) adopt(kept *session.Session, history []model.Message) error {
	return kept.Adopt(session.Adopted{From: o.History, Provider: o.Choice.Provider, Model: o.Choice.Model}, history)
}

// resumed opens the session to resume, or a copy of it.
func (o Options) resumed(ctx context.Context) (*session.Session, error) {
	id := o.Resume
	if o.Terms.Continue {
		var err error
		if id, err = Newest(ctx, o.Store, o.Dir); err != nil {
			return nil, err
		}
	}
	if o.Terms.Fork {
		return o.Store.Fork(ctx, id, o.ID)
	}
	return o.Store.Resume(ctx, id)
}

// Newest returns the last used session of this agent in exactly that directory, or an error if there is none.
func Newest(ctx context.Context, store session.Store, dir string) (string, error) {
	all, _, err := store.List(ctx, session.Filter{Dir: dir, Agent: Name})
	if err != nil {
		return "", err
	}
	here := filepath.Clean(dir)
	i := slices.IndexFunc(all, func(s session.Info) bool {
		return filepath.Clean(s.Begin.Cwd) == here && !s.Begin.Rehearsed
	})
	if i < 0 {
		return "", fault.New(fault.NotFoundCode, "there is no session of %s to resume", dir).Hint("begin one")
	}
	return all[i].Begin.ID, nil
}

// address returns the model and its API, in the form that the session records.
func (o Options) address() session.Address {
	e := o.Choice.Endpoint
	a := session.Address{Declared: e.Layer.String(), Profile: o.Choice.Profile}
	if e.Layer != provider.Builtin {
		a.Base = e.URL
	}
	return a
}

// checkHistory adopts a history, or records a change of the model and its address. It returns an error if the session
// belongs to another provider.
func (o Options) checkHistory(kept *session.Session, history []model.Message) error {
	if history != nil {
		return o.adopt(kept, history)
	}
	if err := kept.CheckProvider(o.Choice.Provider); err != nil {
		return err
	}
	now, changed := kept.State(), session.Changed{}
	if now.Model != o.Choice.Model {
		changed.Model = o.Choice.Model
	}
	if here := o.address(); now.Address != here {
		changed.Address = here
	}
	if changed.Model == "" && changed.Address == (session.Address{}) {
		return nil
	}
	_, err := kept.Append(changed)
	return err
}
