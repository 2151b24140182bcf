// Package undo keeps what a workspace was before and after each turn of an agent, and takes turns back.
//
//	turn, err := store.Begin(ctx, undo.Origin{Dir: dir, Session: id})
//	// an agent works, with its own tools and through a shell
//	record, err := turn.End(ctx, time.Now())
//
//	out, err := store.Back(ctx, undo.Wish{Dir: dir}) // the last turn that changed something
//	out, err = store.Back(ctx, undo.Wish{Dir: dir, Redo: true})
//
// A snapshot is the index of package tree, with the content of every file that git does not have, and the state of git
// as files: HEAD, refs, logs, index, stash, a merge or rebase in progress, configuration, hooks. Git's objects are
// pinned: the store has a hard link to each pack and each loose object, so that they survive whatever happens to the
// repository. Where the store is on another file system they are copied. Nothing is written into the repository until
// a turn is taken back.
//
// Back changes only paths that differ before and after the turn, and only if they still are as the turn left them. The
// others stay and are told. The state of a repository is restored as a whole or not at all. Back is a turn itself,
// which can be taken back. If the process dies in the middle, the next Back completes it: each file is replaced
// atomically, so it is as the turn left it or as it is to be, and the journal says what was asked for.
//
// It covers the repository in which the directory is, or the directory itself without one. It does not restore owners,
// access lists, extended attributes, devices, sockets, hard links between files, or the time of a file that was only
// touched. What a snapshot does not have is a gap of its record.
package undo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/tree"
	"omniagent/internal/workspace"
)

// Store is the directory with the snapshots of all workspaces. Any number of processes may use it.
type Store struct {
	Dir  string
	Home string // the home directory, which is never covered as a whole; empty: unknown
	// The limits of what a snapshot keeps. 0 means the default.
	FileLimit    int64 // bytes of a file, 64 MiB
	TotalLimit   int64 // bytes together, 1 GiB
	IgnoredLimit int64 // bytes of files that .gitignore excludes, 128 MiB
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

// Kind says what a record is of.
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
}

// Record is what is known of a turn.
type Record struct {
	ID string `json:"id"`
	Origin
	Kind  Kind      `json:"kind"`
	Roots []string  `json:"roots"` // the first is the workspace, the others are repositories outside of it
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	Files int       `json:"files"` // that changed
	// Some of them.
	Changed []string `json:"changed,omitempty"`
	// Of is the record that this one took back; Back is the record that took back this one.
	Of   string `json:"of,omitempty"`
	Back string `json:"back,omitempty"`
	// Late means that the agent may have changed something before the first snapshot was complete.
	Late bool `json:"late,omitempty"`
	// Abandoned means that the process died, so that the second snapshot was taken later.
	Abandoned bool       `json:"abandoned,omitempty"`
	Gaps      []tree.Gap `json:"gaps,omitempty"` // what the snapshots do not have
}

const (
	recordFile  = "record.json"
	openDir     = "open" // a lock for each turn that is under way
	journalFile = "journal.json"
	mostListed  = 100 // changed files and gaps in a record
)

// place is the part of the store that one workspace has.
type place struct {
	store Store
	root  string
	dir   string
	held  *workspace.FileLock
}

// Root returns the directory that is covered for an agent that works in dir: the top of its repository, or dir itself.
// It returns an error if that cannot be covered.
func (s Store) Root(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if err != nil {
		return "", fault.New(fault.FileMissing, "%s cannot be covered: %v", dir, err).Because(err)
	}
	top := full
	for at := full; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil && !s.tooWide(at) {
			top = at
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if s.tooWide(top) {
		return "", fault.New(fault.Unsupported, "%s is too wide for a snapshot: undo does not cover it", top).
			With("path", top).Hint("work in a directory beneath it")
	}
	return top, nil
}

// tooWide reports whether a directory is that of the system, or a home directory, or has one in it.
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
	return &place{store: s, root: root, dir: filepath.Join(s.Dir, key(root))}, nil
}

// key is a short name of a path.
func key(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}

// lock keeps other processes away from the part.
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

func (p *place) contents() *tree.Store { return tree.OpenStore(filepath.Join(p.dir, "contents")) }

func (p *place) turn(id string) string { return filepath.Join(p.dir, "turns", id) }

// alive is the file that the process locks which has the turn.
func (p *place) alive(id string) string { return filepath.Join(p.dir, openDir, id) }

// open are the turns that are under way, or whose process has died.
func (p *place) open() (ids []string) {
	entries, _ := os.ReadDir(filepath.Join(p.dir, openDir))
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

// List returns the records of the workspace in which dir is, the newest first. A turn that is under way is among them,
// without an end.
func (s Store) List(dir string) ([]Record, error) {
	p, err := s.place(dir)
	if err != nil {
		return nil, err
	}
	return p.list()
}

// All returns the records of all workspaces, the newest first.
func (s Store) All() ([]Record, error) {
	dirs, err := filepath.Glob(filepath.Join(s.Dir, "*", "turns"))
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, dir := range dirs {
		p := &place{store: s, dir: filepath.Dir(dir)}
		records, err := p.list()
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	slices.SortFunc(all, newestFirst)
	return all, nil
}

func newestFirst(a, b Record) int { return strings.Compare(b.ID, a.ID) }

func (p *place) list() ([]Record, error) {
	entries, err := os.ReadDir(filepath.Join(p.dir, "turns"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.PermissionDenied, "%s cannot be read: %v", p.dir, err).Because(err)
	}
	all := []Record{}
	for _, e := range entries {
		if r, err := p.read(e.Name()); err == nil {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, newestFirst)
	return all, nil
}

func (p *place) read(id string) (r Record, err error) {
	err = readJSON(filepath.Join(p.turn(id), recordFile), &r)
	return r, err
}

func (p *place) write(r Record) error { return writeJSON(filepath.Join(p.turn(r.ID), recordFile), r) }

const jsonLimit = 16 << 20

func readJSON(path string, to any) error {
	data, err := workspace.ReadFile(path, jsonLimit)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	return err
}

func writeJSON(path string, from any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fault.New(fault.Internal, "%s cannot be written: %v", path, err)
	}
	return workspace.Replace(path, data, 0o600)
}
