package sessions

import (
	"context"
	"os"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/native"
	"omniagent/internal/talk/session"
)

// With --all, session list, session search and usage include the conversations in the archives of installed agents: the
// records that agents themselves keep.

// mostArchived is how many conversations of an archive are read, the newest ones.
const mostArchived = 1000

func allParam() contract.Param {
	return contract.Param{Name: "all", Kind: contract.Bool, Help: "also those that agents keep by themselves"}
}

// resumeWith returns the command that continues a session. Most agents look for a session of their own in its
// directory.
func resumeWith(name, id, dir string) string {
	words := []string{"omniagent", "start"}
	if name != native.Name {
		words = append(words, "--agent", name)
	}
	words = append(words, "--resume", id)
	if dir != "" {
		words = append(words, "--cwd", dir)
	}
	return text.Shell(words...)
}

// archived is a conversation in the archive of an agent.
type archived struct {
	agent.ArchivedConversation
	name    string
	archive agent.Archive
}

func (a archived) row(c *contract.Call) sessionRow {
	r := sessionRow{
		ID: a.ID, Title: a.Title, Agent: a.name, Cwd: a.Dir, Created: a.Created, Updated: a.Updated,
		Age: contract.Ago(c, a.Updated), Bytes: a.Size, Keeper: a.name, Resume: resumeWith(a.name, a.ID, a.Dir),
	}
	if a.Messages >= 0 {
		r.Messages = &a.Messages
	}
	return r
}

// listArchived lists the conversations in the archives of agents. It leaves out those that also have a session here.
func (p commands) listArchived(
	ctx context.Context, c *contract.Call, store session.Store, f session.Filter,
) ([]archived, error) {
	if f.Provider != "" { // an archive does not name providers as we do
		return nil, nil
	}
	ours, _, err := store.List(ctx, session.Filter{})
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range ours {
		known[s.Begin.AgentName()+"\n"+s.Session] = s.Session != ""
	}
	var all []archived
	for _, d := range p.Agents {
		archive := d.Describe().Archive
		if archive == nil || f.Agent != "" && f.Agent != d.Name() {
			continue
		}
		records := archive(os.Environ())
		found, err := records.List(ctx, mostArchived)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			c.Warn("SESSION_UNREADABLE", "the records of %s cannot be read: %v", d.Name(), err)
		}
		for _, past := range found {
			one := archived{past, d.Name(), records}
			if f.Dropped(past.Dir) || known[one.name+"\n"+past.ID] {
				continue
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// searchArchived looks for a text in the archives of agents.
func (p commands) searchArchived(
	ctx context.Context, c *contract.Call, store session.Store, f session.Filter,
) (hits []sessionHit, err error) {
	wanted := strings.ToLower(c.String("text"))
	if strings.TrimSpace(wanted) == "" {
		return nil, fault.New(fault.ArgError, "there is nothing to search for").Hint("give a text")
	}
	all, err := p.listArchived(ctx, c, store, f)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		hit, number := sessionHit{sessionRow: one.row(c)}, int64(0)
		err := one.archive.Read(ctx, one.ArchivedConversation, func(s agent.ArchivedMessage) bool {
			number++
			at := strings.Index(strings.ToLower(s.Text), wanted)
			if at < 0 {
				return true
			}
			if hit.Found++; hit.Found == 1 {
				hit.Record, hit.Snippet = number, session.Snippet(s.Text, at, len(wanted))
				hit.Role = map[bool]string{true: "user", false: "assistant"}[s.User]
			}
			return true
		})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			c.Warn("SESSION_UNREADABLE", "%s of %s cannot be read: %v", one.ID, one.name, err)
		}
		if hit.Found > 0 || strings.Contains(strings.ToLower(one.Title), wanted) {
			hits = append(hits, hit)
		}
	}
	return hits, nil
}
