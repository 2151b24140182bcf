package sessions

import (
	"context"
	"slices"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/talk/session"
)

// keeper is what the member keeper of a row says for our own sessions.
const keeper = "omniagent"

// sessionRow is a conversation as the commands of session print it.
type sessionRow struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Agent    string    `json:"agent"`
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	Cwd      string    `json:"cwd"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Age      string    `json:"age" doc:"since it was used last"`
	Messages *int      `json:"messages" doc:"null: not counted"`
	Turns    int       `json:"turns"`
	CostUSD  *float64  `json:"cost_usd" doc:"null: unknown"`
	Bytes    int64     `json:"bytes"`
	Keeper   string    `json:"keeper" doc:"omniagent, or the agent in whose own records it is"`
	Resume   string    `json:"resume" doc:"the command that continues it; empty: nothing does, because a script answered in it"`
}

// sessionRows returns the function that makes a session's row. A session that began in a fork is resumed there, if the
// fork still exists.
func sessionRows(c *contract.Call) func(i session.Info) sessionRow {
	forks := map[string]string{}
	if c.Paths.State != "" {
		all, _ := stores.ForksIn(c.Paths, c.Host.Lookup).List()
		for _, f := range all {
			forks[f.ID] = f.Name
		}
	}
	return func(i session.Info) sessionRow {
		row := sessionRowOf(c, i)
		if name, there := forks[i.Begin.InFork]; there && row.Resume != "" {
			row.Resume = parts.InFork(name, parts.Internet, row.Resume)
		}
		return row
	}
}

func sessionRowOf(c *contract.Call, i session.Info) sessionRow {
	resume := resumeWith(i.Begin.AgentName(), i.Begin.ID, i.Begin.Cwd)
	if i.Begin.Rehearsed {
		resume = ""
	}
	return sessionRow{
		i.Begin.ID, i.Title, i.Begin.AgentName(), i.Provider, i.Model, i.Begin.Cwd, i.Begin.Created, i.Updated,
		contract.Ago(c, i.Updated), &i.Messages, i.Turns,
		costOf(i.Total), i.Size, keeper, resume,
	}
}

// costOf returns what a session has cost, or nil if it used tokens whose price is not known.
func costOf(t session.Total) *float64 {
	if t.Cost == 0 && t.Usage.Context()+t.Usage.Output > 0 {
		return nil
	}
	return &t.Cost
}

type sessionsData struct {
	Sessions contract.Rows[contract.Foreign[sessionRow]] `json:"sessions"`
}

// sessionCommand adds the declarations that the commands of this package share.
func sessionCommand(c contract.Command) *contract.Command {
	return contract.StoreCommand(c, "no home, or a damaged file", "no such session")
}

func sessionParam() contract.Param {
	return contract.Param{
		Name: "id", Kind: contract.ID, Position: 1, Required: true, MaxLen: 128, Stdin: true, Help: "the session",
	}
}

func providerParam() contract.Param {
	return contract.Param{Name: "provider", Kind: contract.ID, Help: "only of this one"}
}

func agentParam() contract.Param {
	return contract.Param{Name: "agent", Kind: contract.ID, Help: "only of this agent"}
}

func sessionFilter(c *contract.Call) session.Filter {
	f := session.Filter{Provider: c.String("provider"), Agent: c.String("agent")}
	if c.Bool("here") {
		f.Dir = c.Dir()
	}
	return f
}

// warnSkipped warns of files that do not hold a session.
func warnSkipped(c *contract.Call, skipped []error) {
	for _, err := range skipped {
		c.Warn("SESSION_UNREADABLE", "%v", err)
	}
}

func (p commands) sessionList() *contract.Command {
	return sessionCommand(contract.Command{
		Path: "session list", Summary: "list the conversations of all agents, the newest first", Danger: contract.Safe,
		Output: contract.TypeOf[sessionsData](), Volatile: []string{"sessions"},
		List: &contract.List{Key: "sessions", ID: "id", Order: "given", Columns: []string{
			"id", "agent", "age", "cwd",
			"title",
		}},
		Detail: "With --all, also those that installed agents keep by themselves, such as conversations begun in " +
			"their own terminals. Their records are only read. A rehearsal is kept for a run alone.",
		Params: []contract.Param{agentParam(), providerParam(), flags.Here(), allParam()},
		Exits:  []contract.Exit{{Code: contract.Success, When: "they are listed"}},
		Examples: []contract.Example{
			{Description: "Those of this project", Command: "omniagent session list --here"},
			{Description: "Those with one agent", Command: "omniagent session list --agent claude"},
			{Description: "Also those that agents keep by themselves", Command: "omniagent session list --all"},
		},
		Run: contract.WithStore(stores.Sessions, func(
			ctx context.Context, c *contract.Call, store session.Store,
		) (contract.Result, error) {
			filter := sessionFilter(c)
			page, skipped, err := store.List(ctx, filter)
			if err != nil {
				return contract.Result{}, err
			}
			warnSkipped(c, skipped)
			var all []sessionRow
			row := sessionRows(c)
			for _, i := range page {
				all = append(all, row(i))
			}
			if c.Bool("all") {
				theirs, err := p.listArchived(ctx, c, store, filter)
				if err != nil {
					return contract.Result{}, err
				}
				for _, one := range theirs {
					all = append(all, one.row(c))
				}
				slices.SortStableFunc(all, func(a, b sessionRow) int { return b.Updated.Compare(a.Updated) })
			}
			return contract.Result{Data: sessionsData{contract.ForeignRows(all)}}, nil
		}),
	})
}
