package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/ident"
	"omniagent/internal/session"
	"omniagent/internal/workspace"
)

// Store is the directory of the runs. Each run has a directory of its own in it, which only the user may enter.
type Store struct {
	Dir      string
	Sessions session.Store // where the conversations of the runs are
}

// The files of a run.
const (
	recordFile = "run.json"
	ownerFile  = "owner"  // locked by the owner
	startFile  = "start"  // the index of the workspace before the run
	outputFile = "stdout" // of the agent, every byte
	errorFile  = "stderr"
	maxRecord  = 16 << 20
)

const version = 1 // of the record

const idPrefix = "run-"

// NewID returns an id for a run. Ids sort by the time at which they were made.
func NewID() string { return idPrefix + ident.Ordered() }

// Path returns the directory of a run.
func (s Store) Path(id string) string { return filepath.Join(s.Dir, id) }

// Run is a run that this process owns.
type Run struct {
	Record
	store   Store
	held    *workspace.FileLock
	secrets map[string]string // answers that are kept nowhere, by question
}

// Create begins a run, which this process owns. Others know of it when it is saved: at once if it is to be left to
// another process, else by Work, or by Answer.
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
	if r.held, err = workspace.Lock(ctx, filepath.Join(s.Path(id), ownerFile), looked); err != nil {
		return nil, err
	}
	if task.Detached {
		err = r.save()
	}
	return r, err
}

// Abandon ends the ownership of a run that did not begin, and of which nobody is to know.
func (r *Run) Abandon() {
	_ = r.held.Unlock()
	_ = os.RemoveAll(r.Path())
}

// looked is how long a lock may be held by processes that only ask who the owner is.
const looked = 500 * time.Millisecond

// Own makes this process the owner of a run that has none. It refuses a run that is over, with CONFLICT, and settles
// one whose owner died, which then is over.
func (s Store) Own(ctx context.Context, id string) (*Run, error) {
	if _, err := s.read(id); err != nil {
		return nil, err
	}
	held, err := workspace.Lock(ctx, filepath.Join(s.Path(id), ownerFile), looked)
	if errors.Is(err, fault.LockHeld) {
		return nil, owned(id, err)
	}
	if err != nil {
		return nil, err
	}
	record, err := s.read(id) // it may have ended meanwhile
	if err != nil {
		_ = held.Unlock()
		return nil, err
	}
	r := &Run{Record: record, store: s, held: held}
	if err := r.settle(); err != nil {
		_ = held.Unlock()
		return nil, err
	}
	if r.State.Terminal() {
		_ = held.Unlock()
		return nil, over(r.Record)
	}
	return r, nil
}

// Free returns a run that this process could own. It refuses what Own refuses.
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

// over is the fault of a call that would go on with a run that is over.
func over(r Record) error {
	return fault.New(fault.Conflicting, "%s is over: it is %s", r.ID, r.State).With("run_id", r.ID).
		Hint("omniagent runs retry %s", r.ID)
}

// owned is the fault of a call that would carry out a run that another process carries out.
func owned(id string, cause error) error {
	return fault.New(fault.Conflicting, "another process carries out %s", id).With("run_id", id).Because(cause)
}

// Release ends the ownership.
func (r *Run) Release() error { return r.held.Unlock() }

// Path returns the directory of the run.
func (r *Run) Path() string { return r.store.Path(r.ID) }

// save writes the record. It survives the end of this process, and a crash of the machine where somebody may act on
// what it says: on a question, an answer, or an end. What an agent was sent is in the journal, which is on the disk
// before.
func (r *Run) save() error {
	data, err := json.MarshalIndent(r.Record, "", "  ")
	if err != nil {
		return fault.New(fault.Internal, "the record of %s cannot be written", r.ID).Because(err)
	}
	path, data := filepath.Join(r.Path(), recordFile), append(data, '\n')
	if r.State.Terminal() || len(r.Questions) > 0 || r.Detached {
		return workspace.WriteFile(path, data, 0o600)
	}
	return workspace.Replace(path, data, 0o600)
}

// enter changes the state. A run that is over stays as it is.
func (r *Run) enter(state State) error {
	if r.State.Terminal() {
		return fault.New(fault.Internal, "%s is over: it is %s and cannot become %s", r.ID, r.State, state)
	}
	now := time.Now().UTC()
	_, r.Waited = r.Times(now)
	r.State, r.Since = state, now
	return r.save()
}

// read reads a record as it is on disk.
func (s Store) read(id string) (Record, error) {
	var r Record
	if err := session.CheckID(id); err != nil {
		return r, fault.New(fault.NotFoundCode, "there is no run %q", id).Hint("omniagent runs list")
	}
	data, err := workspace.ReadFile(filepath.Join(s.Path(id), recordFile), maxRecord)
	if absent(err) {
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

// absent reports whether a file is not there. HOME may be a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.FileMissing) || errors.Is(err, syscall.ENOTDIR)
}

// Peek returns the state of a run as its owner wrote it.
func (s Store) Peek(id string) (Record, error) { return s.read(id) }

// Load returns the true state of a run. If its owner died, the run is over, and Load records that. If another process
// is about to record it, Load waits for that.
func (s Store) Load(ctx context.Context, id string) (Record, error) {
	record, err := s.read(id)
	for began := time.Now(); err == nil && s.settled(record) && time.Since(began) < settling && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-time.After(settleGap):
		}
		record, err = s.read(id)
	}
	if err != nil || !s.orphaned(record) {
		return record, err
	}
	r, err := s.Own(ctx, id)
	switch {
	case err == nil: // it only waits for an answer
		defer r.Release() //nolint:errcheck // nothing was written
		return r.Record, nil
	case errors.Is(err, fault.Conflicting): // settled, or another process has it again
		return s.read(id)
	}
	return record, err
}

const (
	settling  = 5 * time.Second // for a look at the workspace, and the record
	settleGap = 2 * time.Millisecond
)

// settled reports whether a process records the end of a run whose owner died: it has the lock, but does not listen
// where the owner did.
func (s Store) settled(r Record) bool {
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

// orphaned reports whether a run should have an owner and has none.
func (s Store) orphaned(r Record) bool {
	if r.State.Terminal() {
		return false
	}
	if _, held := workspace.HolderOf(filepath.Join(s.Path(r.ID), ownerFile)); held {
		return false
	}
	return r.State != NeedsInput && !r.untouched() || r.Socket != ""
}

// untouched reports whether no agent works for a run, nor has to be asked about: any process may take it up.
func (r *Record) untouched() bool {
	return r.State == Queued && (len(r.Attempts) == 0 || !r.Until.IsZero())
}

// Rests reports whether nothing goes on until a person has answered.
func (r *Record) Rests() bool { return r.State == NeedsInput && r.Socket == "" && len(r.Open()) > 0 }

// answered reports whether a person has answered, and the agent does not know it yet.
func (r *Record) answered() bool {
	return r.State == NeedsInput && r.Socket == "" && len(r.Open()) == 0
}

// ownerless is how long those who follow a run wait for a process that takes it up.
const ownerless = 2 * time.Second

// Followed returns a fault if nothing will happen in a run: it is queued or answered, and no process has owned it since
// then. A process that follows the run asks each time that it looks at it, with one and the same since.
func (s Store) Followed(r Record, since *time.Time) error {
	if _, held := s.Owner(r.ID); held || !r.untouched() && !r.answered() {
		*since = time.Now()
		return nil
	}
	if time.Since(*since) < ownerless {
		return nil
	}
	return fault.New(fault.Down, "nobody carries out %s: it is %s", r.ID, r.State).With("run_id", r.ID).
		Hint("omniagent runs continue %s", r.ID)
}

// Owner returns the process that carries a run out.
func (s Store) Owner(id string) (by workspace.Holder, alive bool) {
	return workspace.HolderOf(filepath.Join(s.Path(id), ownerFile))
}

// settle ends a run whose owner died. One that only waited for an answer waits on.
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
		Fault: fault.New(fault.AgentFailed, "the process that carried it out died before the agent had the task").
			Hint("omniagent runs retry %s", r.ID),
		Evidence: []string{"no process owns the run", "no message reached an agent"},
	}
	if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Ended.IsZero() {
		a := &r.Attempts[n-1]
		a.Ended = now
		if began, last := r.store.delivered(*a); began {
			a.Last = last
			v = Verdict{
				State: UnknownOutcome, Reason: OwnerDied,
				Fault: fault.New(fault.UnknownOutcome,
					"the process that watched %s died in the middle of its turn: nobody saw how that ended", a.Agent).
					Hint("look at what it changed, then: omniagent runs retry %s", r.ID),
				Evidence: []string{
					"no process owns the run", "the journal of " + a.Session + " has a message without an end",
				},
			}
		}
		a.State, a.Reason = v.State, v.Reason
	}
	return r.conclude(v, Ending{}, r.changed(context.Background()))
}

// delivered reports whether the message of an attempt is in the journal, so that the agent may have acted on it.
func (s Store) delivered(a Attempt) (began bool, last int64) {
	if a.Session == "" {
		return false, 0
	}
	v, err := s.Sessions.Show(a.Session)
	if err != nil {
		return true, 0 // it cannot be told, so nobody may claim that nothing happened
	}
	defer v.Close()
	return v.Last() > a.First, v.Last()
}

// Lost returns the runs whose owner died, as it left them. Load closes each.
func (s Store) Lost() (all []Record) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if r, err := s.read(e.Name()); err == nil && s.orphaned(r) {
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
	if absent(err) {
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
		if errors.Is(err, fault.NotFoundCode) { // it is being made, or deleted
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

// Delete removes a run that is over, or that nobody carries out. Its conversations stay.
func (s Store) Delete(ctx context.Context, id string) error {
	if _, err := s.read(id); err != nil {
		return err
	}
	held, err := workspace.Lock(ctx, filepath.Join(s.Path(id), ownerFile), looked)
	if errors.Is(err, fault.LockHeld) {
		return fault.New(fault.Conflicting, "%s is under way", id).With("run_id", id).
			Hint("omniagent runs cancel %s", id)
	}
	if err != nil {
		return err
	}
	defer held.Unlock() //nolint:errcheck // the file is gone
	// The record goes first: without it there is no run, so a run is not half deleted.
	if err := os.Remove(filepath.Join(s.Path(id), recordFile)); err != nil {
		return fault.New(fault.PermissionDenied, "%s cannot be removed", s.Path(id)).Because(err)
	}
	if err := os.RemoveAll(s.Path(id)); err != nil {
		return fault.New(fault.PermissionDenied, "%s cannot be removed", s.Path(id)).Because(err)
	}
	return nil
}

// pruned is how many runs Prune looks at, the oldest ones.
const pruned = 50

// Prune deletes the records of runs that have been over for longer than keep. A call looks at some of them only, and at
// none that began later, so that it costs little.
func (s Store) Prune(ctx context.Context, keep time.Duration) {
	entries, err := os.ReadDir(s.Dir) // in the order of their names, which is that of their age
	if err != nil || keep <= 0 {
		return
	}
	looked := 0
	for _, e := range entries {
		if !e.IsDir() || session.CheckID(e.Name()) != nil {
			continue
		}
		made, known := ident.Made(strings.TrimPrefix(e.Name(), idPrefix))
		if looked++; looked > pruned || known && time.Since(made) < keep {
			return
		}
		r, err := s.read(e.Name())
		if err == nil && r.State.Terminal() && time.Since(r.Since) > keep {
			_ = s.Delete(ctx, r.ID) // the next call tries again
		}
	}
}
