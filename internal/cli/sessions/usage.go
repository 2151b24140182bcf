package sessions

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/talk/session"
	"omniagent/internal/work/run"
)

type usageRow struct {
	ID        string   `json:"id" doc:"what the row is about: day/agent/model"`
	Day       string   `json:"day" doc:"in the time zone here; empty: all days"`
	Agent     string   `json:"agent" doc:"empty: all agents"`
	Model     string   `json:"model" doc:"empty: all models, or it is not known"`
	Turns     int      `json:"turns"`
	Input     *int64   `json:"input_tokens" doc:"cached ones too; null: unknown"`
	Cached    *int64   `json:"cached" doc:"null: unknown"`
	Output    *int64   `json:"output_tokens" doc:"null: unknown"`
	Cost      *float64 `json:"cost_usd" doc:"of the turns whose cost is known; null: unknown"`
	Unknown   int      `json:"unknown_turns" doc:"turns whose tokens nobody told; they are in no sum"`
	Unpriced  int      `json:"unpriced" doc:"turns whose cost nobody told"`
	Estimated int      `json:"estimated" doc:"turns whose tokens were counted here, since nobody told them"`
	Elsewhere int      `json:"elsewhere" doc:"--all: conversations that only the agent keeps; their use is unknown"`
}

type usageData struct {
	Usage contract.Rows[usageRow] `json:"usage"`
	Total usageRow                `json:"total"`
}

// usage declares the command that adds up what agents used.
func (p commands) usage() *contract.Command {
	return sessionCommand(contract.Command{
		Path: "usage", Summary: "show tokens and cost by day, agent and model", Danger: contract.Safe,
		Detail: "Sums over the conversations and runs that are kept here, as the agents told them turn by turn. What " +
			"an agent does not tell is unknown, and no sum guesses it. Rehearsals are not in them.",
		Output: contract.TypeOf[usageData](), Volatile: []string{"usage", "total"},
		List: &contract.List{
			Key: "usage", ID: "id", Order: "given", Limit: 200, Columns: []string{
				"day", "agent", "model", "turns", "input_tokens", "output_tokens", "cost_usd", "unknown_turns",
			},
			Null: "unknown",
		},
		Params: []contract.Param{
			{
				Name: "by", Kind: contract.Enum, Enum: []string{"all", "day", "agent", "model"}, Default: "all",
				Help: "what a row is for; all: all three",
			},
			{
				Name: "since", Kind: contract.Text, MaxLen: 40, Help: "a time, or a span such as 30d",
			},
			agentParam(), flags.Here(), allParam(),
		},
		Exits: []contract.Exit{{Code: contract.Success, When: "shown"}},
		Examples: []contract.Example{
			{Description: "Everything that is known", Command: "omniagent usage"},
			{Description: "The last week by day", Command: "omniagent usage --by day --since 7d"},
		},
		Validate: flags.CheckSince("7d"),
		Run:      contract.WithStore(stores.Sessions, p.runUsage),
	})
}

func (p commands) runUsage(ctx context.Context, c *contract.Call, store session.Store) (contract.Result, error) {
	from, _ := flags.ParseSince(c.String("since"))
	sums := usageSums{by: c.String("by"), from: from, rows: map[string]*usageRow{}}
	filter := sessionFilter(c)
	sessions, skipped, err := store.List(ctx, filter)
	if err != nil {
		return contract.Result{}, err
	}
	warnSkipped(c, skipped)
	kept := map[string]bool{}
	for _, info := range sessions {
		if kept[info.Begin.ID] = true; info.Begin.Rehearsed {
			continue
		}
		if err := sums.session(ctx, store, info); ctx.Err() != nil {
			return contract.Result{}, context.Cause(ctx)
		} else if err != nil {
			c.Warn("SESSION_UNREADABLE", "%s: %v", info.Begin.ID, err)
		}
	}
	runs, err := stores.Runs(c)
	if err != nil {
		return contract.Result{}, err
	}
	all, _, err := runs.List(ctx)
	if err != nil {
		return contract.Result{}, err
	}
	for _, r := range all {
		if !filter.Dropped(r.Dir) {
			sums.run(r, kept, filter.Agent)
		}
	}
	if c.Bool("all") {
		theirs, err := p.listArchived(ctx, c, store, filter)
		if err != nil {
			return contract.Result{}, err
		}
		for _, one := range theirs {
			if !one.Updated.Before(from) {
				sums.row(one.Updated, one.name, "").Elsewhere++
			}
		}
	}
	rows, total := sums.sorted()
	return contract.Result{Data: usageData{contract.RowsOf(rows), total}}, nil
}

// usageSums adds up turns.
type usageSums struct {
	by   string
	from time.Time
	rows map[string]*usageRow
}

// row returns the row that a turn is added to.
func (u *usageSums) row(at time.Time, agent, model string) *usageRow {
	r := usageRow{Day: at.Local().Format(time.DateOnly), Agent: agent, Model: model}
	switch u.by {
	case "day":
		r.Agent, r.Model = "", ""
	case "agent":
		r.Day, r.Model = "", ""
	case "model":
		r.Day, r.Agent = "", ""
	}
	r.ID = strings.Join([]string{r.Day, r.Agent, r.Model}, "/")
	if u.rows[r.ID] == nil {
		u.rows[r.ID] = &r
	}
	return u.rows[r.ID]
}

// add adds a turn. used is nil if the agent did not report its use.
func (u *usageSums) add(at time.Time, agent, model string, used *event.Usage) {
	if at.Before(u.from) {
		return
	}
	r := u.row(at, agent, model)
	if r.Turns++; used == nil {
		r.Unknown, r.Unpriced = r.Unknown+1, r.Unpriced+1
		return
	}
	r.Input, r.Cached, r.Output = plus(r.Input, &used.Input), plus(r.Cached, &used.Cached), plus(r.Output, &used.Output)
	if r.Cost = plus(r.Cost, used.CostUSD); used.CostUSD == nil {
		r.Unpriced++
	}
	if used.Estimated {
		r.Estimated++
	}
}

// plus adds two numbers of which either may be unknown. It is nil only if both are.
func plus[N int64 | float64](sum, more *N) *N {
	if more == nil {
		return sum
	}
	n := *more
	if sum != nil {
		n += *sum
	}
	return &n
}

// session adds the turns of a journal. The turns that a fork copied count for the session they were copied from.
func (u *usageSums) session(ctx context.Context, store session.Store, info session.Info) error {
	reader, err := store.Reader(info.Begin.ID, 1, false)
	if err != nil {
		return err
	}
	defer reader.Close()
	agent, asked := info.Begin.AgentName(), info.Begin.Model
	var open *event.Usage // of the turn that has not ended yet
	var at time.Time
	begun := map[int64]bool{} // turns that an agent took up, unlike messages that were dropped
	for {
		e, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		copied := info.Begin.Forked != nil && e.Time.Before(info.Begin.Created)
		switch r := e.Record.(type) {
		case session.Adopted:
			asked = cmp.Or(r.Model, asked)
		case session.Changed:
			asked = cmp.Or(r.Model, asked)
		case session.Logged:
			if r.Event.Kind == event.Started && r.Event.Parent == "" {
				asked = cmp.Or(r.Event.Model, asked)
			}
			if r.Event.Kind == event.TurnBegan {
				begun[r.Event.Turn] = true
			}
		case session.Message:
			if r.Usage != nil && !copied {
				if open == nil {
					open = &event.Usage{}
				}
				open.Add(modelUsage(*r.Usage, r.Cost))
				at = e.Time
			}
		case session.End:
			open = nil
			if used := r.Ended().Usage; !copied && (used != nil || r.Event == nil || begun[r.Event.Turn]) {
				u.add(e.Time, agent, asked, used)
			}
		}
	}
	if open != nil {
		u.add(at, agent, asked, open)
	}
	return nil
}

// modelUsage returns the usage that a model API reported in the form in which agents report it. A cost of zero is taken
// for unknown.
func modelUsage(u model.Usage, cost float64) event.Usage {
	out := event.Usage{
		Input: u.Input + u.CacheRead + u.CacheWrite, Output: u.Output, Cached: u.CacheRead, Estimated: u.Estimated,
	}
	if cost > 0 {
		out.CostUSD = &cost
	}
	return out
}

// run adds a run whose conversations are all deleted; those that are kept count as sessions.
func (u *usageSums) run(r run.Record, kept map[string]bool, only string) {
	if r.Result == nil || len(r.Attempts) == 0 || r.Rehearse {
		return
	}
	last, sent := r.Attempts[len(r.Attempts)-1], false
	for _, a := range r.Attempts {
		if kept[a.Session] {
			return
		}
		sent = sent || a.Turn > 0
	}
	if !sent { // no agent got the task
		return
	}
	if only != "" && last.Agent != only {
		return
	}
	var used *event.Usage
	if u := r.Result.Usage; u != nil {
		used = &event.Usage{Input: u.Input, Output: u.Output, CostUSD: u.CostUSD}
	}
	u.add(r.Created, last.Agent, r.Model, used)
}

// sorted returns the rows, the newest day first and within it the most tokens first, and their sum.
func (u *usageSums) sorted() (rows []usageRow, total usageRow) {
	total.ID = "total"
	exact := func(usd *float64) *float64 { // without the noise of sums of binary fractions
		if usd != nil {
			usd = new(math.Round(*usd*1e9) / 1e9)
		}
		return usd
	}
	for _, r := range u.rows {
		r.Cost = exact(r.Cost)
		rows = append(rows, *r)
		total.Turns, total.Unknown, total.Unpriced = total.Turns+r.Turns, total.Unknown+r.Unknown, total.Unpriced+
			r.Unpriced
		total.Estimated, total.Elsewhere = total.Estimated+r.Estimated, total.Elsewhere+r.Elsewhere
		total.Input, total.Cached = plus(total.Input, r.Input), plus(total.Cached, r.Cached)
		total.Output, total.Cost = plus(total.Output, r.Output), plus(total.Cost, r.Cost)
	}
	total.Cost = exact(total.Cost)
	value := func(n *int64) int64 { return *cmp.Or(n, new(int64)) }
	slices.SortFunc(rows, func(a, b usageRow) int {
		return cmp.Or(strings.Compare(b.Day, a.Day), cmp.Compare(value(b.Input)+value(b.Output),
			value(a.Input)+value(a.Output)), strings.Compare(a.ID, b.ID))
	})
	return rows, total
}
