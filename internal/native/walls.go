package native

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/touch"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
	"omniagent/internal/walls/shell"
)

// enclose builds the walls around commands. On a machine without walls, the conversation reports that and continues,
// and every command needs approval. If only this workspace prevents walls, enclose returns an error: the content of a
// workspace must not decide whether commands run behind walls.
func (m *Mind) enclose(o *Options, private string) (shell.Starter, error) {
	o.stricter(o.Kept.State().Confinement)
	if o.Sandbox == string(setting.Off) {
		return o.unwatched(), nil
	}
	temp := filepath.Join(private, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return nil, fault.New(fault.PermissionDenied, "cannot create a temporary directory").Because(err)
	}
	tell := policy.OncePerHost(func(host, why string) { o.Log("a command was kept from %s: %s", host, why) })
	hide := privateDirIn(append([]string{o.Dir}, o.Terms.Dirs...), private)
	w := o.Walls
	w.Root, w.Roots, w.Temp, w.Watcher = o.Dir, o.Terms.Dirs, temp, o.watcher()
	w.Hide, w.Later = hide, len(hide) == 0 // those that hide a directory of one conversation are built once
	w.DeniedPaths = o.Rules.Barred(guard.Place{Root: o.Dir, More: o.Terms.Dirs, Dir: o.Dir, Home: w.Home})
	w.Refused = func(host, why string) {
		tell(host, why)
		m.refused.add(why)
	}
	w.RefusedName = func(path string) {
		m.refused.add("a write to " + strconv.Quote(path) + ", which may run later by itself; Write and Edit ask " +
			"a person about it")
	}
	walls, err := policy.Open(w)
	if err != nil {
		listed := w.Network != "" && w.Network != "off" && w.Network != "on" // without walls, commands would reach more
		if listed {
			return nil, err
		}
		if fault.Of(err).Code != fault.ServiceDown {
			return nil, orWithoutWalls(err)
		}
		o.Log("commands run without walls, and every one needs approval: %v", err)
		return o.unwatched(), nil
	}
	if why := walls.Weaker(); why != nil {
		o.Log("commands run behind the walls %s alone, which do not hold all: %v", walls.Enforced().Name, why)
	}
	m.walls = walls
	m.leaves(o, walls, temp)
	m.closers = append(m.closers, func() { _ = walls.Close() })
	return m.left.follow(walls.Starter()), nil
}

// ready returns a function that builds planned walls before a command. It returns nil if there are no walls. That they
// stand then is recorded and reported. If they cannot be built, the turn of the call ends: until then the
// conversation relied on them.
func (m *Mind) ready(o Options) func(context.Context) error {
	if m.walls == nil {
		return nil
	}
	return func(ctx context.Context) error {
		built, err := m.walls.Stand(ctx)
		switch {
		case errors.Is(err, fault.Interrupted): // by the end of the turn or the conversation
			return err
		case err != nil:
			err = orWithoutWalls(err)
			engine.FailTurn(ctx, fault.Of(err))
			return err
		case built:
			if err := m.keepWalls(o); err != nil {
				o.Log("that the walls stand is not recorded: %v", err)
			}
			m.untold.Store(true)
		}
		if m.untold.Swap(false) && !m.TellIn(ctx, m.changedWalls(o.Kept.ID())) {
			m.untold.Store(true) // a turn that was killed has ended before
		}
		return nil
	}
}

// tells returns a function that also reports at the beginning of a turn that the walls stand, if no earlier turn could
// report that.
func (m *Mind) tells(tell func(event.Event), id string) func(event.Event) {
	if tell == nil {
		return nil
	}
	return func(e event.Event) {
		tell(e)
		if e.Kind == event.TurnBegan && m.untold.Swap(false) {
			tell(m.changedWalls(id))
		}
	}
}

func (m *Mind) changedWalls(id string) event.Event {
	return event.Event{Kind: event.Changed, Session: id, Facts: &event.Facts{Walls: m.Walls()}}
}

// orWithoutWalls adds to the hint of an error that commands can do without walls.
func orWithoutWalls(err error) error {
	f := fault.Of(err)
	return f.Hint("%s", strings.TrimSpace("With --sandbox off commands run without walls. "+f.Suggestion))
}

// watcher returns the receiver of what commands write, or nil.
func (o Options) watcher() sandbox.Watcher {
	if o.Services.Touched == nil {
		return nil
	}
	return o.Services.Touched
}

// unwatched starts commands without walls. It reports that their writes are not seen.
func (o Options) unwatched() shell.Starter {
	return func(line, dir string, env []string) (process.Plan, error) {
		if o.Services.Touched != nil {
			o.Services.Touched.Unseen(touch.ReasonUnwatched)
		}
		return shell.Plain(line, dir, env)
	}
}

// refusals collects what walls refused until a tool result reports it.
type refusals struct {
	mu   sync.Mutex
	list []string
}

const mostRefusals = 8 // in one result

func (r *refusals) add(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < mostRefusals && !slices.Contains(r.list, why) {
		r.list = append(r.list, why)
	}
}

func (r *refusals) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// privateDirIn returns our private directory if it lies in a root such as /tmp. We write there without walls, so a
// command must not replace it with a link.
func privateDirIn(roots []string, private string) []string {
	mine := pathname.Real(private)
	if slices.ContainsFunc(roots, func(root string) bool { return pathname.Within(pathname.Real(root), mine) }) {
		return []string{mine}
	}
	return nil
}

// stricter keeps the sandbox and the network of a resumed session if they are stricter than the requested ones, because
// resuming must not loosen them.
func (o *Options) stricter(held session.Confinement) {
	if held.Sandbox == string(setting.WorkspaceWrite) && o.Sandbox == string(setting.Off) {
		o.Log("the session began with walls around its commands, which stay, in a fork as well; a new session " +
			"begins anew")
		o.Sandbox = held.Sandbox
	}
	wanted := o.Walls.Network
	held.Network = cmp.Or(held.Wanted, held.Network)
	switch {
	case held.Network == "" || held.Network == o.Walls.Network || held.Network == "on":
	case o.Walls.Network == "" || o.Walls.Network == "off":
	case held.Network == "off" || o.Walls.Network == "on":
		o.Walls.Network = held.Network
	default: // the hosts on both lists
		before := policy.Hosts(held.Network)
		both := slices.DeleteFunc(policy.Hosts(o.Walls.Network), func(host string) bool {
			return !slices.ContainsFunc(before, func(known string) bool { return strings.EqualFold(host, known) })
		})
		o.Walls.Network = cmp.Or(strings.Join(both, ","), "off")
	}
	if o.Walls.Network != wanted {
		o.Log("the session began with the network %s, so it is %s and not %s, in a fork as well; "+
			"a new session begins anew", held.Network, o.Walls.Network, wanted)
	}
}

// Strength returns how well walls contain commands. wanted is false if the user turned walls off.
func Strength(walls *policy.Walls, wanted bool) engine.Walls {
	switch {
	case walls.Whole():
		return engine.Whole
	case walls != nil:
		return engine.Partial
	case !wanted:
		return engine.Unwanted
	}
	return engine.Missing
}

// ground returns a function that returns what the current snapshot covers in a place. It converts the snapshot's real
// paths to those that the tools use.
func (m *Mind) ground(place guard.Place, cover func() event.Cover) func() guard.Containment {
	network := m.walls.Enforced().Network != "off"
	return func() guard.Containment {
		g := guard.Containment{Network: network}
		if cover == nil {
			return g
		}
		taken, trees := cover(), m.walls.Repositories()
		for _, dir := range append([]string{place.Root}, place.More...) {
			real := pathname.Real(dir)
			named := func(path string) string {
				if rel, within := pathname.In(real, path); within {
					return filepath.Join(dir, rel)
				}
				return path
			}
			g.OpenDirs = append(g.OpenDirs, sandbox.GitDirs(real)...)
			for _, tree := range trees {
				g.Trees = append(g.Trees, named(tree))
			}
			for _, root := range taken.Roots {
				if pathname.Within(root, real) {
					g.Cover.Roots = append(g.Cover.Roots, dir)
				}
			}
			for _, gap := range taken.Gaps {
				at := named(gap.Path)
				if pathname.Within(gap.Path, real) {
					at = dir // nothing here is covered
				}
				g.Cover.Gaps = append(g.Cover.Gaps, guard.Gap{Path: at, Why: gap.Why, Loose: gap.Loose})
			}
		}
		return g
	}
}

// Walls returns the walls around commands, as an event reports them.
func (m *Mind) Walls() *event.Walls { return m.walls.Enforced() }

// keepWalls records the walls around commands, unless they are already recorded.
func (m *Mind) keepWalls(o Options) error {
	walls := m.walls.Enforced()
	held := session.Confinement{
		Sandbox: o.Sandbox, Network: walls.Network, Walls: walls.Name, Holes: strings.Join(walls.Holes, "\n"),
		Planned: walls.Planned,
	}
	if held.Wanted = walls.Network; m.walls == nil && o.Sandbox != string(setting.Off) {
		// otherwise resuming on a machine with walls would open the network
		held.Wanted = cmp.Or(o.Walls.Network, "off")
	}
	if o.Kept.State().Confinement == held {
		return nil
	}
	_, err := o.Kept.Append(session.Changed{Confinement: held})
	return err
}
