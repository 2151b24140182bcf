package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/talk/session"
)

// Store is the directory of the runs. Each run has its own directory in it, which only the user may enter.
type Store struct {
	Dir      string
	Sessions session.Store // the store of the runs' conversations
	Ours     []string      // directories that this program itself writes, not part of a workspace
	// Turn returns the last turn of a run in a directory that undo can take back, or ""; nil: none is known.
	Turn func(dir, run string) string
}

// The files of a run.
const (
	recordFile = "run.json"
	ownerFile  = "owner"  // locked by the owner
	startFile  = "start"  // the index of the workspace before the run
	outputFile = "stdout" // complete standard output of the agent
	errorFile  = "stderr"
	maxRecord  = 64 << 20
)

const version = 1 // of the record

const idPrefix = "run-"

// IsID reports whether a word has the form of an id of a run.
func IsID(word string) bool { return strings.HasPrefix(word, idPrefix) && session.CheckID(word) == nil }

// NewID returns an id for a run. Ids sort by time.
func NewID() string { return idPrefix + ident.Ordered() }

// Path returns the directory of a run.
func (s Store) Path(id string) string { return filepath.Join(s.Dir, id) }

// Run is a run that this process owns.
type Run struct {
	Record
	store   Store
	held    *workspace.FileLock
	secrets secrets // answers that are not stored
	sight   sight
	files   map[string]string // Question.File of what was asked in this process, by Question.Call
}

// Create creates a run that this process owns. Others see it once it is saved: at once if it is detached, or else by
// Work or Answer.
func (s Store) Create(ctx context.Context, task Task) (*Run, error) {
	id := NewID()
	if err := workspace.MkdirAll(s.Path(id)); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	r := &Run{store: s, Record: Record{
		Version: version, ID: id, Created: now, Since: now, Task: task, State: Queued,
		Attempts: []Attempt{}, Questions: []Question{},
	}}
	var err error
	if r.held, err = workspace.Lock(ctx, filepath.Join(s.Path(id), ownerFile), lockWait); err != nil {
		return nil, err
	}
	if task.Detached {
		err = r.save()
	}
	return r, err
}

// Abandon ends the ownership of a run that did not begin, and removes all traces of it.
func (r *Run) Abandon() {
	_ = r.held.Unlock()
	_ = os.RemoveAll(r.Path())
}

// lockWait is how long to wait for processes that hold the lock only to check for an owner.
const lockWait = 500 * time.Millisecond

// Acquire makes this process the owner of a run without one. It first settles a run whose owner died. It returns
// CONFLICT for a run that is over or has an owner.
func (s Store) Acquire(ctx context.Context, id string) (*Run, error) {
	if _, err := s.Peek(id); err != nil {
		return nil, err
	}
	held, err := workspace.Lock(ctx, filepath.Join(s.Path(id), ownerFile), lockWait)
	if errors.Is(err, fault.LockHeld) {
		return nil, owned(id, err)
	}
	if err != nil {
		return nil, err
	}
	record, err := s.Peek(id) // it may have ended meanwhile
	if err != nil {
		_ = held.Unlock()
		return nil, err
	}
	r := &Run{Record: record, store: s, held: held}
	if err = r.settle(); err == nil && r.State.Terminal() {
		err = over(r.Record)
	}
	if err != nil {
		_ = held.Unlock()
		return nil, err
	}
	return r, nil
}

// Free returns a run that this process could own, or the error that Acquire would return.
func (s Store) Free(ctx context.Context, id string) (Record, error) {
	r, err := s.Load(ctx, id)
	switch {
	case err != nil:
		return r, err
	case r.State.Terminal():
		return r, over(r)
	}
	if _, held := s.Owner(id); held {
		return r, owned(id, nil)
	}
	return r, nil
}

// over returns the fault for continuing a run that is over.
func over(r Record) error {
	return fault.New(fault.Conflicting, "%s has already ended (%s)", r.ID, r.State).With("run_id", r.ID).
		Hint("omniagent runs retry %s", r.ID)
}

// owned returns the fault for a run that another process carries out.
func owned(id string, cause error) error {
	return fault.New(fault.Conflicting, "another process is working on %s", id).With("run_id", id).Because(cause)
}

// Release ends the ownership.
func (r *Run) Release() error { return r.held.Unlock() }

// Path returns the directory of the run.
func (r *Run) Path() string { return r.store.Path(r.ID) }

// save writes the record. It survives the end of this process. A question, an answer and an end also survive a crash of
// the machine, because somebody may act on them. Messages to an agent are in the journal, which is already on the disk.
func (r *Run) save() error {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // it would make some texts six times as long
	e.SetIndent("", "  ")
	if err := e.Encode(r.Record); err != nil {
		return fault.New(fault.Internal, "the record of %s cannot be written", r.ID).Because(err)
	}
	body, err := r.secrets.hide(out.Bytes())
	if err != nil {
		return fault.New(fault.Internal, "the record of %s cannot be written without its secrets", r.ID).Because(err)
	}
	path, write := filepath.Join(r.Path(), recordFile), workspace.Replace
	if r.State.Terminal() || len(r.Questions) > 0 || r.Detached {
		write = workspace.WriteFile
	}
	err = write(path, body, 0o600)
	_, missing := os.Stat(path)
	r.NotOnDisk = missing != nil
	return err
}

// enter changes the state, unless the run is over.
func (r *Run) enter(state State) error {
	if r.State.Terminal() {
		return fault.New(fault.Internal, "%s is over: it is %s and cannot become %s", r.ID, r.State, state)
	}
	now := time.Now().UTC()
	_, r.Waited = r.Times(now)
	r.State, r.Since = state, now
	return r.save()
}

// Peek returns the record of a run as its owner wrote it.
func (s Store) Peek(id string) (Record, error) {
	var r Record
	if err := session.CheckID(id); err != nil {
		return r, fault.New(fault.NotFoundCode, "there is no run %q", id).Hint("omniagent runs list")
	}
	data, err := workspace.ReadFile(filepath.Join(s.Path(id), recordFile), maxRecord)
	if workspace.Absent(err) {
		return r, fault.New(fault.NotFoundCode, "there is no run %s", id).With("run_id", id).Hint("omniagent runs list")
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fault.New(fault.Internal, "the record of %s is damaged", id).With("path", s.Path(id)).Because(err)
	}
	if r.Version > version {
		return r, fault.New(fault.Unsupported, "%s was recorded by a newer version", id).Hint("omniagent changelog")
	}
	return r, nil
}

// Load returns the true state of a run. If the owner died while an agent worked, the run is over, and Load records
// that, or waits for another process that is recording it.
func (s Store) Load(ctx context.Context, id string) (Record, error) {
	record, err := s.Peek(id)
	for began := time.Now(); err == nil && s.beingSettled(record) && time.Since(began) < settling && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(settleGap):
		}
		record, err = s.Peek(id)
	}
	if err != nil || !s.orphaned(record) {
		return record, err
	}
	r, err := s.Acquire(ctx, id)
	switch {
	case err == nil: // the run only waits for an answer
		defer r.Release() //nolint:errcheck // nothing was written
		return r.Record, nil
	case errors.Is(err, fault.Conflicting): // it was settled, or has a new owner
		return s.Peek(id)
	}
	return record, err
}

const (
	settling  = 5 * time.Second // for another process to survey the workspace and write the record
	settleGap = 2 * time.Millisecond
)

// beingSettled reports whether another process is recording the end of a run whose owner died: it has the lock, but
// does not listen on the owner's socket.
func (s Store) beingSettled(r Record) bool {
	if r.State.Terminal() || r.Socket == "" {
		return false
	}
	if _, held := s.Owner(r.ID); !held {
		return false
	}
	c, err := net.Dial("unix", r.Socket)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// orphaned reports whether a run that needs an owner has none.
func (s Store) orphaned(r Record) bool {
	if r.State.Terminal() {
		return false
	}
	if _, held := workspace.HolderOf(filepath.Join(s.Path(r.ID), ownerFile)); held {
		return false
	}
	return r.State != NeedsInput && !r.untouched() || r.Socket != ""
}

// untouched reports whether any process may continue a run, because no agent is working on it.
func (r *Record) untouched() bool {
	return r.State == Queued && (len(r.Attempts) == 0 || !r.Until.IsZero())
}

// WaitsForPerson reports whether the run waits for a person, without an owner.
func (r *Record) WaitsForPerson() bool {
	return r.State == NeedsInput && r.Socket == "" && len(r.Open()) > 0
}

// answered reports whether a person has answered, but the agent does not have the answer yet.
func (r *Record) answered() bool {
	return r.State == NeedsInput && r.Socket == "" && len(r.Open()) == 0
}

// ownerless is how long a process that follows a run waits for a new owner.
const ownerless = 2 * time.Second

// CheckProgress returns a fault if a run will not continue: it is queued or answered, but has had no owner for a while.
// A process that follows the run calls it each time it reads the record, always with the same since.
func (s Store) CheckProgress(r Record, since *time.Time) error {
	if _, held := s.Owner(r.ID); held || !r.untouched() && !r.answered() {
		*since = time.Now()
		return nil
	}
	if time.Since(*since) < ownerless {
		return nil
	}
	return fault.New(fault.ServiceDown, "no process is working on %s, which is %s", r.ID, r.State).With("run_id", r.ID).
		Hint("omniagent runs continue %s", r.ID)
}

// Owner returns the process that carries out a run.
func (s Store) Owner(id string) (by workspace.Holder, alive bool) {
	return workspace.HolderOf(filepath.Join(s.Path(id), ownerFile))
}

// settle ends a run whose owner died, unless it only waits for an answer.
func (r *Run) settle() error {
	if r.State.Terminal() || r.untouched() || r.State == NeedsInput && r.Socket == "" {
		return nil
	}
	r.Socket = ""
	if r.State == NeedsInput && len(r.Open()) > 0 {
		return r.save()
	}
	now := time.Now().UTC()
	v := Verdict{
		State: Failed, Reason: OwnerDied,
		Fault: fault.New(fault.AgentFailed, "the process of the run died before the agent got the task").
			Hint("omniagent runs retry %s", r.ID),
		Evidence: []string{"no process owns the run", "no message reached an agent"},
	}
	if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Ended.IsZero() {
		a := &r.Attempts[n-1]
		a.Ended = now
		process.RemoveEmpty(a.RemoveIfEmpty)
		if began, last := r.store.delivered(*a); began {
			a.Last = last
			v = Verdict{
				State: UnknownOutcome, Reason: OwnerDied,
				Fault: r.unseen(a.Agent),
				Evidence: []string{
					"no process owns the run", "the journal of " + a.Session + " has a message without an end",
				},
			}
		}
		a.State, a.Reason = v.State, v.Reason
	}
	if r.Fork != "" { // this process does not see its files
		return r.conclude(v, Ending{}, nil)
	}
	r.recall(context.Background())
	return r.conclude(v, Ending{}, r.changed(context.Background()))
}

// unseen returns the fault of a run whose owner died while its agent worked.
func (r *Run) unseen(agent string) *fault.Fault {
	f := fault.New(fault.UnknownOutcome,
		"the process that watched %s died in the middle of its turn; how that ended is unknown", agent)
	turn := ""
	if r.store.Turn != nil && r.Fork == "" {
		turn = r.store.Turn(r.Dir, r.ID)
	}
	switch {
	case r.Fork != "":
		return f.Hint("omniagent fork diff %s shows what it changed; then: omniagent runs retry %s", r.Fork, r.ID)
	case turn != "":
		return f.Hint("omniagent undo %s --dry-run shows what it changed, and what others may have changed since; "+
			"then: omniagent runs retry %s", turn, r.ID)
	}
	return f.Hint("look at what it changed, then: omniagent runs retry %s", r.ID)
}

// delivered reports whether the message of an attempt is in the journal, so that the agent may have acted on it.
func (s Store) delivered(a Attempt) (began bool, last int64) {
	if a.Session == "" {
		return false, 0
	}
	v, err := s.Sessions.Show(a.Session)
	if err != nil {
		return true, 0 // unknown, so assume that something happened
	}
	defer v.Close()
	return v.Last() > a.First, v.Last()
}

// Lost returns the runs whose owner died, without changing them. Load ends each.
func (s Store) Lost() (all []Record) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if r, err := s.Peek(e.Name()); err == nil && s.orphaned(r) {
			all = append(all, r)
		}
	}
	return all
}

// Skipped is a directory without a readable record.
type Skipped struct {
	ID  string
	Err error
}

// List returns the runs, the newest first, each in its true state.
func (s Store) List(ctx context.Context) (all []Record, skipped []Skipped, err error) {
	entries, err := os.ReadDir(s.Dir)
	if workspace.Absent(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fault.New(fault.PermissionDenied, "%s cannot be read", s.Dir).Because(err)
	}
	for _, e := range entries {
		if !e.IsDir() || session.CheckID(e.Name()) != nil {
			continue
		}
		r, err := s.Load(ctx, e.Name())
		if errors.Is(err, fault.NotFoundCode) { // it is being created or deleted
			continue
		}
		if err != nil {
			skipped = append(skipped, Skipped{e.Name(), err})
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Record) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	})
	return all, skipped, ctx.Err()
}

// Beside returns the ids of other runs that worked in the directory of a run while it did, in order.
func (s Store) Beside(r Record) (ids []string) {
	entries, _ := os.ReadDir(s.Dir)
	for _, e := range entries {
		other, err := s.Peek(e.Name())
		if err != nil || other.ID == r.ID || len(other.Attempts) == 0 || len(r.Attempts) == 0 ||
			other.Fork != "" || !pathname.Within(r.Dir, other.Dir) && !pathname.Within(other.Dir, r.Dir) {
			continue
		}
		late := other.Result != nil && other.State.Terminal() && other.Result.Ended.Before(r.Attempts[0].Began)
		if late || r.Result != nil && r.State.Terminal() && other.Attempts[0].Began.After(r.Result.Ended) {
			continue
		}
		ids = append(ids, other.ID)
	}
	return ids
}

// Delete removes a run without an owner, even if its record is damaged. It keeps its conversations. It returns CONFLICT
// if the run has an owner.
func (s Store) Delete(ctx context.Context, id string) error {
	if _, err := s.Peek(id); errors.Is(err, fault.NotFoundCode) {
		return err
	}
	held, err := workspace.Lock(ctx, filepath.Join(s.Path(id), ownerFile), lockWait)
	if errors.Is(err, fault.LockHeld) {
		return fault.New(fault.Conflicting, "%s is under way", id).With("run_id", id).
			Hint("omniagent runs cancel %s", id)
	}
	if err != nil {
		return err
	}
	defer held.Unlock() //nolint:errcheck // the file is gone
	// Remove the record first: without it there is no run, so that no run is half deleted.
	if err = os.Remove(filepath.Join(s.Path(id), recordFile)); err == nil {
		err = os.RemoveAll(s.Path(id))
	}
	if err != nil {
		return fault.New(fault.PermissionDenied, "%s cannot be removed", s.Path(id)).Because(err)
	}
	return nil
}

// pruneBatch is how many runs Prune examines in one call.
const pruneBatch = 50

// Prune deletes runs that have been over for longer than keep. To be cheap, a call examines at most pruneBatch of those
// that are old enough, chosen at random, because some are not deleted, such as those that wait for an answer.
func (s Store) Prune(ctx context.Context, keep time.Duration) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil || keep <= 0 {
		return
	}
	old := slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		made, known := ident.TimeOf(strings.TrimPrefix(e.Name(), idPrefix))
		return !e.IsDir() || session.CheckID(e.Name()) != nil || known && time.Since(made) < keep
	})
	if len(old) > pruneBatch {
		rand.Shuffle(len(old), func(i, j int) { old[i], old[j] = old[j], old[i] })
		old = old[:pruneBatch]
	}
	for _, e := range old {
		r, err := s.Peek(e.Name())
		if err == nil && r.State.Terminal() && time.Since(r.Since) > keep {
			_ = s.Delete(ctx, r.ID) // the next call tries again
		}
	}
}
