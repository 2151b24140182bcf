// Package undo takes snapshots of a workspace before and after each turn of an agent, and takes turns back.
//
//	turn, err := store.Begin(ctx, undo.Origin{Dir: dir, Session: id})
//	// an agent works, with its own tools and through a shell
//	record, err := turn.End(ctx, time.Now())
//
//	out, err := store.Undo(ctx, undo.Request{Dir: dir}) // the last turn that changed something
//	out, err = store.Undo(ctx, undo.Request{Dir: dir, Redo: true})
//
// A snapshot is an index of package snapshot, with the content of every file that git does not have, and the state of
// git as files: HEAD, refs, logs, index, stash, a merge or rebase in progress, configuration, hooks. Git's objects are
// pinned, so that they survive whatever happens to the repository: the store has the bytes of each loose object, and a
// clone of each pack or, if the file system has no clones, a hard link to it. Git never writes into a pack again; if
// another program opens one for writing during a turn, it waits until the store has a copy, on systems with leases. A
// pack that is damaged all the same is noticed by its checksum and not given back. Nothing is written into the
// repository until a turn is undone.
//
// Undo changes only paths that differ before and after the turn, only if they still are as the turn left them, and only
// if the snapshot that Undo itself takes first has what is there now. The others are kept and listed. The state of a
// repository is restored as a whole or not at all. Undo is a turn itself, which can be taken back. If the process dies
// in the middle, the next Undo completes it: each file is replaced atomically, so it is as the turn left it or as it
// was before, and the journal says what was asked for.
//
// It covers the repository in which the directory is, or the directory itself without one. It does not restore the mode
// of that directory, owners, access lists, extended attributes, devices, sockets, hard links between files, or the time
// of a file that was only touched. What a snapshot does not have is a gap of its record.
package undo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
)

// Store is the directory with the snapshots of all workspaces. Any number of processes may use it.
type Store struct {
	Dir  string
	Home string // the home directory, which is never covered as a whole; empty: unknown
	// The limits of what a snapshot keeps. 0 means the default.
	FileLimit    int64 // bytes of a file, 64 MiB
	TotalLimit   int64 // bytes together, 1 GiB
	IgnoredLimit int64 // bytes of files that .gitignore excludes, 128 MiB

	Private func(content []byte) bool // see snapshot.Options; nil: nothing is

	// Calls returns what the recorded calls of a turn say that they changed, for a turn whose process died. If it is
	// nil or returns nil, nothing is recorded.
	Calls func(context.Context, Record) *touch.Window

	// Known is a file that lists the directories of all stores, one a line, outside of what an agent can write. What
	// they share with a repository is covered. It may be empty.
	Known string
}

const (
	fileLimit    = 64 << 20
	totalLimit   = 1 << 30
	ignoredLimit = 128 << 20
	countLimit   = 100_000

	lockWait = 30 * time.Second
	walkTime = 20 * time.Second // for one snapshot
)

// Patience is how long an agent should be held back until its first snapshot is complete, if it is not known to take
// longer until it acts.
const Patience = 250 * time.Millisecond

// Kind says what was recorded.
type Kind string

// The kinds.
const (
	OfTurn Kind = "turn" // an agent's
	OfUndo Kind = "undo"
	OfRedo Kind = "redo"
)

// Origin says whose turn it is.
type Origin struct {
	Dir     string `json:"dir"` // where the agent works, absolute
	Session string `json:"session_id,omitempty"`
	Turn    int64  `json:"turn,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Run     string `json:"run_id,omitempty"`
	Fork    string `json:"fork_id,omitempty"` // whose changes the turn brought home
}

// Record describes a turn, an undo or a redo.
type Record struct {
	ID string `json:"id"`
	Origin
	Kind  Kind      `json:"kind"`
	Roots []string  `json:"roots"` // the first is the workspace, the others are repositories outside of it
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	Files int       `json:"files"` // how many changed
	// Some of those that changed.
	Changed []string `json:"changed,omitempty"`
	// OwnOnly says that Files and Changed are only what the agent changed. Doubtful is how many it has perhaps changed,
	// and Possible are some of them.
	OwnOnly  bool     `json:"judged,omitempty"`
	Doubtful int      `json:"doubtful,omitempty"`
	Possible []string `json:"perhaps,omitempty"`
	// FromCalls says that some of Files may only be what the agent's calls say. WithinTurn says that it worked for
	// another agent, in whose turn its changes are too.
	FromCalls  bool `json:"said,omitempty"`
	WithinTurn bool `json:"under,omitempty"`
	// Undoes is the record that this one took back; UndoneBy is the record that took back this one.
	Undoes   string `json:"of,omitempty"`
	UndoneBy string `json:"back,omitempty"`
	// Late means that the agent may have changed something before the first snapshot was complete.
	Late bool `json:"late,omitempty"`
	// Abandoned means that the process died: the second snapshot is taken later, or was.
	Abandoned bool `json:"abandoned,omitempty"`
	// Damaged means that the record itself cannot be read, so nothing else is known.
	Damaged bool           `json:"-"`
	Gaps    []snapshot.Gap `json:"gaps,omitempty"` // what the snapshots do not have
}

const (
	recordFile  = "record.json"
	openDir     = "open" // a lock for each turn that is under way
	journalFile = "journal.json"
	mostListed  = 100 // changed files and gaps in a record
)

// place is the part of the store that belongs to one workspace.
type place struct {
	store Store
	root  string
	dir   string
	held  *workspace.FileLock
}

// resolve returns a directory without links. A directory that no longer exists is allowed.
func resolve(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", fault.New(fault.FileMissing, "%s cannot be found: %s", dir, fault.Bare(err)).Because(err)
	}
	rest := ""
	for at := full; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !workspace.Absent(err) || at == filepath.Dir(at) {
			return "", fault.New(fault.FileMissing, "%s cannot be found: %s", dir, fault.Bare(err)).Because(err)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// Root returns the directory that is covered for an agent that works in dir: the top of its repository, or dir itself.
// It fails if that is too wide or not UTF-8.
func (s Store) Root(dir string) (string, error) {
	full, err := resolve(dir)
	if err != nil {
		return "", err
	}
	top, _ := config.ProjectRoot(full)
	if s.tooWide(top) { // a home directory that is a repository
		top = full
	}
	if s.tooWide(top) {
		return "", fault.New(fault.Unsupported,
			"%s holds a whole home directory or system, which neither undo nor a fork covers", top).
			With("path", top).Hint("work in a directory inside it")
	}
	if !utf8.ValidString(top) { // a record would name another directory, and undo would write there
		return "", fault.New(fault.Unsupported, "the path %s is not UTF-8, so neither undo nor a fork covers it",
			strings.ToValidUTF8(top, "\uFFFD")).Hint("work in a directory whose path is UTF-8")
	}
	return top, nil
}

// tooWide reports whether a directory is the root of a file system, or a home directory, or contains one.
func (s Store) tooWide(dir string) bool {
	home, err := filepath.EvalSymlinks(s.Home)
	if err != nil || s.Home == "" {
		home = s.Home
	}
	return dir == filepath.Dir(dir) || home != "" &&
		(dir == home || strings.HasPrefix(home, dir+string(filepath.Separator)))
}

// place returns the part of the store for the workspace in which dir is.
func (s Store) place(dir string) (*place, error) {
	root, err := s.Root(dir)
	if err != nil {
		return nil, err
	}
	return s.placeAt(root), nil
}

func (s Store) placeAt(root string) *place {
	return &place{store: s, root: root, dir: filepath.Join(s.Dir, key(root))}
}

// places returns the parts of the store to which a directory may belong, the current one first. If a turn removed or
// made the repository, its record is in another part: that of the directory itself, or of one above it.
func (s Store) places(dir string) ([]*place, error) {
	full, err := resolve(dir)
	if err != nil {
		return nil, err
	}
	var all []*place
	first, err := s.place(dir)
	if err == nil {
		all = append(all, first)
	}
	for at := full; at != filepath.Dir(at); at = filepath.Dir(at) {
		p := s.placeAt(at)
		if first != nil && at == first.root || !exists(p.dir) {
			continue
		}
		records, err := p.list()
		if err != nil {
			return nil, err
		}
		moved := func(r Record) bool { return p.movedRepository(r, full) }
		if at == full && len(records) > 0 || slices.ContainsFunc(records, moved) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, err
	}
	return all, nil
}

// movedRepository reports whether a turn removed or made a .git in a directory, or above it in the workspace.
func (p *place) movedRepository(r Record, dir string) bool {
	before, err := snapshot.LoadFile(p.index(r.ID, "before", 0))
	if err != nil {
		return false
	}
	after, err := snapshot.LoadFile(p.index(r.ID, "after", 0))
	for at := dir; ; at = filepath.Dir(at) {
		rel, _ := filepath.Rel(p.root, filepath.Join(at, ".git"))
		exists := err == nil && after.Find(filepath.ToSlash(rel)) != nil || err != nil &&
			exists(filepath.Join(at, ".git"))
		if exists != (before.Find(filepath.ToSlash(rel)) != nil) {
			return true
		}
		if at == p.root || at == filepath.Dir(at) {
			return false
		}
	}
}

// key returns a short name for a path.
func key(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}

// lock locks this part of the store against other processes.
func (p *place) lock(ctx context.Context) (err error) {
	for _, name := range []string{"turns", openDir} {
		if err = workspace.MkdirAll(filepath.Join(p.dir, name)); err != nil {
			return err
		}
	}
	p.held, err = workspace.Lock(ctx, filepath.Join(p.dir, "lock"), lockWait)
	return err
}

func (p *place) unlock() { _ = p.held.Unlock() }

func (p *place) contents() *snapshot.Store {
	return snapshot.OpenStore(filepath.Join(p.dir, "contents"))
}

func (p *place) turn(id string) string { return filepath.Join(p.dir, "turns", id) }

// alive returns the file that a process keeps locked while its turn is under way.
func (p *place) alive(id string) string { return filepath.Join(p.dir, openDir, id) }

// open returns the turns that are under way, or whose process has died.
func (p *place) open() []string {
	ids, _ := namesOf(filepath.Join(p.dir, openDir), "")
	return ids
}

// index returns the file of an index of a turn; which is "before" or "after".
func (p *place) index(id, which string, root int) string {
	return filepath.Join(p.turn(id), which+"-"+strconv.Itoa(root))
}

// List returns the records of the workspace in which dir is, the newest first. A turn that is under way is among them,
// without an end.
func (s Store) List(dir string) ([]Record, error) {
	places, err := s.places(dir)
	if err != nil {
		return nil, err
	}
	return listAll(places)
}

// TakenBack reports whether a turn of the workspace of dir was undone. known is false if its record cannot be read.
func (s Store) TakenBack(dir, id string) (back, known bool) {
	p, err := s.place(dir)
	if err != nil {
		return false, false
	}
	r, err := p.read(id)
	return err == nil && r.UndoneBy != "", err == nil
}

func listAll(places []*place) ([]Record, error) {
	all := []Record{}
	for _, p := range places {
		records, err := p.list()
		if err != nil {
			return nil, err
		}
		for i, r := range records {
			if underWay(r) && p.died(r) {
				records[i].Abandoned = true
			}
		}
		all = append(all, records...)
	}
	slices.SortFunc(all, newestFirst)
	return all, nil
}

// All returns the records of all workspaces, the newest first.
func (s Store) All() ([]Record, error) {
	places, err := s.all()
	if err != nil {
		return nil, err
	}
	return listAll(places)
}

// all returns the parts of the store of all workspaces. Their roots are not set.
func (s Store) all() (places []*place, err error) {
	names, err := namesOf(s.Dir, "")
	for _, name := range names {
		if p := (&place{store: s, dir: filepath.Join(s.Dir, name)}); exists(filepath.Join(p.dir, "turns")) {
			places = append(places, p)
		}
	}
	return places, err
}

// namesOf returns the names in a directory of the store that have a prefix. The directory need not exist.
func namesOf(dir, prefix string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !workspace.Absent(err) {
		return nil, fault.New(fault.PermissionDenied, "%s cannot be read: %s", dir, fault.Bare(err)).Because(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func newestFirst(a, b Record) int { return strings.Compare(b.ID, a.ID) }

func (p *place) list() ([]Record, error) {
	ids, err := namesOf(filepath.Join(p.dir, "turns"), "")
	if err != nil {
		return nil, err
	}
	all := []Record{}
	for _, id := range ids {
		switch r, err := p.read(id); {
		case err == nil:
			all = append(all, r)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fault.FileMissing):
			all = append(all, p.damaged(id))
		}
	}
	slices.SortFunc(all, newestFirst)
	return all, nil
}

// damaged returns a record for a turn whose record cannot be read.
func (p *place) damaged(id string) Record {
	made, _ := ident.TimeOf(id)
	r := Record{ID: id, Kind: OfTurn, Began: made, Ended: made, Damaged: true, Roots: []string{}}
	if p.root != "" {
		r.Roots = append(r.Roots, p.root)
	}
	return r
}

func (p *place) read(id string) (r Record, err error) {
	err = workspace.ReadJSON(filepath.Join(p.turn(id), recordFile), jsonLimit, &r)
	return r, err
}

func (p *place) write(r Record) error { return writeJSON(filepath.Join(p.turn(r.ID), recordFile), r) }

const jsonLimit = 16 << 20

// exists reports whether something exists at a path. It returns true if that cannot be found out.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !workspace.Absent(err)
}

func writeJSON(path string, from any) error {
	return workspace.WriteJSON(path, from, workspace.Replace)
}
