package native

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/enclosure"
	"omniagent/internal/engine"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/session"
	"omniagent/internal/setting"
	"omniagent/internal/shell"
)

// enclose builds the walls around commands. On a machine that has none the conversation goes on without, and says so:
// then every command is asked about. Walls that do not stand around this workspace alone are a refusal: what lies in it
// must not decide that commands run without.
func (m *Mind) enclose(o *Options, private string) (shell.Starter, error) {
	o.stricter(o.Kept.State().Confinement)
	if o.Sandbox == string(setting.Off) {
		return nil, nil
	}
	temp := filepath.Join(private, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return nil, fault.New(fault.PermissionDenied, "no temporary directory can be made").Because(err)
	}
	walls, err := enclosure.Open(enclosure.Wanted{
		Root: o.Dir, Roots: o.Terms.Dirs, Home: o.Home, Network: o.Network, Temp: temp, State: o.State,
		Memory: o.Memory, Agents: o.Agents,
		Hide:    ours(append([]string{o.Dir}, o.Terms.Dirs...), private),
		Refused: func(host, why string) { o.Log("a command was kept from %s: %s", host, why) },
	})
	if err != nil {
		listed := o.Network != "" && o.Network != "off" && o.Network != "on" // without walls it would be more
		if listed {
			return nil, err
		}
		if f := fault.Of(err); f.Code != fault.Down {
			return nil, f.Hint("%s", strings.TrimSpace(f.Suggestion+" With --sandbox off commands run without walls."))
		}
		o.Log("commands run without walls, and every one needs approval: %v", err)
		return nil, nil
	}
	if why := walls.Weaker(); why != nil {
		o.Log("commands run behind the walls %s alone, which do not hold all: %v", walls.Claim().Name, why)
	}
	m.walls = walls
	m.closers = append(m.closers, func() { _ = walls.Close() })
	return walls.Starter(), nil
}

// ours is our own directory where it lies in the workspace, as in a workspace that is /tmp. We write there, without
// walls: a command must not put a link in its place.
func ours(roots []string, private string) []string {
	mine, err := filepath.EvalSymlinks(private)
	if err != nil {
		return nil
	}
	for _, root := range roots {
		real, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(real, mine); err == nil && filepath.IsLocal(rel) {
			return []string{mine}
		}
	}
	return nil
}

// stricter takes what the session has on record where that is stricter than what is asked for now: going on with a
// session opens nothing.
func (o *Options) stricter(held session.Confinement) {
	if held.Sandbox == string(setting.WorkspaceWrite) && o.Sandbox == string(setting.Off) {
		o.Log("the session began with walls around its commands, which stay, in a fork as well; a new session " +
			"begins anew")
		o.Sandbox = held.Sandbox
	}
	asked := o.Network
	held.Network = cmp.Or(held.Wanted, held.Network)
	switch {
	case held.Network == "" || held.Network == o.Network || held.Network == "on":
	case o.Network == "" || o.Network == "off":
	case held.Network == "off" || o.Network == "on":
		o.Network = held.Network
	default: // lists: what is on both
		before := enclosure.Hosts(held.Network)
		var both []string
		for _, host := range enclosure.Hosts(o.Network) {
			for _, known := range before {
				if strings.EqualFold(host, known) {
					both = append(both, host)
				}
			}
		}
		if o.Network = strings.Join(both, ","); len(both) == 0 {
			o.Network = "off"
		}
	}
	if o.Network != asked {
		o.Log("the session began with the network %s, so it is %s and not %s, in a fork as well; "+
			"a new session begins anew", held.Network, o.Network, asked)
	}
}

// Strength says how far walls replace questions. wanted: they were asked for, or it was left open.
func Strength(walls *enclosure.Enclosure, wanted bool) engine.Walls {
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

// Walls are what holds the commands.
func (m *Mind) Walls() *event.Walls { return m.walls.Told() }

// keepWalls puts on record what holds the commands, where that is not there yet.
func (m *Mind) keepWalls(o Options) error {
	told := m.walls.Told()
	held := session.Confinement{
		Sandbox: o.Sandbox, Network: told.Network, Walls: told.Name, Holes: strings.Join(told.Holes, "\n"),
	}
	if held.Wanted = told.Network; m.walls == nil && o.Sandbox != string(setting.Off) {
		held.Wanted = cmp.Or(o.Network, "off") // or going on where walls can be built would open it
	}
	if o.Kept.State().Confinement == held {
		return nil
	}
	_, err := o.Kept.Append(session.Changed{Confinement: held})
	return err
}
