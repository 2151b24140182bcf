package session

import (
	"context"

	"omniagent/internal/core/event"
	"omniagent/internal/repo/claim"
	"omniagent/internal/sys/touch"
)

// Claims passes to a log what the recorded calls of a session say that they changed, where nobody saw the agent
// write. dir is the directory in which the agent worked. Records before number first, and those for which counts is
// false, do not count. A session that cannot be read claims nothing.
func (s Store) Claims(ctx context.Context, id, dir string, log *touch.Log, first int64, counts func(Entry) bool) {
	records, err := s.Reader(id, first, false)
	if err != nil {
		return
	}
	defer records.Close() //nolint:errcheck // it was only read
	open, asked := map[string]event.FinishedCall{}, map[string]string{}
	for {
		entry, err := records.Next(ctx)
		if err != nil {
			return
		}
		logged, is := entry.Record.(Logged)
		if !is || !counts(entry) {
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
				for _, made := range claim.ChangesOf(c, e.Result, dir) {
					log.Claim(made)
				}
			}
		}
	}
}
