package fork

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
)

// carryOut takes the snapshot, writes the journal, and makes the changes.
func (a *applying) carryOut(snapshots undo.Store, move move) error {
	turn, err := a.turn(snapshots)
	if err != nil {
		return err
	}
	a.out.Gaps = turn.Gaps()
	a.spare(turn)
	a.journal = journal{
		turn.ID(), move.inPlace, map[string]string{}, ".omniagent-fork-" + ident.Hex(8), move.ref, a.old.Marked,
	}
	move.stage = a.Stage
	for name, result := range a.old.Results {
		a.Results[name] = result
	}
	for _, s := range a.steps {
		a.Results[s.name] = s.result
		if s.marked {
			a.Marked = append(a.Marked, s.name)
		}
	}
	if err := writeJSON(filepath.Join(a.dir, journalFile), a.journal); err != nil {
		if turn.ID() == a.old.Turn {
			turn.Leave() // only its snapshot has what the Apply that was killed has replaced
		} else {
			turn.Drop()
		}
		return err
	}
	a.removeAll()
	for _, s := range a.steps {
		if s.theirs != nil {
			a.finish(s, a.put(s))
		}
	}
	if err = move.carryOut(); err == nil {
		a.brought(move)
	}
	if err == nil && move.inPlace {
		err = a.standsNow(move, turn.ID())
	}
	if err == nil {
		err = a.conclude()
	}
	record, errEnd := turn.End(a.ctx, time.Now())
	if record.Files > 0 {
		a.out.Turn = record.ID
	}
	if err = errors.Join(err, errEnd); err == nil { // not earlier: a later Apply has to complete all of this one
		err = os.Remove(filepath.Join(a.dir, journalFile))
	}
	return err
}

// turn begins a turn of undo, or continues that of an Apply that was killed.
func (a *applying) turn(snapshots undo.Store) (*undo.Turn, error) {
	if a.old.Turn != "" {
		if turn, err := snapshots.Resume(a.ctx, a.Workspace, a.old.Turn); err == nil {
			turn.Watch(touch.Only(a.carried()))
			return turn, nil
		}
	}
	turn, err := snapshots.Begin(a.ctx, undo.Origin{Dir: a.Workspace, Agent: "fork " + a.Name, Fork: a.ID})
	if err == nil {
		turn.Watch(touch.Only(a.carried()))
	}
	return turn, err
}

// carried returns a func that reports whether this Apply, or one that was killed, changes a path: that of a step, one
// that is already as in the fork, a directory above them, or a part of a repository.
func (a *applying) carried() func(path string) bool {
	names := map[string]bool{}
	carry := func(name string) {
		for ; name != "." && !names[name]; name = path.Dir(name) {
			names[name] = true
		}
	}
	for _, s := range a.steps {
		carry(s.name)
	}
	for name := range a.took {
		carry(name)
	}
	return func(full string) bool {
		rel, within := pathname.In(a.Workspace, full)
		name := filepath.ToSlash(rel)
		return !within || names[name] || slices.Contains(strings.Split(name, "/"), ".git")
	}
}

// removeAll removes everything that the fork does not have: files first, then empty directories.
func (a *applying) removeAll() {
	for _, dirs := range []bool{false, true} {
		for _, s := range slices.Backward(a.steps) {
			if s.theirs != nil || s.mine.isDir() != dirs {
				continue
			}
			err := a.untouched(s)
			if err == nil {
				err = a.root.Remove(filepath.FromSlash(s.name))
			}
			if dirs && errors.Is(err, fs.ErrExist) {
				continue // somebody has put something there, so it stays
			}
			a.finish(s, err)
		}
	}
}

func (a *applying) finish(s step, err error) {
	switch {
	case err == nil:
		a.note(s)
		a.accept(s.name, s.theirs)
		a.before[s.name] = s.before
	case errors.Is(err, errChanged):
		a.conflict(s.name, justChanged)
	default:
		a.conflict(s.name, fault.Bare(err).Error())
	}
}

var errChanged = errors.New(justChanged)

// untouched returns an error if a path has changed since the plan was made.
func (a *applying) untouched(s step) error {
	is, err := mine(a.root, s.name)
	if err != nil {
		return err
	}
	if (is == nil) != (s.mine == nil) {
		return errChanged
	}
	if is == nil || is.isDir() || is.status == s.mine.status {
		return nil
	}
	return relinked(s.mine, is)
}

// relinked returns an error unless only the other names of a file have changed: removing one, as this Apply may do,
// changes nothing but the file's time of change.
func relinked(was, is *side) error {
	status := is.status
	if status.Changed = was.status.Changed; status != was.status || is.target != was.target {
		return errChanged
	}
	if !is.isFile() {
		return nil
	}
	sum, err := is.digest()
	if err == nil && (was.sum == nil || sum != *was.sum) {
		err = errChanged
	}
	return err
}

// put writes the fork's file or the merged file to a path. The file gets its name when it is complete.
func (a *applying) put(s step) error {
	name := filepath.FromSlash(s.name)
	if err := a.untouched(s); err != nil {
		return err
	}
	if s.theirs.isDir() {
		if s.mine != nil {
			if err := a.root.Remove(name); err != nil {
				return err
			}
		}
		if err := a.root.MkdirAll(name, 0o777); err != nil {
			return err
		}
		return a.root.Chmod(name, s.perm)
	}
	dir := filepath.Dir(name)
	if err := a.root.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if s.mine.isDir() {
		if err := a.root.Remove(name); err != nil {
			return err
		}
	}
	staged := filepath.Join(dir, a.Stage)
	err := a.stage(s, staged)
	if err == nil {
		if err = a.untouched(s); err != nil && s.mine.isDir() {
			err = nil
		}
	}
	if err == nil {
		err = a.root.Rename(staged, name)
	}
	if err != nil {
		_ = a.root.Remove(staged)
	}
	return err
}

func (a *applying) stage(s step, staged string) error {
	_ = a.root.Remove(staged)
	if s.theirs.isLink() {
		return a.root.Symlink(s.theirs.target, staged)
	}
	out, err := a.root.OpenFile(staged, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if s.merged {
		_, err = out.Write(s.data)
	} else {
		var in *os.File
		if in, err = s.theirs.open(); err == nil {
			err = workspace.CopyContent(out, in)
			_ = in.Close()
		}
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = a.root.Chmod(staged, s.perm)
	}
	return err
}
