package run

import (
	"context"

	"omniagent/internal/core/event"
	"omniagent/internal/repo/claim"
	"omniagent/internal/sys/touch"
	"omniagent/internal/talk/session"
)

// recall attributes changes to the run by the calls in the journals of its sessions, because the process that watched
// the agent's writes has died.
func (r *Run) recall(ctx context.Context) {
	log := touch.New()
	log.Unseen(touch.ReasonUnwatched)
	r.sight.log, r.sight.seen = log, log.Open()
	for _, a := range r.Attempts {
		if a.Session == "" {
			continue
		}
		records, err := r.store.Sessions.Reader(a.Session, a.First+1, false)
		if err != nil {
			continue // its changes stay unexplained
		}
		open, asked := map[string]event.FinishedCall{}, map[string]string{}
		for {
			entry, err := records.Next(ctx)
			if err != nil || a.Last > 0 && entry.Number > a.Last {
				break
			}
			logged, is := entry.Record.(session.Logged)
			if !is {
				continue
			}
			switch e := logged.Event; {
			case e.Kind == event.ToolCall && e.Call != nil:
				open[e.Call.ID] = event.FinishedCall{Call: *e.Call, Began: entry.Time}
			case e.Kind == event.Question && e.Ask != nil && e.Ask.Tool != nil:
				asked[e.Ask.ID] = e.Ask.Tool.ID
			case e.Kind == event.Replied && e.Reply != nil:
				if c, is := open[asked[e.Reply.Question]]; is { // the call began with the answer
					c.Began = entry.Time
					open[c.ID] = c
				}
			case e.Kind == event.Denied && e.Denial != nil:
				delete(open, e.Denial.CallID)
			case e.Kind == event.ToolResult && e.Result != nil:
				if c, is := open[e.Result.ID]; is {
					c.Ended = entry.Time
					for _, made := range claim.ChangesOf(c, e.Result, r.Dir) {
						log.Claim(made)
					}
				}
			}
		}
		_ = records.Close()
	}
}
