package sandbox

import (
	"context"
	"sync"
	"sync/atomic"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// Walls is a sandbox for commands. Its methods may be called from several goroutines.
type Walls struct {
	policy Policy
	tier   Tier
	holes  []string // what these walls do not stop, each a phrase
	system wallsOf  // the part for this system
	seen   Watcher  // nil: nobody wants to know what is written

	refused func(path string) // see Options

	building sync.RWMutex // locked while they are built or released
	planned  atomic.Bool  // they are built before the first command, see Options.Later
	closed   bool         // under building

	over context.Context // ends when Close begins
	end  context.CancelFunc
}

// Open builds a sandbox of the report's tier, or of a weaker one if Options say so, and tries to break out of it: it
// fails if one attempt succeeds. The running program has to call IsStage.
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
	w := &Walls{
		policy: p, tier: tier, refused: o.Refused, seen: o.Watcher,
	}
	w.over, w.end = context.WithCancel(context.Background())
	if err := w.open(r, o); err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

// noWalls is the error that says what is missing.
func noWalls(r Report) error {
	f := fault.New(fault.ServiceDown, "no walls can be built around commands here").With("system", r.OS)
	for _, fact := range r.Facts {
		if fact.OK {
			continue
		}
		f = fault.New(fault.ServiceDown, "no walls can be built around commands here: %s: %s", fact.Name, fact.Detail).
			With("system", r.OS).With("missing", fact.Name)
		if fact.Fix != "" {
			return f.Hint("What would make it so: %s.", fact.Fix)
		}
		break
	}
	return f.Hint("Run: omniagent doctor")
}

// Tier returns how these walls are built.
func (w *Walls) Tier() Tier { return w.tier }

// Enforced returns what these walls enforce. For a list of hosts the network is "hosts".
func (w *Walls) Enforced() event.Walls {
	return event.Walls{
		Name: w.tier.String(), Network: w.policy.Network.name(), Holes: w.holes, Planned: w.planned.Load(),
	}
}

// Plan returns the plan to run a program in the sandbox. It has to be started, because what was prepared for it is
// released when it ends.
func (w *Walls) Plan(p process.Plan) (process.Plan, error) { return w.start(p, w.policy.Network) }

// PlanOpen is Plan with all of the network, which a person has opened for this program.
func (w *Walls) PlanOpen(p process.Plan) (process.Plan, error) {
	return w.start(p, Network{Open: true})
}

func (w *Walls) start(p process.Plan, network Network) (process.Plan, error) {
	if _, err := w.Stand(context.Background()); err != nil {
		return process.Plan{}, err
	}
	w.building.RLock()
	defer w.building.RUnlock()
	if w.closed {
		return process.Plan{}, areClosed()
	}
	if w.tier == Seatbelt && w.seen != nil {
		w.seen.Unseen(unseenReason)
	}
	return w.plan(p, network)
}

// Stand builds walls that are only planned, and reports whether it did. Plan does that too; Stand also ends with ctx.
// Until it succeeds, no command is started.
func (w *Walls) Stand(ctx context.Context) (built bool, err error) {
	if !w.planned.Load() {
		return false, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.over, func() { cancel(areClosed()) })()
	w.building.Lock()
	defer w.building.Unlock()
	switch {
	case w.closed:
		return false, areClosed()
	case !w.planned.Load(): // another call has built them
		return false, nil
	}
	if err := w.stand(ctx); err != nil {
		return false, err
	}
	w.planned.Store(false)
	return true, nil
}

func areClosed() error {
	return fault.New(fault.Interrupted, "the walls are closed: no command is started any more")
}

// Close releases everything. Commands that still run stay in the sandbox. Walls that are being built are given up.
func (w *Walls) Close() error {
	w.end()
	w.building.Lock()
	defer w.building.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	return w.release()
}
