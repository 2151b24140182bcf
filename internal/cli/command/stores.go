package command

import (
	"cmp"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
	"omniagent/internal/launch/allow"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/keyring"
	"omniagent/internal/talk/session"
	"omniagent/internal/work/run"
)

// runStore returns the store of the runs.
func runStore(c *contract.Call) (run.Store, error) {
	sessions, err := sessionsOf(c)
	return run.Store{
		Dir: filepath.Join(c.Paths.State, "runs"), Sessions: sessions,
		Ours: []string{c.Paths.State, c.Paths.Data, sessions.Dir()},
		Turn: func(dir, run string) string { return lastTurn(c, dir, run) },
	}, err
}

// lastTurn returns the last turn of a run in a directory, or "".
func lastTurn(c *contract.Call, dir, run string) string {
	store := snapshotsOf(c.Paths, c.Config, c.Host.Lookup)
	if store == nil {
		return ""
	}
	turns, _ := store.List(dir)
	for _, t := range turns {
		if t.Run == run {
			return t.ID
		}
	}
	return ""
}

// anyHome returns the home directory, by its name on any system.
func anyHome(c *contract.Call) (home string, known bool) {
	profile, _ := c.Host.Lookup("USERPROFILE")
	home = cmp.Or(c.Host.Home(), profile)
	return home, home != ""
}

func sessionsOf(c *contract.Call) (session.Store, error) {
	if home, known := anyHome(c); known {
		return session.Default(home), nil
	}
	return session.Store{}, fault.New(fault.NoHome, "no home directory is known, so there is no place for sessions").
		Hint("set HOME")
}

// undoStore is where the snapshots are.
func undoStore(c *contract.Call) (undo.Store, error) {
	store := snapshotsOf(c.Paths, c.Config, c.Host.Lookup)
	if in := forkAround(c); in != nil {
		return undo.Store{}, fault.New(fault.Conflicting, "this is the fork %s, of which no snapshots are kept",
			in.Name).
			Hint("outside of it: omniagent fork delete %s --confirm-destructive", in.Name)
	}
	if store == nil {
		return undo.Store{}, fault.New(fault.NoHome, "there is no home directory, so no snapshots are kept").
			Hint("set HOME")
	}
	return *store, nil
}

// snapshotsOf returns where the snapshots are; nil: there is no home.
func snapshotsOf(paths contract.Paths, set *config.Set, lookup func(string) (string, bool)) *undo.Store {
	if paths.State == "" {
		return nil
	}
	home, _ := lookup("HOME")
	known := ""
	if paths.Data != "" {
		known = filepath.Join(paths.Data, "snapshots")
	}
	return &undo.Store{
		Known: known,
		Dir:   filepath.Join(paths.State, "undo"), Home: home, FileLimit: set.Int("undo.file_limit"),
		TotalLimit: set.Int("undo.total_limit"), IgnoredLimit: set.Int("undo.ignored_limit"),
	}
}

// snapshots returns where the turns of a call are kept; nil: they are not.
func snapshots(c *contract.Call) *undo.Store {
	word := cmp.Or(c.String("undo"), c.Config.String(undoKey))
	if word == "off" || forkAround(c) != nil {
		return nil
	}
	return snapshotsOf(c.Paths, c.Config, c.Host.Lookup)
}

// forkAround returns the fork in which a call is, or nil. What an agent does there is deleted with the fork.
func forkAround(c *contract.Call) *fork.Fork {
	if c.Paths.State == "" || c.Dir() == "" {
		return nil
	}
	return forksOf(c.Paths, c.Host.Lookup).Around(c.Dir())
}

// wallsState is the directory for the record of walls. A fork has one of its own: at the same paths are other files.
func wallsState(c *contract.Call) string {
	if f := forkAround(c); f != nil {
		return f.State()
	}
	return c.Paths.State
}

// ownFork returns the id and the directories of the fork in which a call is.
func ownFork(c *contract.Call) (id string, roots []string) {
	if f := forkAround(c); f != nil {
		return f.ID, f.Roots()
	}
	return "", nil
}

// forkStore is where the forks are.
func forkStore(c *contract.Call) (fork.Store, error) {
	if c.Paths.State == "" {
		return fork.Store{}, fault.New(fault.NoHome, "there is no home directory, so no forks are kept").
			Hint("set HOME")
	}
	store := forksOf(c.Paths, c.Host.Lookup)
	store.Away = c.Away()
	return store, nil
}

func forksOf(paths contract.Paths, lookup func(string) (string, bool)) fork.Store {
	home, _ := lookup("HOME")
	snapshots := undo.Store{Dir: filepath.Join(paths.State, "undo"), Home: home}
	return fork.Store{
		Dir: filepath.Join(paths.State, "forks"), Root: snapshots.Root, Undone: snapshots.TakenBack,
	}
}

// keysOf returns the keys that omniagent login stored.
func keysOf(c *contract.Call) keyring.Store {
	return keyring.Open(c.Paths.Config, c.Away())
}

// versions returns the recorded answers of programs that were asked for their version.
func versions(p contract.Paths) cli.Versions {
	if p.State == "" {
		return cli.Versions{}
	}
	return cli.Versions{File: filepath.Join(p.State, "versions.json")}
}

// allowlistOf opens the list, which belongs to the user, not to an instance.
func allowlistOf(c *contract.Call) allow.List {
	if c.TrustFile() == "" {
		return allow.List{}
	}
	return allow.OpenList(filepath.Join(filepath.Dir(c.TrustFile()), "agents.json"))
}

const keepKey = "session.keep"
