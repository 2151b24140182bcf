package launch

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/touch"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/policy"
)

// Open opens the conversation. If that fails, it deletes the session that it created.
func (p *Plan) Open(ctx context.Context) (*conversation.Conversation, error) {
	if err := p.env.MayWork(p.agent, p.request.Spec); err != nil {
		return nil, err
	}
	kept, fresh, err := p.journal(ctx)
	if err != nil {
		return nil, err
	}
	p.resumeMode(kept.State())
	if err := p.recordMode(kept); err != nil {
		return nil, err
	}
	if p.request.Services.Touched == nil {
		p.request.Services.Touched = touch.New()
	}
	o := conversation.Options{
		Journal: kept, Spec: p.request.Spec, Services: p.request.Services, Patience: p.request.Patience,
		First: p.request.First,
		Log:   p.env.Log,
	}
	if w := p.witness(kept.ID()); w != nil {
		o.Witness = w
	}
	if p.driver == nil {
		p.native.Kept, p.native.Mode, o.Recorded = kept, cli.ModeOf(o.Spec), true
		o.Mind = minds(p.native, o.Spec)
	} else {
		kept.Mask(redact.Known(redact.Secrets(p.secrets)...).Bytes)
		o.Mind = p.env.lend(p.env.wall(p.env.plain(p.driver)))
	}
	c, err := conversation.Open(ctx, o)
	if err == nil {
		return c, nil
	}
	id := kept.ID()
	_ = kept.Close()
	if fresh && p.keep {
		_ = p.env.Store().Delete(context.WithoutCancel(ctx), id)
	}
	return nil, err
}

// MayWork returns an error for a new conversation whose workspace the walls would refuse, before anything is written in
// the home directory.
func (e Env) MayWork(name string, s agent.Spec) error {
	off, without := e.sandboxFor(s) == string(setting.Off), "--sandbox off runs commands without walls"
	if name != native.Name {
		off = e.Bare || s.Shared.Sandbox.Value == setting.Off && s.Shared.Sandbox.Asked()
		without = "--sandbox off runs the agent without walls"
	}
	if off || s.Resume != "" || s.Terms.Continue {
		return nil
	}
	err := policy.CheckWorkspace(e.Home, s.Dir, s.Terms.Dirs)
	if err == nil {
		return nil
	}
	return fault.Of(err).Also("%s", without)
}

// recordMode records the mode if it has changed. If that fails, it closes the session.
func (p *Plan) recordMode(kept *session.Session) error {
	mode := string(cli.ModeOf(p.request.Spec))
	if kept.State().Mode == mode {
		return nil
	}
	_, err := kept.Append(session.Changed{Mode: mode})
	if err != nil {
		_ = kept.Close()
	}
	return err
}

// resumeMode uses the stricter of the session's mode and the requested one, because only Set may loosen the mode.
func (p *Plan) resumeMode(state session.State) {
	s := &p.request.Spec
	recorded, wanted := setting.Approval(state.Mode), cli.ModeOf(*s)
	if recorded == "" || recorded == wanted || state.Turns == 0 && state.LastTurn == 0 {
		return
	}
	mode := recorded
	if p.request.Mode {
		if mode = setting.Strictest(recorded, wanted); mode == wanted {
			return
		}
		p.env.Log("the session is in mode %s, which stays, because resuming never loosens it. Change the mode in the "+
			"conversation, or begin another", mode)
	}
	s.Terms.Mode = mode
	if slices.Contains(setting.Common(), mode) {
		s.Shared.Approval = setting.AsTyped(mode)
	}
}

// journal opens the session's journal. fresh reports that it is new.
func (p *Plan) journal(ctx context.Context) (kept *session.Session, fresh bool, err error) {
	s := &p.request.Spec
	if p.driver == nil {
		kept, err = native.Keep(ctx, p.native)
		fresh = s.Resume == "" && !s.Terms.Continue || s.Terms.Fork
		if err == nil {
			s.Resume, s.Fresh, s.Terms.Continue, s.Terms.Fork = kept.ID(), "", false, false // done by the journal
		}
		return kept, fresh, err
	}
	store := p.env.Store()
	if s.Terms.Continue {
		if id, err := p.newest(ctx, store); err != nil || id != "" {
			if err != nil {
				return nil, false, err
			}
			s.Resume, s.Terms.Continue = id, false
		}
	}
	if s.Resume == "" {
		kept, err = p.create(ctx, store, s.Fresh, "")
		return kept, true, err
	}
	return p.resume(ctx, store)
}

// newest returns the last used session of this agent in exactly this directory, or "" if we know none; the agent itself
// may know one.
func (p *Plan) newest(ctx context.Context, store session.Store) (string, error) {
	all, _, err := store.List(ctx, session.Filter{Dir: p.request.Spec.Dir})
	if err != nil {
		return "", err
	}
	dir := filepath.Clean(p.request.Spec.Dir)
	for _, s := range all {
		if s.Begin.Agent == p.agent && !s.Begin.Rehearsed && filepath.Clean(s.Begin.Cwd) == dir {
			return s.Begin.ID, nil
		}
	}
	return "", nil
}

// needUUID sets Fresh to a new UUID unless it is one, because agents accept only UUIDs as ids.
func needUUID(s *agent.Spec) {
	if !cli.IsUUID(s.Fresh) || s.Fresh != strings.ToLower(s.Fresh) {
		s.Fresh = ident.UUID()
	}
}

// create begins a session. own is the agent's id of its session, if it already has one.
func (p *Plan) create(ctx context.Context, store session.Store, id, own string) (*session.Session, error) {
	s := &p.request.Spec
	needUUID(s)
	b := session.Begin{
		ID: id, Agent: p.agent, Model: s.Shared.Model.Value, Mode: string(cli.ModeOf(*s)), Cwd: s.Dir,
		Rehearsed: s.Rehearsal != nil,
	}
	kept, err := store.New(ctx, b, p.keep, p.env.Log)
	if err == nil && own != "" {
		if _, err = kept.Append(session.Changed{Session: own}); err != nil {
			_ = kept.Close()
		}
	}
	return kept, err
}

// resume continues a session, named by our id or by the agent's own.
func (p *Plan) resume(ctx context.Context, store session.Store) (*session.Session, bool, error) {
	s := &p.request.Spec
	id, err := p.find(ctx, store, s.Resume)
	if err != nil {
		return nil, false, err
	}
	if id == "" { // the agent may know it
		own := s.Resume
		fresh := s.Fresh
		if session.CheckID(own) == nil && !s.Terms.Fork {
			fresh = own
		}
		kept, err := p.create(ctx, store, fresh, own)
		return kept, true, err
	}
	var kept *session.Session
	if s.Terms.Fork {
		s.Fresh = cmp.Or(s.Fresh, ident.UUID())
		kept, err = store.Fork(ctx, id, s.Fresh)
	} else {
		kept, err = store.Resume(ctx, id)
	}
	if err != nil {
		return nil, false, err
	}
	forked := s.Terms.Fork
	if s.Resume = kept.State().Session; kept.State().Turns == 0 && !p.stores(ctx, s.Resume) {
		s.Resume = ""
	}
	switch {
	case s.Resume == "": // the agent has no session yet
		s.Terms.Fork = false
		needUUID(s)
	case forked:
	case shared(store, kept.State()):
		s.Terms.Fork, s.Fresh = true, ident.UUID()
	default:
		s.Fresh = ""
	}
	return kept, forked, nil
}

// stores reports whether the agent may have stored a session in which no turn has ended. Some agents store a session
// only after the first answer, and refuse to resume it before.
func (p *Plan) stores(ctx context.Context, own string) bool {
	if own == "" || p.driver == nil || p.driver.Describe().Archive == nil {
		return true
	}
	past, err := p.driver.Describe().Archive(p.request.Spec.Env).List(ctx, mostPast)
	is := func(c agent.ArchivedConversation) bool { return c.ID == own }
	return err != nil || len(past) == mostPast || slices.ContainsFunc(past, is)
}

// mostPast is how many of the agent's own sessions are listed.
const mostPast = 500

// shared reports whether a session is a fork without messages: its agent session is still that of the original, and has
// to be forked too.
func shared(store session.Store, state session.State) bool {
	if state.Begin.Forked == nil {
		return false
	}
	original, err := store.Show(state.Begin.Forked.ID)
	if err != nil {
		return false
	}
	defer original.Close()
	return original.State.Session == state.Session
}

// find returns our id of the session with that id, ours or the agent's own, or "". It fails if the session belongs to
// another agent.
func (p *Plan) find(ctx context.Context, store session.Store, name string) (string, error) {
	view, err := store.Show(name)
	switch {
	case err == nil:
		defer view.Close()
		if theirs := view.State.Begin.Agent; theirs != p.agent {
			theirs = cmp.Or(theirs, native.Name)
			return "", fault.New(fault.ArgError, "the session %s belongs to %s, not to %s", name, theirs, p.agent).
				With("session_id", name).
				Hint("resume it with --agent %s", theirs)
		}
		return name, nil
	case !errors.Is(err, fault.NotFoundCode) && !errors.Is(err, fault.ArgError):
		return "", err
	}
	all, _, err := store.List(ctx, session.Filter{})
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if s.Begin.Agent == p.agent && s.Session == name {
			return s.Begin.ID, nil
		}
	}
	return "", nil
}
