package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/workspace"
)

// trustWait is how long a change of the trust file waits for another: it takes milliseconds.
const trustWait = 2 * time.Second

// mostTrusted is the size of the largest content that can be trusted.
const mostTrusted = 1 << 20

// Trust records which content of which file the user has trusted. An unreadable trust file does not stop the program:
// nothing is trusted then, and the file is not overwritten.
type Trust struct {
	file string

	mu      sync.Mutex
	entries []TrustEntry
	err     error // why nothing is trusted
}

// TrustEntry is the trusted content of a file.
type TrustEntry struct {
	Path   string    `json:"path"`
	SHA256 string    `json:"sha256"`
	At     time.Time `json:"at"`
}

type trustFile struct {
	Version int          `json:"version"`
	Trusted []TrustEntry `json:"trusted"`
}

// OpenTrust reads the trust file, which may be missing. With "" nothing is trusted and nothing can be.
func OpenTrust(file string) *Trust {
	t := &Trust{file: file}
	if file != "" {
		t.entries, t.err = readTrust(file)
	}
	return t
}

// CopyInto copies the file into a directory, which it makes: what is trusted here is trusted in that home, too.
func (t *Trust) CopyInto(dir string) error {
	if t == nil || t.file == "" {
		return nil
	}
	data, err := os.ReadFile(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(t.file)), data, 0o600)
	}
	return err
}

// Warning reports an unusable trust file.
func (t *Trust) Warning() (Warning, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		return Warning{}, false
	}
	return Warning{Code: UnusableTrust, Message: t.err.Error() + ", so no project file is trusted"}, true
}

// Trusted reports whether exactly this content has been trusted at exactly this path. content is what was read and is
// used: the file is not read again. A file that a link takes out of its project is not trusted, and a record of trust
// in the same project does not count.
func (t *Trust) Trusted(path string, content []byte) bool {
	if t == nil {
		return false
	}
	if Leaves(path) || t.Refuses(path) {
		return false
	}
	entry, ok := t.Recorded(path)
	return ok && entry.SHA256 == hashOf(content)
}

// Beneath returns the hashes of the trusted files below directories, by their paths without links.
func (t *Trust) Beneath(dirs []string) map[string]string {
	found := map[string]string{}
	for _, entry := range t.List() {
		for _, dir := range dirs {
			if beneath(entry.Path, dir) && !Leaves(entry.Path) && !t.Refuses(entry.Path) {
				found[entry.Path] = entry.SHA256
			}
		}
	}
	return found
}

// Refuses reports whether the trust file lies in the same repository as the file, which could then trust itself. A home
// directory that is a repository is exempt.
func (t *Trust) Refuses(path string) bool {
	root, repository := projectOf(path)
	if t.file == "" || !repository || !beneath(t.file, root) {
		return false
	}
	home, err := os.UserHomeDir()
	return err != nil || !beneath(home, root)
}

// Leaves reports whether a link takes a file out of its project.
func Leaves(path string) bool {
	root, _ := projectOf(path)
	return leavesRoot(path, root)
}

// projectOf returns the project of a file, by its name.
func projectOf(path string) (root string, repository bool) {
	dir := filepath.Dir(path)
	if filepath.Base(dir) == ".omniagent" {
		dir = filepath.Dir(dir)
	}
	return ProjectRoot(dir)
}

// beneath reports whether a path is below root, after following all links.
func beneath(path, root string) bool {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return false
	}
	return pathname.Within(real, pathname.Real(path))
}

// Recorded returns what was trusted at the path, whatever the file contains now.
func (t *Trust) Recorded(path string) (TrustEntry, bool) {
	path = pathname.Real(path)
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.entries, func(e TrustEntry) bool { return e.Path == path })
	if i < 0 {
		return TrustEntry{}, false
	}
	return t.entries[i], true
}

// Copy returns what was trusted at the path, from the stored copy. It returns false if the copy is missing or changed,
// and for records of an older version.
func (t *Trust) Copy(path string) ([]byte, bool) {
	if t == nil {
		return nil, false
	}
	entry, ok := t.Recorded(path)
	if !ok || !isHash(entry.SHA256) {
		return nil, false
	}
	data, err := workspace.ReadFile(filepath.Join(t.copies(), entry.SHA256), mostTrusted)
	if err != nil || hashOf(data) != entry.SHA256 {
		return nil, false
	}
	return data, true
}

// copies returns the directory of the copies, named by their hashes.
func (t *Trust) copies() string { return filepath.Join(filepath.Dir(t.file), "trusted") }

// refresh reads the file again: another process may have changed it since OpenTrust.
func (t *Trust) refresh() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != "" {
		t.entries, t.err = readTrust(t.file)
	}
}

// Add trusts the content at the path, replaces what was trusted there, and stores a copy of it.
func (t *Trust) Add(path string, content []byte) error {
	path = pathname.Real(path)
	err := t.change(func(entries []TrustEntry) []TrustEntry {
		entries = slices.DeleteFunc(entries, func(e TrustEntry) bool { return e.Path == path })
		return append(entries, TrustEntry{
			Path: path, SHA256: hashOf(content), At: time.Now().UTC().Truncate(time.Second),
		})
	})
	if err == nil {
		err = workspace.MkdirAll(t.copies())
	}
	if err == nil {
		err = workspace.WriteFile(filepath.Join(t.copies(), hashOf(content)), content, 0o600)
	}
	return err
}

// Forget removes the trust in the path.
func (t *Trust) Forget(path string) error {
	path = pathname.Real(path)
	return t.change(func(entries []TrustEntry) []TrustEntry {
		return slices.DeleteFunc(entries, func(e TrustEntry) bool { return e.Path == path })
	})
}

// List returns what is trusted, sorted by path.
func (t *Trust) List() []TrustEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	entries := slices.Clone(t.entries)
	slices.SortFunc(entries, func(a, b TrustEntry) int { return strings.Compare(a.Path, b.Path) })
	return entries
}

// change reads the file again under its lock, because another process may have changed it since OpenTrust.
func (t *Trust) change(edit func([]TrustEntry) []TrustEntry) error {
	if t.file == "" {
		return fault.New(fault.NoHome, "there is no place to record trust: no home directory is known").
			FixBy("Set HOME.", "")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := workspace.MkdirAll(filepath.Dir(t.file)); err != nil {
		return err
	}
	held, err := workspace.Lock(context.Background(), t.file+".lock", trustWait)
	if err != nil {
		return busy(t.file, err)
	}
	defer held.Unlock()
	entries, err := readTrust(t.file)
	if err != nil {
		return fault.New(fault.ConfigInvalid, "%v", err).With("path", t.file).
			Hint("Look at it and move it away, then run omniagent trust for every project again; it is left as it is")
	}
	edited := edit(slices.Clone(entries))
	if !slices.Equal(edited, entries) {
		data, err := json.MarshalIndent(trustFile{Version: 1, Trusted: edited}, "", "  ")
		if err != nil {
			return fault.New(fault.Internal, "trust cannot be recorded in %s", t.file).Because(err)
		}
		if err := workspace.WriteFile(t.file, append(data, '\n'), 0o600); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if !slices.ContainsFunc(edited, func(other TrustEntry) bool { return other.SHA256 == e.SHA256 }) &&
			isHash(e.SHA256) {
			_ = os.Remove(filepath.Join(t.copies(), e.SHA256))
		}
	}
	t.entries, t.err = edited, nil
	return nil
}

// readTrust refuses a file that others may write, because they could trust anything.
func readTrust(path string) ([]TrustEntry, error) {
	data, exists, err := readConfig(path)
	if err != nil {
		return nil, fmt.Errorf("the trust file %s is of no use: %w", path, err)
	}
	if !exists {
		return nil, nil
	}
	if why := Exposed(path); why != "" {
		return nil, fmt.Errorf("the trust file %s is of no use: %s", path, why)
	}
	var content trustFile
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("the trust file %s is torn", path)
	}
	if content.Version != 1 {
		return nil, fmt.Errorf("the trust file %s has version %d, and only 1 is known", path, content.Version)
	}
	return content.Trusted, nil
}

func isHash(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == sha256.Size
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// busy returns the fault for a file that another process is changing.
func busy(path string, err error) error {
	if !errors.Is(err, fault.LockHeld) {
		return err
	}
	held := fault.Of(err)
	f := fault.New(fault.ConcurrentModification, "another process is changing %s", path).With("path", path).Because(err)
	for _, name := range []string{"holder_pid", "holder_age_ms"} {
		if value, ok := held.Detail[name]; ok {
			f.With(name, value)
		}
	}
	return f.After(max(held.RetryAfter, 100*time.Millisecond))
}

// editFailed distinguishes an unreadable file from an edit that it cannot take.
func editFailed(path string, err error) error {
	if _, is := errors.AsType[*literal.SyntaxError](err); is {
		return invalid(path, err)
	}
	f := fault.New(fault.ConfigInvalid, "%s: %v", path, err).With("path", path)
	inFileHint(f, path)
	return f
}
