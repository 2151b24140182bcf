package shim

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"omniagent/internal/agent"
	"omniagent/internal/fault"
)

// temporary is what a call leaves behind until its end, and nothing after it.
type temporary struct {
	dir   string // made when it is needed
	homes []string
	files []*os.File
	after []func()
}

// path is where the private directory will be. Nothing is made yet: the translation may turn out not to need one.
func (t *temporary) path(base string) string {
	if t.dir == "" {
		t.dir = filepath.Join(base, "omniagent-"+randomName())
	}
	return t.dir
}

func randomName() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// write makes the files that a launch needs.
func (t *temporary) write(files []agent.File) error {
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return notMade(f.Path, err)
		}
		// The directories are private and new, so what is there already is from an attempt before.
		file, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return notMade(f.Path, err)
		}
		_, err = file.Write(f.Data)
		if e := file.Close(); err == nil {
			err = e
		}
		if err != nil {
			return notMade(f.Path, err)
		}
	}
	return nil
}

func notMade(path string, err error) error {
	return fault.New(fault.Internal, "%s cannot be written", printable(path)).Because(cause(err)).Hint("set TMPDIR to a directory that can be written to")
}

// home makes a private home for a rehearsal. It does not lie in the system's temporary directory, where codex refuses to work.
func (t *temporary) home(state string) (string, error) {
	if state == "" {
		return "", fault.New(fault.NoHome, "there is no place for the home of a rehearsal").Hint("set HOME or XDG_STATE_HOME")
	}
	dir := filepath.Join(state, "rehearsal", randomName())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", notMade(dir, err)
	}
	t.homes = append(t.homes, dir)
	return dir, nil
}

func (t *temporary) closes(f *os.File) { t.files = append(t.files, f) }
func (t *temporary) later(stop func()) { t.after = append(t.after, stop) }

// remove takes it all away.
func (t *temporary) remove() {
	for _, stop := range t.after {
		stop()
	}
	for _, f := range t.files {
		_ = f.Close()
		_ = os.Remove(f.Name()) // where an open file could not be removed
	}
	if t.dir != "" {
		_ = os.RemoveAll(t.dir)
	}
	for _, home := range t.homes {
		_ = os.RemoveAll(home)
	}
}

// newUUID makes a random UUID, version 4.
func newUUID() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fault.New(fault.Internal, "the system gives no random numbers").Because(err)
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
