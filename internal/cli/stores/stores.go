// Package stores opens the stores of a call: runs, sessions, snapshots, forks, keys and the list of allowed agents. It
// also declares the files that commands leave there.
//
// A store is opened with the directories, the configuration and the environment of the call. Without a home directory,
// opening a store that needs one is an error.
package stores

import (
	"cmp"
	"context"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
	"omniagent/internal/launch/allow"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/keyring"
	"omniagent/internal/sys/touch"
	"omniagent/internal/talk/session"
	"omniagent/internal/work/run"
)

// Runs returns the store of the runs.
func Runs(c *contract.Call) (run.Store, error) {
	sessions, err := Sessions(c)
	return run.Store{
		Dir: filepath.Join(c.Paths.State, "runs"), Sessions: sessions,
		Ours: []string{c.Paths.State, c.Paths.Data, sessions.Dir()},
		Turn: func(dir, run string) string { return lastTurn(c, dir, run) },
	}, err
}

// lastTurn returns the id of the last turn of a run in a directory, or "".
func lastTurn(c *contract.Call, dir, run string) string {
	store := SnapshotsIn(c.Paths, c.Config, c.Host.Lookup)
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

// Home returns the home directory: HOME, or USERPROFILE on Windows.
func Home(c *contract.Call) (home string, known bool) {
	profile, _ := c.Host.Lookup("USERPROFILE")
	home = cmp.Or(c.Host.Home(), profile)
	return home, home != ""
}

// Sessions returns the store of the journals of conversations.
func Sessions(c *contract.Call) (session.Store, error) {
	if home, known := Home(c); known {
		return session.Default(home), nil
	}
	return session.Store{}, fault.New(fault.NoHome, "no home directory is known, so there is no place for sessions").
		Hint("set HOME")
}

// Snapshots returns the store of the snapshots. It is an error in a fork, which has none.
func Snapshots(c *contract.Call) (undo.Store, error) {
	store := SnapshotsIn(c.Paths, c.Config, c.Host.Lookup)
	if in := ForkAround(c); in != nil {
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

// SnapshotsIn returns the store of the snapshots below paths, or nil without a home directory.
func SnapshotsIn(paths contract.Paths, set *config.Set, lookup func(string) (string, bool)) *undo.Store {
	if paths.State == "" {
		return nil
	}
	home, _ := lookup("HOME")
	profile, _ := lookup("USERPROFILE")
	known := ""
	if paths.Data != "" {
		known = filepath.Join(paths.Data, "snapshots")
	}
	return &undo.Store{
		Known: known,
		Dir:   filepath.Join(paths.State, "undo"), Home: home, FileLimit: set.Int("undo.file_limit"),
		TotalLimit: set.Int("undo.total_limit"), IgnoredLimit: set.Int("undo.ignored_limit"),
		Calls: callsIn(cmp.Or(home, profile)),
	}
}

// callsIn returns a func that reads what the calls of a turn say that they changed from the journals of conversations.
func callsIn(home string) func(context.Context, undo.Record) *touch.Window {
	if home == "" {
		return nil
	}
	return func(ctx context.Context, r undo.Record) *touch.Window {
		log := touch.New()
		log.Unseen(touch.ReasonUnwatched)
		window := log.Open()
		session.Default(home).Claims(ctx, r.Session, r.Dir, log, 1, func(e session.Entry) bool {
			logged, is := e.Record.(session.Logged)
			return is && logged.Event.Turn == r.Turn
		})
		return window
	}
}

// SnapshotsToKeep returns the store for the snapshots of a call's turns, or nil if it keeps none: with --undo off, and
// in a fork.
func SnapshotsToKeep(c *contract.Call) *undo.Store {
	word := cmp.Or(c.String("undo"), c.Config.String(UndoKey))
	if word == "off" || ForkAround(c) != nil {
		return nil
	}
	return SnapshotsIn(c.Paths, c.Config, c.Host.Lookup)
}

// ForkAround returns the fork whose directories contain that of the call, or nil. What an agent does there is deleted
// with the fork.
func ForkAround(c *contract.Call) *fork.Fork {
	if c.Paths.State == "" || c.Dir() == "" {
		return nil
	}
	return ForksIn(c.Paths, c.Host.Lookup).Around(c.Dir())
}

// WallsState returns the directory for the records of walls. A fork has its own, because the same paths name other
// files in it.
func WallsState(c *contract.Call) string {
	if f := ForkAround(c); f != nil {
		return f.State()
	}
	return c.Paths.State
}

// OwnFork returns the id and the directories of the fork around the call, or "" and nil.
func OwnFork(c *contract.Call) (id string, roots []string) {
	if f := ForkAround(c); f != nil {
		return f.ID, f.Roots()
	}
	return "", nil
}

// Forks returns the store of the forks.
func Forks(c *contract.Call) (fork.Store, error) {
	if c.Paths.State == "" {
		return fork.Store{}, fault.New(fault.NoHome, "there is no home directory, so no forks are kept").
			Hint("set HOME")
	}
	store := ForksIn(c.Paths, c.Host.Lookup)
	store.Programs = c.Programs()
	return store, nil
}

// ForksIn returns the store of the forks below paths. It cannot start programs.
func ForksIn(paths contract.Paths, lookup func(string) (string, bool)) fork.Store {
	home, _ := lookup("HOME")
	snapshots := undo.Store{Dir: filepath.Join(paths.State, "undo"), Home: home}
	return fork.Store{
		Dir: filepath.Join(paths.State, "forks"), Root: snapshots.Root, Undone: snapshots.TakenBack,
	}
}

// Keys returns the store of the keys, which omniagent login fills.
func Keys(c *contract.Call) keyring.Store {
	return keyring.Open(c.Paths.Config, c.Programs())
}

// Versions returns the recorded answers of programs that were asked for their version.
func Versions(p contract.Paths) cli.Versions {
	if p.State == "" {
		return cli.Versions{}
	}
	return cli.Versions{File: filepath.Join(p.State, "versions.json")}
}

// Allowlist opens the list of allowed and denied agents. It belongs to the user, not to an instance.
func Allowlist(c *contract.Call) allow.List {
	if c.TrustFile() == "" {
		return allow.List{}
	}
	return allow.OpenList(filepath.Join(filepath.Dir(c.TrustFile()), "agents.json"))
}

// KeepKey is the setting that says whether conversations are kept.
const KeepKey = "session.keep"

// UndoKey is the setting that says whether snapshots are kept.
const UndoKey = "undo.snapshots"
