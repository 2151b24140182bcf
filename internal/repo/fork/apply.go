package fork

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/diff"
	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/workspace"
)

// Outcome is the result of an Apply.
type Outcome struct {
	Turn      string         // the turn to undo; empty if nothing was changed, or in a dry run
	Applied   []string       // paths that are now the same as in the fork
	Merged    []string       // paths that now have the changes of both
	Conflicts []Conflict     // paths that a person has to decide about
	Commits   int            // number of commits that were applied
	Branch    string         // the branch with these commits
	InPlace   bool           // Branch is the checked out one
	Rewrote   bool           // Branch is another one because the fork has dropped commits of the checked out one
	Held      string         // the branch where commits stay because of files that are run later by themselves
	Resumed   bool           // completed an earlier Apply whose process had died
	Gaps      []snapshot.Gap // what undo cannot restore
	Later     []string       // paths of Applied and Merged that are run later by themselves, see Request.Take
}

// Conflict is a path that could not be made the same as in the fork.
type Conflict struct {
	Path   string
	Reason string
	Marked bool // the file has both versions, between conflict markers
	Later  bool // it stays in the fork because it is run later by itself, see Request.Take
}

// The reasons.
const (
	bothChanged = "the workspace and the fork have changed it differently"
	bothMarked  = "the workspace and the fork have changed the same lines; both stand in it, between marks"
	removedHere = "the workspace has removed it, and the fork has changed it"
	removedFork = "the fork has removed it, and the workspace has changed it"
	justChanged = "it was changed during this call"
	staysInFork = "the fork's commits use a commit of this submodule that exists only in the fork; push it or fetch " +
		"it before you delete the fork"
	stillMarked = "the marks of an earlier call still stand in it"
	notSaved    = "the snapshot does not have what is here, so undo could not bring it back"
	incomplete  = "the commits stay in the fork, because their history is incomplete here; fetch it here, or push them"
	inTheWay    = "a directory that it lies in has become something else"
)

// journal records what an Apply is about to do. It exists until that is done.
type journal struct {
	Turn    string            `json:"turn"`
	InPlace bool              `json:"in_place"`
	Results map[string]string `json:"results"`
	Stage   string            `json:"stage"` // the prefix of incomplete files
	Ref     string            `json:"ref,omitempty"`
	Marked  []string          `json:"marked,omitempty"` // paths in which a conflict is marked
}

const journalFile = "apply.json"

// step brings one path of the workspace to its new state.
type step struct {
	name   string
	theirs *side  // nil if the path is to be removed
	mine   *side  // the current file; nil: no file
	data   []byte // content of a merged file
	merged bool
	perm   fs.FileMode
	result string // describes the new state
	marked bool
	before *appliedFileState // nil if the current file is not the base
}

// applying is the state of an Apply.
type applying struct {
	*Fork
	ctx     context.Context
	request Request
	later   *later
	root    *os.Root
	was     *bases
	steps   []step
	old     journal // journal of an Apply that was killed
	journal
	out  Outcome
	took map[string]appliedFileState // the new base
	// the previous base, if it was still in place
	before map[string]*appliedFileState
}

// Apply merges the changes of the fork into the workspace. It takes a snapshot first, so that undo can revert it. Files
// that are run later by themselves stay in the fork, unless the request names them.
func (f *Fork) Apply(ctx context.Context, snapshots undo.Store, r Request) (Outcome, error) {
	dryRun := r.DryRun
	held, err := f.lock(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = held.Unlock() }()
	if !dryRun { // apply forks of the same workspace one after the other
		alone, err := workspace.Lock(ctx, filepath.Join(f.store.Dir, ".apply-"+f.key()), lockWait)
		if err != nil {
			return Outcome{}, err
		}
		defer func() { _ = alone.Unlock() }()
	}
	a := &applying{
		Fork: f, ctx: ctx, request: r, later: f.later(r.Policy), took: map[string]appliedFileState{},
		before: map[string]*appliedFileState{},
	}
	if a.root, err = f.openRoot(); err != nil {
		return a.out, err
	}
	defer a.root.Close()
	if f.store.Around(f.Workspace) != nil {
		return a.out, fault.New(fault.Conflicting, "omniagent fork apply cannot run inside a fork")
	}
	if a.was, err = f.bases(ctx); err != nil {
		return a.out, err
	}
	defer a.was.close()
	if err := a.resume(dryRun); err != nil {
		return a.out, err
	}
	if err := a.plan(); err != nil {
		return a.out, err
	}
	move, err := f.commits(ctx, a.old, a.stayPut)
	if err != nil {
		return a.out, err
	}
	a.out.Held = move.held
	if move.incomplete {
		a.conflict(".git", incomplete)
	}
	if err := a.considerSubmodules(move); err != nil {
		return a.out, err
	}
	if dryRun {
		a.brought(move)
		return a.out, a.foresee(snapshots)
	}
	if err := a.later.keep(); err != nil {
		return a.out, err
	}
	if len(a.steps) == 0 && move.to == "" && a.old.Turn == "" {
		return a.out, a.conclude()
	}
	return a.out, a.carryOut(snapshots, move)
}

// resume reads the journal of an Apply that was killed, and removes its incomplete files.
func (a *applying) resume(dryRun bool) error {
	err := workspace.ReadJSON(filepath.Join(a.dir, journalFile), filesLimit, &a.old)
	if workspace.Absent(err) {
		return nil
	}
	if err != nil {
		return fault.New(fault.Unsafe, "the record of an interrupted apply is damaged: %v", err).
			Hint("remove %s, and call this again", filepath.Join(a.dir, journalFile))
	}
	a.out.Resumed = true
	if a.GitDir != "" && !dryRun {
		move{fork: a.Fork, ref: a.old.Ref, stage: a.old.Stage}.tidy()
	}
	for name := range a.old.Results {
		if !dryRun {
			_ = a.root.Remove(filepath.Join(filepath.Dir(filepath.FromSlash(name)), a.old.Stage))
		}
	}
	return nil
}

// plan decides what to do with each path.
func (a *applying) plan() error {
	touched, err := a.touched(a.ctx)
	if err != nil {
		return err
	}
	for name, path := range touched {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		t, err := theirs(path)
		if err != nil {
			a.conflict(name, "it cannot be read in the fork: "+fault.Bare(err).Error())
			continue
		}
		m, err := mine(a.root, name)
		if err == nil {
			err = a.decide(name, m, t)
		}
		if err != nil {
			a.conflict(name, "it cannot be read: "+fault.Bare(err).Error())
		}
	}
	a.dropUnreachable()
	slices.SortFunc(a.steps, func(x, y step) int { return strings.Compare(x.name, y.name) })
	slices.SortFunc(a.out.Conflicts, func(x, y Conflict) int { return strings.Compare(x.Path, y.Path) })
	return nil
}

// dropUnreachable drops the steps below a path that stays something other than the directory that it is in the fork.
func (a *applying) dropUnreachable() {
	stays := map[string]bool{}
	for _, c := range a.out.Conflicts {
		stays[c.Path] = true
	}
	a.steps = slices.DeleteFunc(a.steps, func(s step) bool {
		if s.theirs == nil {
			return false
		}
		for dir := path.Dir(s.name); dir != "."; dir = path.Dir(dir) {
			if info, err := a.root.Lstat(filepath.FromSlash(dir)); stays[dir] && err == nil && !info.IsDir() {
				a.conflict(s.name, inTheWay)
				return true
			}
		}
		return false
	})
}

func (a *applying) conflict(name, reason string) {
	a.out.Conflicts = append(a.out.Conflicts, Conflict{Path: name, Reason: reason})
}

// decide plans the step for a path.
func (a *applying) decide(name string, m, t *side) error {
	if t != nil && !t.isDir() && !t.isFile() && !t.isLink() {
		a.conflict(name, "it is neither a file, a directory nor a link")
		return nil
	}
	arrived, err := same(m, t)
	if err != nil {
		return err
	}
	if arrived {
		if _, ours := a.old.Results[name]; ours { // else the base stays: the fork may take back what others brought
			a.accept(name, t)
		}
		return nil
	}
	result, err := describe(m)
	if err != nil {
		return err
	}
	if done, ok := a.old.Results[name]; ok && done == result {
		a.accept(name, t)
		a.note(step{name: name, merged: true, marked: slices.Contains(a.old.Marked, name)})
		return nil
	}
	b := a.was.of(name, m)
	if unchanged, err := b.is(t); err != nil || unchanged {
		if err == nil && a.marks(m) && !a.marks(t) {
			a.conflict(name, stillMarked)
		}
		return err
	}
	if t == nil && b.known && !b.there {
		return nil
	}
	if a.holdsBack(name, m, t) {
		return nil
	}
	if !a.reachable(name) {
		a.conflict(name, inTheWay)
		return nil
	}
	kept, err := b.is(m)
	if err != nil {
		return err
	}
	s := step{name: name, theirs: t, mine: m}
	if kept {
		if t != nil {
			s.perm = t.status.Mode.Perm()
		}
		if s.result, err = describe(t); err == nil {
			s.before, err = a.stateOf(m)
		}
		a.steps = append(a.steps, s)
		return err
	}
	return a.merge(s, b)
}

// merge plans the step for a path that both have changed.
func (a *applying) merge(s step, b base) error {
	m, t := s.mine, s.theirs
	switch {
	case t == nil:
		a.conflict(s.name, removedFork)
		return nil
	case m == nil && b.there:
		a.conflict(s.name, removedHere)
		return nil
	case !m.isFile() || !t.isFile():
		a.conflict(s.name, bothChanged)
		return nil
	}
	one, err := m.content()
	if err != nil {
		return err
	}
	two, err := t.content()
	if err != nil {
		return err
	}
	was, known := b.text()
	s.merged, s.perm = true, b.permOf(m, t)
	if known && b.there && (bytes.Equal(was, one) || bytes.Equal(was, two)) { // one of them has changed only the mode
		if s.data = one; bytes.Equal(was, one) {
			s.data = two
		}
		s.result = describeFile(s.perm, sha256.Sum256(s.data))
		a.steps = append(a.steps, s)
		return nil
	}
	if !isText(one) || !isText(two) || !isText(was) {
		a.conflict(s.name, bothChanged)
		return nil
	}
	if !known || !b.there {
		was = diff.Common(one, two)
	}
	var meets int
	s.data, meets = diff.Merge(was, one, two, "workspace", "fork "+a.Name)
	if bytes.Equal(s.data, one) && s.perm == m.status.Mode.Perm() {
		return nil // the workspace has these changes, and others
	}
	s.marked = meets > 0
	s.result = describeFile(s.perm, sha256.Sum256(s.data))
	a.steps = append(a.steps, s)
	return nil
}

// describe returns a text for a file by which a later process recognises it.
func describe(s *side) (string, error) {
	switch {
	case s == nil:
		return "nothing", nil
	case s.isDir():
		return "directory", nil
	case s.isLink():
		return "link " + s.target, nil
	}
	sum, err := s.digest()
	return describeFile(s.status.Mode.Perm(), sum), err
}

func describeFile(perm fs.FileMode, sum [32]byte) string { return fmt.Sprintf("%o %x", perm, sum) }

// reachable reports whether everything above a path in the workspace is a directory, or will be.
func (a *applying) reachable(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		info, err := a.root.Lstat(filepath.FromSlash(dir))
		if err == nil && !info.IsDir() {
			up, errUp := theirs(a.Real(filepath.Join(a.Workspace, filepath.FromSlash(dir))))
			return errUp == nil && up.isDir() && info.Mode()&fs.ModeSymlink == 0
		}
	}
	return true
}

// accept makes the fork's current file the new base of a path.
func (a *applying) accept(name string, t *side) {
	if s, err := a.stateOf(t); err == nil {
		a.took[name] = *s
	}
}

// stateOf describes a file, and stores its content if it can be merged later.
func (a *applying) stateOf(f *side) (*appliedFileState, error) {
	s := &appliedFileState{Gone: f == nil}
	switch {
	case f == nil:
	case f.isDir():
		s.Dir = true
	case f.isLink():
		s.Target = f.target
	default:
		s.Perm, s.Size = f.status.Mode.Perm(), f.status.Size
		sum, err := f.digest()
		if err != nil {
			return nil, err
		}
		s.Sum = sum
		if data, err := f.content(); err == nil && isText(data) {
			put, err := a.was.store.Put(data)
			s.Kept = err == nil && put == sum
		}
	}
	return s, nil
}

// same reports whether two states are equal.
func (s appliedFileState) same(o appliedFileState) bool {
	s.Turn, s.Kept, o.Turn, o.Kept = "", false, "", false
	return s == o
}

// brought records that the commits are in the workspace.
func (a *applying) brought(m move) {
	a.out.Commits, a.out.Branch, a.out.InPlace, a.out.Rewrote = m.count, m.branch, m.inPlace, m.rewrote
}

// foresee fills in the outcome of a dry run. To find out what the snapshot would not hold, it takes one into a separate
// store, and removes that store.
func (a *applying) foresee(snapshots undo.Store) error {
	if a.old.Turn == "" && slices.ContainsFunc(a.steps, step.loses) { // otherwise its snapshot exists
		snapshots.Dir = filepath.Join(a.dir, "trial")
		defer os.RemoveAll(snapshots.Dir)
		turn, err := a.turn(snapshots)
		if err != nil {
			return err
		}
		a.spare(turn)
		turn.Drop()
	}
	for _, s := range a.steps {
		a.note(s)
	}
	return nil
}

// loses reports whether a step removes or replaces content of the workspace.
func (s step) loses() bool {
	if s.mine == nil || s.mine.isDir() || s.mine.isLink() {
		return false
	}
	if s.mine.isFile() && s.theirs.isFile() && !s.merged {
		equal, err := sameContent(s.mine, s.theirs)
		return err != nil || !equal
	}
	return true
}

// spare drops the steps whose content the snapshot does not have.
func (a *applying) spare(turn *undo.Turn) {
	a.steps = slices.DeleteFunc(a.steps, func(s step) bool {
		lost := s.loses() && !turn.Holds(s.name)
		if lost {
			a.conflict(s.name, notSaved)
		}
		return lost
	})
}

func (a *applying) note(s step) {
	switch {
	case s.marked:
		a.out.Conflicts = append(a.out.Conflicts, Conflict{Path: s.name, Reason: bothMarked, Marked: true})
	case s.merged:
		a.out.Merged = append(a.out.Merged, s.name)
	default:
		a.out.Applied = append(a.out.Applied, s.name)
	}
}
