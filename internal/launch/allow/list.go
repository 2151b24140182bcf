package allow

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/workspace"
)

// Entry is the user's decision about an agent.
type Entry struct {
	Name        string    `json:"name"`
	Denied      bool      `json:"denied,omitempty"` // the other fields are empty
	At          time.Time `json:"at"`
	Path        string    `json:"path,omitempty"`        // as found in PATH
	RealPath    string    `json:"real_path,omitempty"`   // without symbolic links
	Program     string    `json:"program,omitempty"`     // started in place of the script at RealPath
	Interpreter string    `json:"interpreter,omitempty"` // of the first line of RealPath
	Files       []File    `json:"files,omitempty"`       // all that was hashed
}

// Allows reports whether an entry allows exactly what another one records.
func (e Entry) Allows(other Entry) bool {
	return !e.Denied && e.RealPath == other.RealPath && e.Program == other.Program &&
		e.Interpreter == other.Interpreter && slices.EqualFunc(e.Files, other.Files, func(a, b File) bool {
		return a.Path == b.Path && a.SHA256 == b.SHA256
	})
}

// List is the user's list of allowed and denied agents, as it was read. An entry identifies the files that were
// allowed. The list is changed atomically, under a lock. A list that cannot be read, or that others may write, is an
// error and not an empty list, because it may deny an agent. The zero value is empty and cannot be changed.
type List struct {
	file    string
	entries []Entry
	err     error
}

type content struct {
	Version int     `json:"version"`
	Agents  []Entry `json:"agents"`
}

const (
	version  = 1
	maxFile  = 1 << 20
	lockWait = 30 * time.Second
)

// OpenList reads the list, which may be missing. An unusable list makes every Find fail.
func OpenList(file string) List {
	l := List{file: file}
	if file != "" {
		l.entries, l.err = read(file)
	}
	return l
}

// File returns the path of the list; empty: there is no home directory.
func (l List) File() string { return l.file }

// Find returns the entry of an agent. ok is false if the agent has no entry. It fails if the list is unusable.
func (l List) Find(name string) (e Entry, ok bool, err error) {
	i := slices.IndexFunc(l.entries, func(e Entry) bool { return e.Name == name })
	if i < 0 || l.err != nil {
		return Entry{}, false, l.err
	}
	return l.entries[i], true, nil
}

// Put adds an entry, or replaces the one of the same name. It writes nothing if unless is not nil and returns true for
// the old entry, which is read under the lock.
func (l List) Put(e Entry, unless func(old Entry, had bool) bool) error {
	e.At = e.At.UTC().Truncate(time.Second)
	return l.change(func(entries []Entry) []Entry {
		old, had, _ := List{entries: entries}.Find(e.Name)
		if unless != nil && unless(old, had) {
			return nil
		}
		return append(without(entries, e.Name), e)
	})
}

// Remove removes the entry of an agent. had reports whether there was one.
func (l List) Remove(name string) (had bool, err error) {
	err = l.change(func(entries []Entry) []Entry {
		if _, had, _ = (List{entries: entries}).Find(name); !had {
			return nil
		}
		return without(entries, name)
	})
	return had, err
}

// Renew replaces the files of an entry, unless the user has changed the entry since it was read.
func (l List) Renew(e Entry, files []File) error {
	return l.change(func(entries []Entry) []Entry {
		for i, now := range entries {
			if now.Name == e.Name && !now.Denied && now.At.Equal(e.At) {
				entries[i].Files = files
			}
		}
		return entries
	})
}

func without(entries []Entry, name string) []Entry {
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Name == name })
}

// change reads the list again under its lock, because another process may have changed it, and writes what edit
// returns. If that is nil, it writes nothing.
func (l List) change(edit func([]Entry) []Entry) error {
	if l.file == "" {
		return fault.New(fault.NoHome, "there is no place for the list of agents: no home directory is known").
			FixBy("Set HOME.", "")
	}
	if err := workspace.MkdirAll(filepath.Dir(l.file)); err != nil {
		return err
	}
	held, err := workspace.Lock(context.Background(), l.file+".lock", lockWait)
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	entries, err := read(l.file)
	if err != nil {
		return err
	}
	c := content{version, edit(entries)}
	if c.Agents == nil {
		return nil
	}
	slices.SortFunc(c.Agents, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fault.New(fault.Internal, "the list of agents cannot be encoded").Because(err)
	}
	return workspace.WriteFile(l.file, append(data, '\n'), 0o600)
}

func read(file string) ([]Entry, error) {
	data, err := workspace.ReadFile(file, maxFile)
	if errors.Is(err, fault.FileMissing) {
		return nil, nil
	}
	var c content
	why := config.Exposed(file)
	switch {
	case err != nil:
	case why != "":
		err = errors.New(why)
	case json.Unmarshal(data, &c) != nil:
		err = errors.New("it is not JSON of the expected form")
	case c.Version != version:
		err = errors.New("it has a version that is not known")
	}
	if err != nil {
		return nil, fault.New(fault.Unsafe, "the list of agents %s cannot be used: %v", file, err).With("path", file).
			Hint("look at it and move it away, then run: omniagent agents allow NAME")
	}
	return c.Agents, nil
}
