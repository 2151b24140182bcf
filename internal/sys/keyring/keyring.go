// Package keyring keeps the keys of model APIs that a person stored.
//
//	login ─▶ the system's keyring, through its own program ─▶ else a file that only the user can read
//
// It promises that a key is never in the arguments of a program, in an error or in a log; that a key which the keyring
// accepted can be read back, or is in the file instead; and that listing the keys starts no program. The list of names
// is in the file, with the keys that the keyring did not accept. A file that others can read, or that cannot be read,
// is refused and never overwritten.
package keyring

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
)

// Place is where a key is.
type Place string

// The places.
const (
	System Place = "keyring" // of the system
	File   Place = "file"    // of the user alone
)

// fileName is the name of the file in the user's configuration.
const fileName = "keys.json"

// lockWait is how long a change of the file waits for another.
const lockWait = 5 * time.Second

// Entry is a stored key without its text.
type Entry struct {
	Name   string    `json:"name"`
	Place  Place     `json:"place"`
	Stored time.Time `json:"stored"`
}

// Store is where keys are kept. Any number of processes may use it at once.
type Store struct {
	file   string // empty: no home is known
	system system // nil: there is no keyring that answers
}

// system is a keyring of the system.
type system interface {
	set(ctx context.Context, name, key string) error
	get(ctx context.Context, name string) (string, error)
	remove(ctx context.Context, name string) error
}

type storedKey struct {
	Entry
	Key string `json:"key,omitempty"` // in the place File
}

type content struct {
	Version int         `json:"version"`
	Keys    []storedKey `json:"keys"`
}

// Open returns the store of a user's configuration directory, which may be empty: then nothing is kept. by finds and
// starts the system's program.
func Open(dir string, by process.Programs) Store {
	s := Store{system: systemOf(runtime.GOOS, by)}
	if dir != "" {
		s.file = filepath.Join(dir, fileName)
	}
	return s
}

// Path returns the file.
func (s Store) Path() string { return s.file }

// List returns what is stored, by name.
func (s Store) List() ([]Entry, error) {
	all, err := s.read()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(all))
	for _, e := range all {
		entries = append(entries, e.Entry)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// Has reports whether a key is stored under a name.
func (s Store) Has(name string) bool {
	all, err := s.read()
	return err == nil && find(all, name) >= 0
}

func find(all []storedKey, name string) int {
	return slices.IndexFunc(all, func(e storedKey) bool { return e.Name == name })
}

// Get returns the key of a name, and where it is, for people. It returns "" if there is none.
func (s Store) Get(name string) (key, from string, err error) {
	all, err := s.read()
	i := find(all, name)
	if err != nil || i < 0 {
		return "", "", err
	}
	if all[i].Place == File {
		return all[i].Key, s.file, nil
	}
	if s.system == nil {
		return "", "", fault.New(fault.AuthRequired,
			"the key for %s lies in the system's keyring, which does not answer here", name).
			Hint("Store it again: omniagent login %s", name)
	}
	if key, err = s.system.get(context.Background(), name); err != nil {
		return "", "", fault.New(fault.AuthRequired, "the key for %s cannot be read from the system's keyring", name).
			Because(err).Hint("Unlock the keyring, or store the key again: omniagent login %s", name)
	}
	return key, "the system's keyring", nil
}

// Set stores a key, in place of one of that name. why says why it is not in the system's keyring; was is the Place of
// the replaced key, or empty.
func (s Store) Set(ctx context.Context, name, key string) (place Place, why string, was Place, err error) {
	err = s.change(ctx, func(all []storedKey) ([]storedKey, error) {
		place, why = s.keep(ctx, name, key)
		e := storedKey{Entry: Entry{Name: name, Place: place, Stored: time.Now().UTC().Truncate(time.Second)}}
		if place == File {
			e.Key = key
		}
		if i := find(all, name); i >= 0 {
			was = all[i].Place
			if was == System && place == File && s.system != nil {
				_ = s.system.remove(ctx, name) // it would be found by nobody
			}
			all[i] = e
			return all, nil
		}
		return append(all, e), nil
	})
	return place, why, was, err
}

// keep puts the key into the system's keyring and reads it back.
func (s Store) keep(ctx context.Context, name, key string) (place Place, why string) {
	if s.system == nil {
		return File, "this system has no keyring that answers"
	}
	if err := s.system.set(ctx, name, key); err != nil {
		return File, err.Error()
	}
	if back, err := s.system.get(ctx, name); err != nil || back != key {
		_ = s.system.remove(ctx, name)
		return File, "the system's keyring did not keep it"
	}
	return System, ""
}

// Remove forgets the key of a name. It returns "" if there is none.
func (s Store) Remove(ctx context.Context, name string) (from Place, err error) {
	if !s.Has(name) {
		_, err := s.read()
		return "", err
	}
	err = s.change(ctx, func(all []storedKey) ([]storedKey, error) {
		i := find(all, name)
		if i < 0 {
			return all, nil
		}
		from = all[i].Place
		if from == System {
			if s.system == nil {
				return nil, fault.New(fault.PreflightFailed, "the key for %s lies in the system's keyring, "+
					"which does not answer here", name).Hint("try again where it answers")
			}
			if err := s.system.remove(ctx, name); err != nil {
				return nil, fault.New(fault.PreflightFailed, "the system's keyring does not let go of the key for %s",
					name).Because(err).Hint("unlock the keyring, and try again")
			}
		}
		return slices.Delete(all, i, i+1), nil
	})
	return from, err
}

// change reads the file under its lock, and writes it.
func (s Store) change(ctx context.Context, edit func([]storedKey) ([]storedKey, error)) error {
	if s.file == "" {
		return fault.New(fault.NoHome, "there is no place for keys: no home directory is known").FixBy("Set HOME.", "")
	}
	if err := workspace.MkdirAll(filepath.Dir(s.file)); err != nil {
		return err
	}
	held, err := workspace.Lock(ctx, s.file+".lock", lockWait)
	if err != nil {
		return err
	}
	defer held.Unlock()
	all, err := s.read()
	if err != nil {
		return err
	}
	if all, err = edit(all); err != nil {
		return err
	}
	data, err := json.MarshalIndent(content{Version: 1, Keys: all}, "", "  ")
	if err != nil {
		return fault.New(fault.Internal, "the keys cannot be recorded").Because(err)
	}
	return workspace.WriteFile(s.file, append(data, '\n'), 0o600)
}

// read returns the entries. The words of a failure never hold what the file says.
func (s Store) read() ([]storedKey, error) {
	if s.file == "" {
		return nil, nil
	}
	if why := exposed(s.file); why != "" {
		return nil, fault.New(fault.Unsafe, "the keys in %s are not used: %s", s.file, why).
			Hint("chmod 600 %s", s.file)
	}
	data, err := workspace.ReadFile(s.file, 1<<20)
	if errors.Is(err, fault.FileMissing) {
		return nil, nil
	}
	var c content
	if err == nil && (json.Unmarshal(data, &c) != nil || c.Version != 1) {
		err = fault.New(fault.ConfigInvalid, "%s does not hold a list of keys", s.file)
	}
	if err != nil {
		return nil, fault.New(fault.ConfigInvalid, "the keys in %s cannot be read", s.file).Because(err).
			Hint("move the file away, and store the keys again: omniagent login")
	}
	return c.Keys, nil
}
