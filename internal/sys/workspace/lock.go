package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
)

const (
	firstPoll  = time.Millisecond
	longestGap = 25 * time.Millisecond
	retryLock  = 200 * time.Millisecond // the suggested wait when the lock is held
)

// FileLock is a lock that this process holds. It is released when the process ends, or when the value is dropped
// without Unlock.
type FileLock struct {
	mu   sync.Mutex
	file *os.File
}

// Holder is the content of the lock file while the lock is held. It is only information; the lock itself is the
// kernel's.
type Holder struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"` // when it took the lock
	// when the process began, in the system's own unit, because process ids are reused
	Started string `json:"started,omitempty"`
	Boot    string `json:"boot,omitempty"` // the boot of the system
}

// HolderOf reports whether a process holds the lock of the file at path, and which one, if known. It changes nothing.
//
// A lock whose holder is gone may still be held for a moment: by a process that calls HolderOf, or by a child that the
// holder had just forked and that has not called exec yet. HolderOf waits until that is over, or there is a new holder.
func HolderOf(path string) (by Holder, held bool) {
	f, err := os.OpenFile(path, os.O_RDWR|openWithoutBlocking|openWithoutLinks, 0)
	if err != nil {
		return by, false
	}
	defer f.Close()
	deadline := time.Now().Add(passing)
	for gap := firstPoll; ; gap = min(2*gap, longestGap) {
		if free, err := tryLock(f); err != nil || free {
			if free {
				release(f)
			}
			return Holder{}, false
		}
		if by = readHolder(f); !by.gone() || time.Now().After(deadline) {
			return by, true
		}
		time.Sleep(gap)
	}
}

// passing is how long HolderOf waits for such a process.
const passing = 500 * time.Millisecond

// gone reports whether the process has ended. It returns false on systems that do not report when a process began.
func (h Holder) gone() bool {
	if h.PID == 0 || h.Started == "" {
		return h.PID == 0
	}
	started, boot := startOf(h.PID)
	return started != h.Started || boot != h.Boot
}

func readHolder(f io.ReaderAt) (by Holder) {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	_ = json.Unmarshal(text, &by)
	return by
}

// self returns this process as a holder.
func self() Holder {
	started, boot := ownStart()
	return Holder{os.Getpid(), time.Now().UTC(), started, boot}
}

var ownStart = sync.OnceValues(func() (started, boot string) { return startOf(os.Getpid()) })

// Lock takes the advisory lock of the file at path. It creates the file, and never removes it, because a lock file that
// is removed and created again can be locked twice. It waits up to wait, where 0 means one try, and then returns
// fault.LockHeld with holder_pid and holder_age_ms if they are known. It also ends with ctx. Two Locks in one process
// exclude each other too.
func Lock(ctx context.Context, path string, wait time.Duration) (*FileLock, error) {
	deadline := time.Now().Add(wait)
	for gap := firstPoll; ; gap = min(2*gap, longestGap) {
		if ctx.Err() != nil {
			return nil, endedBy(ctx, path)
		}
		held, err := lockOnce(path)
		if held != nil || err != nil {
			return held, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, lockHeld(path)
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(gap, left)):
		}
	}
}

// Unlock releases the lock. Calling it again does nothing.
func (h *FileLock) Unlock() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == nil {
		return nil
	}
	f := h.file
	h.file = nil
	_ = f.Truncate(0) // no holder now
	release(f)
	if err := f.Close(); err != nil {
		return toFault("unlock", f.Name(), err)
	}
	return nil
}

// lockOnce tries once. It returns neither a lock nor an error if another process holds it.
func lockOnce(path string) (*FileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|openWithoutBlocking|openWithoutLinks, 0o600)
	if err != nil {
		if info, look := os.Lstat(path); look == nil && !info.Mode().IsRegular() {
			return nil, notRegular(path, info)
		}
		return nil, toFault("lock", path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	var locked bool
	if err == nil {
		locked, err = tryLock(f)
	}
	if err != nil || !locked {
		_ = f.Close()
		if err != nil {
			err = toFault("lock", path, err)
		}
		return nil, err
	}
	// If the file was removed between open and lock, our lock is useless, and the next try creates a new file.
	if there, err := os.Lstat(path); err != nil || !os.SameFile(info, there) {
		_ = f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, toFault("lock", path, err)
		}
		return nil, nil
	}
	// The holder is only information, so a full disk must not make the lock fail.
	if text, err := json.Marshal(self()); err == nil {
		_ = f.Truncate(0)
		_, _ = f.WriteAt(append(text, '\n'), 0)
	}
	return &FileLock{file: f}, nil
}

func lockHeld(path string) error {
	var by Holder
	if f, err := os.OpenFile(path, os.O_RDONLY|openWithoutBlocking, 0); err == nil {
		by = readHolder(f)
		_ = f.Close()
	}
	if by.PID == 0 {
		return fault.New(fault.LockHeld, "another process holds the lock %s", path).With("path", path).After(retryLock)
	}
	age := max(0, time.Since(by.Since).Milliseconds())
	f := fault.New(fault.LockHeld, "process %d holds the lock %s", by.PID, path).
		With("path", path).With("holder_pid", by.PID).With("holder_age_ms", age).With("holder_since",
		by.Since.Format(time.RFC3339)).After(retryLock)
	if by.Started != "" {
		f.With("holder_started", by.Started).With("holder_boot", by.Boot)
	}
	return f
}

func endedBy(ctx context.Context, path string) error {
	code := fault.Interrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = fault.TimedOut
	}
	return fault.New(code, "stopped waiting for the lock %s", path).With("path", path).Because(context.Cause(ctx))
}
