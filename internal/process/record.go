package process

import (
	"bufio"
	"bytes"
	"context"
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
	"omniagent/internal/ident"
)

const (
	// The mark is a random value in the environment of a recorded child. What the child starts inherits it, also after
	// it has left the group or its parent is dead.
	markVariable = "OMNIAGENT_CHILD_MARK"

	maxPIDFile    = 1 << 20
	settledSuffix = ".settled-"
)

// SessionChild is a child on record in a PID file.
type SessionChild struct {
	File    string    // the PID file
	PID     int       //
	Argv0   string    //
	Started time.Time //
	Alive   bool      // it, or on Linux something that it started, runs; another process with its number does not count

	entry entry
}

// entry is one line of a PID file. A child that ended has a second line, with Ended.
type entry struct {
	PID      int       `json:"pid"`
	Argv0    string    `json:"argv0"`
	Started  time.Time `json:"started"`
	Identity string    `json:"identity,omitempty"` // tells it from later processes with its number
	Mark     string    `json:"mark,omitempty"`
	Ended    bool      `json:"ended,omitempty"`
}

// Sessions lists the children on record in the PID files of dir that are not recorded as ended. A dir that does not
// exist has none; what is no PID file is passed over.
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

// EndSession ends the children on record in pidFile that still run, and what they started: asked first, killed after
// grace or when ctx ends. It returns those that it ended and removes the file. Should one survive, the file stays and
// the fault names it.
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

// leaderAlive says whether the very process that was recorded runs.
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

// heirs are the processes that carry the mark. A line that has none, or not one of ours, must not match half the
// machine.
func (e entry) heirs() []*os.Process {
	if raw, err := hex.DecodeString(e.Mark); err != nil || len(raw) != markBytes {
		return nil
	}
	return withMark(e.Mark)
}

// askToEnd asks once each: for some programs the second signal means to drop everything.
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

func newMark() string { return ident.Hex(markBytes) }

// marked adds the mark to those of the runs that we are ourselves part of, so that an outer one still finds what we
// start.
func marked(env []string, mark string) []string {
	if outer := valueOf(env, markVariable); outer != "" {
		mark = outer + "," + mark
	}
	return once(append(slices.Clone(env), markVariable+"="+mark))
}

// killMarked kills those that left the group, again and again because one may fork while we look.
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

// recordable fails before a child is started that could not be put on record.
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

// record puts a child on record and returns what takes it off again.
func record(path, argv0 string, pid int, mark string) (forget func(), err error) {
	id, _ := identity(pid) // none: it has exited already
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

// write appends the entry, and does so again when the file was settled between open and write.
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

// settle removes the file when all in it have ended. There is no lock: the file is moved away first, which makes a
// writer who has it open see that it must write again, and what was written before the move goes back.
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

// readEntries returns the entries that have not ended. Lines that are none, such as a torn last one, are passed over.
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
