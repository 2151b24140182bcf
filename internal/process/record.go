package process

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"omniagent/internal/fault"
)

const (
	// The mark is a random value in the environment of a recorded child. What the child starts inherits it, even after
	// leaving the group or losing its parent.
	markVariable = "OMNIAGENT_CHILD_MARK"

	maxPIDFile    = 1 << 20
	settledSuffix = ".settled-"
)

// SessionChild is a child recorded in a PID file.
type SessionChild struct {
	File    string    // the PID file
	PID     int       //
	Argv0   string    //
	Started time.Time //
	// the child, or on Linux something that it started, runs; another process with its number does not count
	Alive bool

	entry entry
}

// entry is one line of a PID file. A child that has ended has a second line, with Ended.
type entry struct {
	PID      int       `json:"pid"`
	Argv0    string    `json:"argv0"`
	Started  time.Time `json:"started"`
	Identity string    `json:"identity,omitempty"` // tells the child from later processes with its number
	Mark     string    `json:"mark,omitempty"`
	Ended    bool      `json:"ended,omitempty"`
}

// Sessions lists the children in the PID files of dir that are not recorded as ended. A dir that does not exist has
// none. It ignores files that are not PID files.
func Sessions(dir string) ([]SessionChild, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.PermissionDenied, "cannot list %s", dir).With("path", dir).Because(err)
	}
	var children []SessionChild
	for _, file := range files {
		if !file.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, file.Name())
		entries, err := readEntries(path)
		if err != nil {
			continue
		}
		for _, e := range entries {
			children = append(children, SessionChild{path, e.PID, e.Argv0, e.Started, e.alive(), e})
		}
	}
	return children, nil
}

// EndSession ends the children in pidFile that still run, and what they started. It asks first, and kills after grace
// or when ctx ends. It returns the children that it ended and removes the file. If one survives, the file stays and the
// fault names it.
func EndSession(ctx context.Context, pidFile string, grace time.Duration) ([]SessionChild, error) {
	entries, err := readEntries(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.PermissionDenied, "cannot read %s", pidFile).With("path", pidFile).Because(err)
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return !e.alive() })
	anyAlive := func() bool { return slices.ContainsFunc(entries, entry.alive) }
	for _, e := range entries {
		e.askToEnd()
	}
	graceful, stop := context.WithTimeout(ctx, grace)
	pollUntilDone(graceful, func() bool { return !anyAlive() })
	stop()
	deadly, stop := context.WithTimeout(context.WithoutCancel(ctx), deathTakes)
	defer stop()
	pollUntilDone(deadly, func() bool {
		for _, e := range entries {
			e.kill()
		}
		return !anyAlive()
	})
	var ended []SessionChild
	for _, e := range entries {
		if e.alive() {
			return ended, fault.New(fault.PermissionDenied, "process %d (%s) cannot be ended", e.PID,
				e.Argv0).With("pid", e.PID)
		}
		ended = append(ended, SessionChild{pidFile, e.PID, e.Argv0, e.Started, false, e})
	}
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ended, fault.New(fault.PermissionDenied, "cannot remove %s", pidFile).With("path", pidFile).Because(err)
	}
	return ended, nil
}

func pollUntilDone(ctx context.Context, yes func() bool) {
	over := make(chan time.Time)
	defer context.AfterFunc(ctx, func() { close(over) })()
	pollUntil(yes, over)
}

// leaderAlive reports whether the very process that was recorded runs.
func (e entry) leaderAlive() bool {
	if e.PID <= 1 || e.PID == os.Getpid() || e.Identity == "" {
		return false
	}
	now, runs := identity(e.PID)
	return runs && now == e.Identity
}

func (e entry) alive() bool {
	if e.leaderAlive() {
		return true
	}
	heirs := e.heirs()
	for _, p := range heirs {
		_ = p.Release()
	}
	return len(heirs) > 0
}

// heirs returns the processes that carry the mark. An entry without a valid mark must not match half the machine.
func (e entry) heirs() []*os.Process {
	if raw, err := hex.DecodeString(e.Mark); err != nil || len(raw) != markBytes {
		return nil
	}
	return withMark(e.Mark)
}

// askToEnd signals each process once: for some programs a second signal means to drop everything.
func (e entry) askToEnd() {
	if e.leaderAlive() {
		terminateRecorded(e.PID)
		return
	}
	for _, p := range e.heirs() {
		_ = p.Signal(syscall.SIGTERM)
		_ = p.Release()
	}
}

func (e entry) kill() {
	if e.leaderAlive() {
		killRecorded(e.PID)
	}
	for _, p := range e.heirs() {
		_ = p.Kill()
		_ = p.Release()
	}
}

const markBytes = 16

func newMark() string {
	var random [markBytes]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(random[:])
}

// marked adds the mark to the marks of the runs that we are part of, so that an outer run still finds what we start.
func marked(env []string, mark string) []string {
	if outer := valueOf(env, markVariable); outer != "" {
		mark = outer + "," + mark
	}
	return once(append(slices.Clone(env), markVariable+"="+mark))
}

// killMarked kills processes that left the group, repeatedly, because one may fork meanwhile.
func killMarked(mark string) {
	over := time.NewTimer(deathTakes)
	defer over.Stop()
	pollUntil(func() bool {
		found := withMark(mark)
		for _, p := range found {
			_ = p.Kill()
			_ = p.Release()
		}
		return len(found) == 0
	}, over.C)
}

// recordable fails if a child could not be recorded, before it is started.
func recordable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return unrecorded(path, err)
	}
	return nil
}

func unrecorded(path string, err error) error {
	code := fault.PermissionDenied
	if errors.Is(err, fs.ErrNotExist) {
		code = fault.FileMissing
	}
	return fault.New(code, "cannot record the child in %s", path).With("path", path).Because(err)
}

// record records a child and returns the function that removes the record.
func record(path, argv0 string, pid int, mark string) (forget func(), err error) {
	id, _ := identity(pid) // empty: it has exited already
	e := entry{PID: pid, Argv0: argv0, Started: time.Now().UTC(), Identity: id, Mark: mark}
	if err := e.write(path); err != nil {
		return func() {}, unrecorded(path, err)
	}
	return func() {
		e.Ended = true
		if e.write(path) == nil {
			settle(path)
		}
	}, nil
}

// write appends the entry. It writes again if the file was settled between open and write.
func (e entry) write(path string) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(line)
		mine, statErr := f.Stat()
		err = errors.Join(err, statErr, f.Close())
		if err != nil {
			return err
		}
		if there, err := os.Lstat(path); err == nil && os.SameFile(mine, there) {
			return nil
		}
	}
}

// settle removes the file when all its children have ended. There is no lock. It moves the file away first, so that a
// writer who has it open notices that it must write again; anything written before the move goes back.
func settle(path string) {
	if open, err := readEntries(path); err != nil || len(open) > 0 {
		return
	}
	aside := path + settledSuffix + strconv.Itoa(os.Getpid()) + "-" + newMark()[:8]
	if os.Rename(path, aside) != nil {
		return
	}
	open, err := readEntries(aside)
	for _, e := range open {
		if err == nil {
			err = e.write(path)
		}
	}
	if err == nil {
		_ = os.Remove(aside)
	}
}

// readEntries returns the entries that have not ended. It ignores lines that are not entries, such as a truncated last
// line.
func readEntries(path string) ([]entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var entries []entry
	lines := bufio.NewScanner(io.LimitReader(f, maxPIDFile))
	for lines.Scan() {
		var e entry
		if json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &e) != nil || e.PID == 0 {
			continue
		}
		same := func(o entry) bool { return o.PID == e.PID && o.Started.Equal(e.Started) }
		entries = slices.DeleteFunc(entries, same)
		if !e.Ended {
			entries = append(entries, e)
		}
	}
	return entries, lines.Err()
}
