package sandbox

import (
	"sync"

	"omniagent/internal/fault"
	"omniagent/internal/process"
)

// Walls stand around commands. Their methods may be called at the same time.
type Walls struct {
	policy Policy
	claim  Claim
	system wallsOf // what it takes on this system

	mu     sync.Mutex
	closed bool
}

// Claim is what walls hold, and by name what they do not.
type Claim struct {
	Tier    Tier     `json:"tier"`
	Name    string   `json:"name"`    // of the tier
	Network string   `json:"network"` // "off", "on" or "hosts"
	Holes   []string `json:"holes"`   // each a phrase
}

// Open builds the walls of the report's tier, or of a weaker one that is asked for, and tries them: it fails when one
// attempt to get through is not refused. What the program that runs is a part of has to ask IsStage.
func Open(p Policy, r Report, o Options) (*Walls, error) {
	tier := r.Tier
	if o.Tier != None {
		tier = o.Tier
	}
	if tier == None || r.Tier == None || tier < r.Tier {
		return nil, noWalls(r)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	w := &Walls{policy: p, claim: Claim{Tier: tier, Name: tier.String(), Network: p.Network.name()}}
	if err := w.open(r, o); err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

// noWalls names what is missing.
func noWalls(r Report) error {
	f := fault.New(fault.Down, "no walls can be built around commands here").With("system", r.OS)
	for _, fact := range r.Facts {
		if fact.OK {
			continue
		}
		f = fault.New(fault.Down, "no walls can be built around commands here: %s: %s", fact.Name,
			fact.Detail).With("system", r.OS).With("missing", fact.Name)
		if fact.Fix != "" {
			return f.Hint("What would make it so: %s.", fact.Fix)
		}
		break
	}
	return f.Hint("Run: omniagent doctor")
}

// Claim is what these walls hold.
func (w *Walls) Claim() Claim { return w.claim }

// Plan puts the walls around a program. A plan that was made has to be started: what was prepared for it is given back
// when it has ended.
func (w *Walls) Plan(p process.Plan) (process.Plan, error) {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return process.Plan{}, fault.New(fault.Interrupted, "the walls are closed: no command is started any more")
	}
	return w.plan(p)
}

// Close gives back everything. Commands that still run keep their walls, as far as these do not stand on names that
// were made for them.
func (w *Walls) Close() error {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	w.mu.Unlock()
	if again {
		return nil
	}
	return w.release()
}
