package undo

import (
	"errors"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
)

// find returns the turn that a request names. It writes nothing, not even a lock.
func find(places []*place, q Request) (f found, err error) {
	for _, p := range places {
		j, interrupted, err := p.interrupted()
		if err != nil {
			return f, err
		}
		if interrupted {
			f.place, f.journal = p, &j
			if f.turn, err = p.read(j.Of); err != nil && !q.DryRun {
				err = nil // resume reports it
			}
			return f, err
		}
	}
	err = nothing(q, places[0].root)
	for _, p := range places {
		records, failed := p.list()
		if failed != nil {
			return f, failed
		}
		died := map[string]bool{}
		for i, r := range records {
			if !underWay(r) {
				continue
			}
			if !p.died(r) {
				f.busy = p
				return f, p.busy(r)
			}
			records[i].Ended, records[i].Abandoned, died[r.ID] = time.Now().UTC(), true, true
		}
		if other, r := p.neighbour(); other != nil {
			f.busy = other
			return f, other.busy(r)
		}
		r, failed := choose(records, q, places[0].root)
		switch {
		case errors.Is(failed, fault.NotFoundCode):
		case r.ID == "" && failed != nil:
			return f, failed
		case f.place == nil || r.ID > f.turn.ID:
			f.place, f.turn, f.died, err = p, r, died[r.ID], failed
		}
	}
	return f, err
}

// choose returns the record that a request names. If a record caused the error, it returns that too.
func choose(records []Record, q Request, root string) (Record, error) {
	fits := slices.DeleteFunc(slices.Clone(records), func(r Record) bool {
		return !q.Fits(r) || r.Ended.IsZero()
	})
	if q.ID != "" {
		return named(fits, q, root)
	}
	for _, r := range fits {
		wanted := r.Kind == OfTurn
		if q.Redo {
			wanted = r.Kind == OfUndo
		}
		switch {
		case !wanted || r.UndoneBy != "":
		case r.Damaged:
			return r, damagedTurn(r.ID, errors.New("its record cannot be read"))
		case r.Abandoned && !q.TakeOld:
			return r, fault.New(fault.Conflicting,
				"the agent's process died during turn %s, so others may have changed a part of what differs", r.ID).
				Hint("omniagent undo %s --dry-run shows what would be taken back and what kept; without --dry-run "+
					"that is done", r.ID)
		default:
			return r, nil
		}
	}
	if q.Run != "" && !q.Redo && (q.TakeOld || q.TakeAll) { // what an undo of the run has kept
		for _, r := range fits {
			if r.Kind == OfTurn {
				return r, nil
			}
		}
	}
	return Record{}, nothing(q, root)
}

// named returns the record with the ID of a request, or the only one whose ID begins with it.
func named(fits []Record, q Request, root string) (r Record, err error) {
	r, err = ByName(fits, q.ID)
	switch {
	case errors.Is(err, fault.NotFoundCode):
		return r, nothing(q, root)
	case err != nil:
	case r.Damaged:
		return r, damagedTurn(r.ID, errors.New("its record cannot be read"))
	case r.UndoneBy != "" && !q.TakeOld && !q.TakeAll: // with these, what was kept is restored
		return r, fault.New(fault.Conflicting, "%s is taken back already", r.ID).With("by", r.UndoneBy).
			Hint("omniagent undo %s takes that back; omniagent undo %s --take-old restores what it kept",
				r.UndoneBy, r.ID)
	}
	return r, err
}

// ByName returns the record with an ID, or the only one whose ID begins with it. It fails if there is none or several.
func ByName(records []Record, id string) (Record, error) {
	var ids []string
	var found Record
	for _, r := range records {
		if r.ID == id {
			return r, nil
		}
		if strings.HasPrefix(r.ID, id) {
			ids, found = append(ids, r.ID), r
		}
	}
	switch n := len(ids); n {
	case 0:
		return Record{}, fault.New(fault.NotFoundCode, "there is no turn %s", id).Hint("omniagent snapshots list")
	case 1:
		return found, nil
	default:
		ids = ids[:min(n, 5)]
		return Record{}, fault.New(fault.Conflicting, "%d turns begin with %s: %s", n, id, strings.Join(ids, ", ")).
			With("turns", ids).Hint("omniagent snapshots list")
	}
}

// nothing returns the error for a request that fits no record.
func nothing(q Request, root string) error {
	what := "turn to take back"
	if q.Redo {
		what = "undo to take back"
	}
	switch {
	case q.ID != "":
		what += " whose name begins with " + q.ID
	case q.Session != "":
		what += " of session " + q.Session
	case q.Run != "":
		what += " of run " + q.Run
	}
	f := fault.New(fault.NotFoundCode, "there is no %s in %s", what, root)
	if q.Run != "" && q.ID == "" && q.Session == "" {
		return f.Hint("omniagent runs show %s names its directory; then: omniagent undo --run %s --cwd DIR", q.Run,
			q.Run)
	}
	return f.Hint("omniagent undo --list")
}
