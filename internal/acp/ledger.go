package acp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/fault"
	wire "omniagent/internal/proto/acp"
	"omniagent/internal/session"
	"omniagent/internal/workspace"
)

// Ledger keeps the sessions of an agent whose own records we do not read: what the client was told, and what the agent calls the session. Its
// files are open to the user alone.
type Ledger struct {
	Dir   string // of the files
	Agent string
	Mask  func([]byte) []byte // takes secrets out of what is kept; nil: nothing does
	Log   func(format string, args ...any)
}

var _ Keeper = Ledger{}

// entry is a line of a ledger: one of its members.
type entry struct {
	Begin  *beginning   `json:"begin,omitempty"`
	Resume string       `json:"resume,omitempty"`
	Update *wire.Update `json:"update,omitempty"`
}

type beginning struct {
	Version int       `json:"v"`
	Agent   string    `json:"agent"`
	Dir     string    `json:"dir"`
	Dirs    []string  `json:"dirs,omitempty"`
	Time    time.Time `json:"time"`
}

const ending = ".jsonl"

func (l Ledger) file(id string) string { return filepath.Join(l.Dir, id+ending) }

// NewID is an id for a new session: a UUID, which agents take for their own.
func (Ledger) NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func noLedger(id string) error { return fault.New(fault.NotFoundCode, "there is no session %s", id) }

// Keep takes a session for this process.
func (l Ledger) Keep(ctx context.Context, k Kept) (Record, error) {
	if err := session.CheckID(k.ID); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return nil, fault.New(fault.PermissionDenied, "%s cannot be made", l.Dir).Because(err)
	}
	held, err := workspace.Lock(ctx, filepath.Join(l.Dir, k.ID+".lock"), 0)
	if err != nil {
		return nil, err
	}
	p := &pages{ledger: l, path: l.file(k.ID), held: held}
	// Each opening says where: the last one counts.
	p.put(entry{Begin: &beginning{1, l.Agent, k.Dir, k.Dirs, time.Now().UTC().Truncate(time.Second)}})
	if p.failed != nil {
		_ = held.Unlock()
		return nil, p.failed
	}
	return p, nil
}

// pages are the ledger of one session that is being written.
type pages struct {
	ledger Ledger
	path   string
	held   *workspace.Held
	open   *wire.Update // a text that is still being told
	failed error
}

// longestPiece is how much of a text is held back until the rest of it comes.
const longestPiece = 64 << 10

// Tell notes what the client is told.
func (p *pages) Tell(u wire.Update) {
	if o := p.open; o != nil && o.Kind == u.Kind && o.Message == u.Message && len(o.Text) < longestPiece {
		o.Text += u.Text
		return
	}
	p.flush()
	switch u.Kind {
	case wire.Answer, wire.Thought:
		p.open = &u
	case wire.Said, wire.Called, wire.Planned, wire.Titled:
		p.put(entry{Update: &u})
	}
}

// Resume notes what the agent calls the session.
func (p *pages) Resume(id string) {
	p.flush()
	p.put(entry{Resume: id})
}

func (p *pages) flush() {
	if p.open != nil {
		p.put(entry{Update: p.open})
		p.open = nil
	}
}

func (p *pages) put(e entry) {
	line, err := json.Marshal(e)
	if err == nil {
		if p.ledger.Mask != nil {
			if masked := p.ledger.Mask(line); json.Valid(masked) {
				line = masked
			}
		}
		err = workspace.Append(p.path, line, 0o600)
	}
	if err != nil && p.failed == nil {
		p.failed = err
		p.ledger.Log("the session cannot be kept: %v", err)
	}
}

// Close gives the session free.
func (p *pages) Close() {
	p.flush()
	_ = p.held.Unlock()
}

// read goes through a ledger. A line that cannot be read is passed over: its writer was killed.
func (l Ledger) read(id string, take func(entry) bool) (time.Time, error) {
	if session.CheckID(id) != nil {
		return time.Time{}, noLedger(id)
	}
	info, err := os.Lstat(l.file(id)) // before it is opened: a pipe would be waited for
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return time.Time{}, noLedger(id)
	}
	if err != nil {
		return time.Time{}, fault.New(fault.PermissionDenied, "the session %s cannot be read", id).Because(err)
	}
	f, err := os.Open(l.file(id))
	if err != nil {
		return time.Time{}, fault.New(fault.PermissionDenied, "the session %s cannot be read", id).Because(err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		var e entry
		if len(bytes.TrimSpace(line)) > 0 && json.Unmarshal(line, &e) == nil && !take(e) {
			return info.ModTime(), nil
		}
		if errors.Is(err, io.EOF) {
			return info.ModTime(), nil
		}
		if err != nil {
			return info.ModTime(), fault.New(fault.Internal, "the session %s cannot be read", id).Because(err)
		}
	}
}

// find reads who has a session and where it is. brief: what stands at the beginning is enough.
func (l Ledger) find(id string, brief bool) (Kept, error) {
	k, agent := Kept{ID: id}, ""
	var err error
	k.Updated, err = l.read(id, func(e entry) bool {
		switch {
		case e.Begin != nil:
			agent, k.Dir, k.Dirs = e.Begin.Agent, e.Begin.Dir, e.Begin.Dirs
		case e.Resume != "":
			k.Resume = e.Resume
		case e.Update != nil && e.Update.Kind == wire.Titled:
			k.Title = e.Update.Title
			return !brief
		}
		return true
	})
	if err == nil && agent != l.Agent {
		err = noLedger(id)
	}
	return k, err
}

// Find is a session.
func (l Ledger) Find(_ context.Context, id string) (Kept, error) { return l.find(id, false) }

// List tells of all sessions of the agent in which something was said.
func (l Ledger) List(ctx context.Context) ([]Kept, error) {
	entries, err := os.ReadDir(l.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.PermissionDenied, "%s cannot be read", l.Dir).Because(err)
	}
	var list []Kept
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		id, ours := strings.CutSuffix(e.Name(), ending)
		if k, err := l.find(id, true); ours && err == nil && k.Title != "" {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list, func(a, b Kept) int { return b.Updated.Compare(a.Updated) })
	return list, nil
}

// Replay tells what the client was told.
func (l Ledger) Replay(ctx context.Context, id string, tell func(wire.Update)) error {
	open := map[string]bool{}
	_, err := l.read(id, func(e entry) bool {
		if e.Update == nil {
			return true
		}
		if t := e.Update.Tool; t != nil {
			open[t.ID] = t.Status != wire.Completed && t.Status != wire.FailedCall
		}
		tell(*e.Update)
		return ctx.Err() == nil
	})
	for call, runs := range open {
		if runs { // its process was killed
			tell(wire.Update{Kind: wire.Called, Tool: &wire.Tool{ID: call, Status: wire.FailedCall}})
		}
	}
	return errors.Join(err, ctx.Err())
}

// Fork copies the ledger. The agent has to copy its own session.
func (l Ledger) Fork(ctx context.Context, id, newID string) (Kept, error) {
	k, err := l.find(id, false)
	if err != nil {
		return Kept{}, err
	}
	record, err := l.Keep(ctx, Kept{ID: newID, Dir: k.Dir, Dirs: k.Dirs})
	if err != nil {
		return Kept{}, err
	}
	defer record.Close()
	err = l.Replay(ctx, id, record.Tell)
	k.ID, k.Shared = newID, k.Resume != ""
	return k, err
}

// Delete takes the ledger away. What the agent itself keeps stays.
func (l Ledger) Delete(ctx context.Context, id string) error {
	if _, err := l.find(id, true); err != nil {
		return err
	}
	lock := filepath.Join(l.Dir, id+".lock")
	held, err := workspace.Lock(ctx, lock, 0)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if err := os.Remove(l.file(id)); err != nil {
		return fault.New(fault.PermissionDenied, "the session %s cannot be deleted", id).Because(err)
	}
	return nil
}
