package run

import (
	"context"

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
		r.store.Sessions.Claims(ctx, a.Session, r.Dir, log, a.First+1, func(e session.Entry) bool {
			return a.Last <= 0 || e.Number <= a.Last
		})
	}
}
