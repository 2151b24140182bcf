package measure

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/sys/workspace"
	"omniagent/internal/testkit/hermetic"
)

// WithProgram places omniagent, built from the module at root, in a folder of its own, gives the file to run, which is
// the tests of a package, and takes it away. It returns the exit status. The tests run in memory, as far as hermetic
// can have that.
func WithProgram(root string, run func(file string) int) int {
	hermetic.InMemory()
	dir, err := os.MkdirTemp("", "built-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built, err := Shared(root, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run(built.File)
}

// patience is how long a package waits while another one builds, which takes minutes where nothing was compiled yet.
const patience = 10 * time.Minute

// Shared is Build of omniagent for the tests of many packages: the first one links the program, and the others copy it.
// The program stays in the cache of the go command, one for each folder that a module lies in. go build itself decides
// whether it is still what the sources would give.
func Shared(root, dir string) (Program, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return Program{}, err
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return Program{}, fmt.Errorf("go env GOCACHE: %w", err)
	}
	return shared(root, dir, filepath.Join(strings.TrimSpace(string(cache)), "omniagent-tests",
		fmt.Sprintf("%x", sha256.Sum256([]byte(root)))))
}

// shared is Shared with the place where the program stays.
func shared(root, dir, place string) (Program, error) {
	if err := os.MkdirAll(place, 0o700); err != nil {
		return Program{}, err
	}
	lock, err := workspace.Lock(context.Background(), filepath.Join(place, "lock"), patience)
	if err != nil {
		return Program{}, err
	}
	defer func() { _ = lock.Unlock() }()
	built, err := refresh(root, filepath.Join(place, "whole"), filepath.Join(place, "next"))
	if err != nil {
		return Program{}, err
	}
	own := filepath.Join(dir, filepath.Base(built.File))
	if err := copyProgram(built.File, own); err != nil {
		return Program{}, err
	}
	built.File = own
	return built, nil
}

// refresh builds into the folder whole. It works in next: a build that is killed leaves half a program there, which go
// build would take for a whole one.
func refresh(root, whole, next string) (Program, error) {
	if err := os.RemoveAll(next); err != nil {
		return Program{}, err
	}
	err := os.Rename(whole, next)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Mkdir(next, 0o700)
	}
	if err != nil {
		return Program{}, err
	}
	built, err := Build(root, "./cmd/omniagent", next)
	if err != nil {
		return Program{}, err
	}
	built.File = filepath.Join(whole, filepath.Base(built.File))
	return built, os.Rename(next, whole)
}

// copyProgram holds back the start of children, which would inherit the open copy: a file that somebody can write to
// cannot be run.
func copyProgram(from, to string) (err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	if closed := w.Close(); err == nil {
		err = closed
	}
	return err
}
