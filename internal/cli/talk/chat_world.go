package talk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/safety"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/chat"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
	"omniagent/internal/native"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/fsapi"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/policy"
)

// chatWorld connects a chat to this machine: files, commands, sessions, agents and undo.
func (p commands) chatWorld(c *contract.Call, env launch.Env, first launch.Request) chat.World {
	home := c.Host.Home()
	dir := cmp.Or(first.Spec.Dir, c.Dir())
	root, _ := config.ProjectRoot(dir)
	private := policy.Credentials(p.Guarded(c), home)
	w := chat.World{
		Dir: dir, Home: home, From: 1, Rehearses: c.Bool("rehearse"),
		Open: func(ctx context.Context, n chat.Next) (*conversation.Conversation, error) {
			r, err := nextRequest(ctx, c, first, n)
			if err != nil {
				return nil, err
			}
			return env.Open(ctx, r)
		},
		Agents:   func() []chat.Agent { return p.chatAgents(c, dir) },
		Sessions: func(ctx context.Context) ([]chat.Session, error) { return chatSessions(ctx, c, dir) },
		Prompts: func(ctx context.Context) eidolon.Prompts {
			// open it each time, because more may be trusted by now
			return eidolon.ReadPrompts(ctx, home, root, config.OpenTrust(c.TrustFile()).Trusted)
		},
		Shell: func(ctx context.Context, command string) (string, int, error) {
			return chatShell(ctx, env, first.Spec, command)
		},
		Load: func(f eidolon.File) ([]byte, error) {
			if f.Inside == "" {
				return workspace.ReadFile(f.Path, mostPreloaded)
			}
			files, err := workspace.OpenDir(dir)
			if err != nil {
				return nil, err
			}
			defer files.Close()
			return files.ReadFile(f.Inside, mostPreloaded)
		},
		Exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
		List:   listNames,
		Private: func(path string) bool {
			real := pathname.Real(path)
			info, err := os.Stat(real)
			if err == nil && info.Mode().Perm()&0o004 == 0 && !pathname.Within(pathname.Real(dir), real) {
				return true // outside the workspace, and not readable by everybody
			}
			return slices.ContainsFunc(private, func(place string) bool {
				return pathname.Within(place, path) || pathname.Within(pathname.Real(place), real)
			})
		},
		Reminder: func(with *conversation.Conversation, messages int) string {
			if with.Facts().Agent != native.Name || c.Bool("rehearse") {
				return ""
			}
			return eidolon.RemindAt(messages)
		},
	}
	w.Undo, w.Back, w.Undoes = undoInChat(c, dir)
	if in := stores.ForkAround(c); in != nil {
		w.Kept = fmt.Sprintf("What was changed is in the fork: omniagent fork diff %[1]s shows it, "+
			"omniagent fork apply %[1]s keeps it, omniagent fork delete %[1]s --confirm-destructive drops it.", in.Name)
	}
	if !env.Keep || first.Forget {
		return w
	}
	w.Closed = func(ctx context.Context, id string) { forgetEmpty(ctx, c, id) }
	w.Command = func(id string) string {
		if store, err := stores.Sessions(c); err != nil || !store.Has(id) {
			return "" // there is no journal to continue from
		}
		return resumeCommand(c, id)
	}
	if home != "" {
		w.Joined = func(ctx context.Context, with *conversation.Conversation) func() {
			return keepRecord(ctx, home, with, env.Log)
		}
	}
	return w
}

// undoInChat returns the undo function of a chat in a directory, a text that tells a person how to undo, and a function
// that reports whether undo covers a path. All are zero if undo is not possible. In a fork the undo function returns an
// error, and the text says that only the fork has the changes.
func undoInChat(c *contract.Call, dir string) (
	takeBack func(ctx context.Context, id string, turn int64, redo bool) (string, error), how string,
	has func(path string) bool,
) {
	if back := safety.UndoOf(c); back != nil {
		root := ""
		if store, err := stores.Snapshots(c); err == nil {
			root, _ = store.Root(dir) // "" if nothing is covered
		}
		return func(ctx context.Context, id string, turn int64, redo bool) (string, error) {
				return back(ctx, undo.Request{Dir: dir, Session: id, Turn: turn, Redo: redo})
			}, "/undo takes it back",
			func(path string) bool { return root != "" && pathname.Within(root, pathname.Real(path)) }
	}
	in := stores.ForkAround(c)
	if in == nil {
		return nil, "", nil
	}
	return func(context.Context, string, int64, bool) (string, error) {
		_, err := stores.Snapshots(c)
		return "", err
	}, "only the fork has it: omniagent fork apply " + in.Name + " brings it home", in.Covers
}

// resumeCommand returns the command that continues a conversation. For one in a fork, it continues inside the fork.
func resumeCommand(c *contract.Call, id string) string {
	resume := "omniagent chat --resume " + text.Shell(id)
	in := stores.ForkAround(c)
	if in == nil {
		return resume
	}
	return parts.InFork(in.Name, networkOfFork(c), resume)
}

// forgetEmpty deletes a conversation in which nobody said anything.
func forgetEmpty(ctx context.Context, c *contract.Call, id string) {
	store, err := stores.Sessions(c)
	if err != nil {
		return
	}
	if info, err := store.Info(id); err == nil && info.Messages == 0 {
		_ = store.Delete(ctx, id)
	}
}

// listNames calls take with the names in a directory, in batches. Names of directories end with a slash.
func listNames(ctx context.Context, dir string, take func([]string)) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer func() { _ = d.Close() }() // it was only read
	for ctx.Err() == nil {
		entries, err := d.ReadDir(512)
		var names []string
		for _, e := range entries {
			name := e.Name()
			if e.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
		if take(names); err != nil {
			return
		}
	}
}

// mostPreloaded limits the size of a file that is sent with a message.
const mostPreloaded = 8 << 20

// nextRequest returns the request for another conversation of the same chat. Provider, address and model of the first
// request apply only to its agent. The mode applies to all agents.
func nextRequest(ctx context.Context, c *contract.Call, first launch.Request, n chat.Next) (launch.Request, error) {
	r := first
	r.First, r.History, r.Rejoin = nil, "", false
	r.Spec.Fresh, r.Spec.Resume, r.Spec.Terms.Continue, r.Spec.Terms.Fork = "", n.Session, false, false
	other := n.Agent != "" && n.Agent != cmp.Or(first.Agent, native.Name)
	switch {
	case !c.Bool("rehearse"):
	case n.Session != "":
		return r, fault.New(fault.ArgError, "a rehearsal cannot continue a saved conversation")
	case other:
		return r, fault.New(fault.ArgError, "a rehearsal stays with its agent, %s", first.Agent).
			Hint("omniagent chat --rehearse --agent %s rehearses with the other", n.Agent)
	}
	if n.Session != "" {
		store, err := stores.Sessions(c)
		if err != nil {
			return r, err
		}
		view, err := store.Show(n.Session)
		if err != nil {
			return r, err
		}
		n.Agent = cmp.Or(view.State.Begin.Agent, native.Name)
		other = true
		view.Close()
	}
	if other {
		r.Agent = n.Agent
		r.Provider, r.Base = "", ""
		r.Spec.Shared.Model.Value, r.Spec.Shared.Model.Origin = "", 0
	}
	// a stricter mode is kept, but only a person may choose a looser one
	began := cli.ModeOf(first.Spec)
	if mode := setting.Strictest(began, n.Mode); n.Session == "" && mode != began {
		r.Mode, r.Spec.Terms.Mode = true, mode
		if slices.Contains(setting.Common(), mode) {
			r.Spec.Shared.Approval = setting.AsTyped(mode)
		}
	}
	if n.Model != "" {
		r.Spec.Shared.Model = setting.AsTyped(n.Model)
	}
	r.Like = n.Like
	return r, ctx.Err()
}

// keepRecord writes the record of a conversation below ~/.eidolon until its events end. wait waits for that, for a
// limited time.
func keepRecord(
	ctx context.Context, home string, with *conversation.Conversation, log func(string, ...any),
) (wait func()) {
	facts := with.Facts()
	kind := "openai"
	switch {
	case facts.Agent != native.Name:
		kind = facts.Agent
	case facts.Provider == "anthropic":
		kind = facts.Provider
	}
	record, err := eidolon.OpenRecord(eidolon.ConversationDir(home, facts.Dir, with.ID()), kind)
	if err != nil {
		log("the record beneath ~/.eidolon cannot be written: %v", err)
		return nil
	}
	record.Begin(facts, with.Instructions())
	events, done := with.Events(record.Seq()+1), make(chan struct{})
	go func() {
		defer close(done)
		defer record.Close()
		defer events.Close()
		for {
			entry, err := events.Record(ctx)
			if err == nil {
				err = record.Add(entry)
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && ctx.Err() == nil {
					log("the record beneath ~/.eidolon cannot be written: %v", err)
				}
				return
			}
		}
	}()
	return func() {
		select {
		case <-done:
		case <-time.After(5 * time.Second): // nothing is lost: the journal is complete
		}
	}
}

func (p commands) chatAgents(c *contract.Call, dir string) []chat.Agent {
	var all []chat.Agent
	known, _ := parts.KnownAgents(c, p.Agents) // after an error, the list is empty
	for _, k := range known {
		_, err := k.Locate(agent.Env{Lookup: c.Host.Lookup, Dir: dir})
		all = append(all, chat.Agent{Name: k.Name(), Title: k.Describe().Title, Installed: err == nil})
	}
	return all
}

func chatSessions(ctx context.Context, c *contract.Call, dir string) ([]chat.Session, error) {
	store, err := stores.Sessions(c)
	if err != nil {
		return nil, err
	}
	infos, _, err := store.List(ctx, session.Filter{Dir: dir})
	if err != nil {
		return nil, err
	}
	var all []chat.Session
	for _, i := range infos {
		if filepath.Clean(i.Begin.Cwd) == filepath.Clean(dir) && i.Messages > 0 {
			all = append(all, chat.Session{
				ID: i.Begin.ID, Agent: i.Begin.AgentName(), Title: i.Title,
				When: text.Age(time.Since(i.Updated)) + " ago",
			})
		}
	}
	return all, nil
}

// chatShell runs a command that the person typed, behind walls as a command of the native agent.
func chatShell(ctx context.Context, env launch.Env, s agent.Spec, line string) (string, int, error) {
	bench, leave, err := env.Bench(s)
	if err != nil {
		return "", 0, err
	}
	defer leave()
	out, err := bench.FS().RunCommand(ctx, fsapi.Command{Line: line})
	if err != nil {
		return "", 0, err
	}
	var parts []string
	for _, part := range []string{out.Stdout, out.Stderr, out.Ended} {
		if part = strings.Trim(part, "\n"); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n"), out.ExitCode, nil
}
