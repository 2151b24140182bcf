package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// Versions is a cache file of the versions that programs without a package.json printed. A version is valid as long as
// the program is the same file.
type Versions struct{ File string }

// mostVersions bounds the size of the file.
const mostVersions = 1 << 20

// seenFile identifies a program at the time it printed its version.
type seenFile struct {
	Inode   uint64 `json:"inode"`
	Size    int64  `json:"size"`
	Changed int64  `json:"changed"` // in nanoseconds
	Version string `json:"version"`
}

func (s seenFile) sameAs(o seenFile) bool {
	return s.Inode == o.Inode && s.Size == o.Size && s.Changed == o.Changed
}

// Of returns a program's version, or "" if it is not in the cache or the program has changed since.
func (v Versions) Of(program string) string {
	seen, err := v.read()
	if err != nil {
		return ""
	}
	before, known := seen[program]
	if now, err := look(program); !known || err != nil || !before.sameAs(now) {
		return ""
	}
	return plain(before.Version) // although the file is the user's own, only pass on a valid version
}

// Keep finds the version in what a program printed, and stores it.
func (v Versions) Keep(program, said string) (string, error) {
	version := versionIn(said)
	if version == "" {
		return "", fault.New(fault.NotFoundCode, "%s did not print its version", program)
	}
	now, err := look(program)
	if err != nil {
		return version, fault.New(fault.FileMissing, "cannot stat %s", program).Because(err)
	}
	seen, err := v.read()
	if err != nil {
		seen = map[string]seenFile{} // replace a damaged cache
	}
	for path := range seen {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			delete(seen, path)
		}
	}
	now.Version = version
	seen[program] = now
	data, err := json.Marshal(seen)
	if err != nil {
		return version, err
	}
	if err := workspace.MkdirAll(filepath.Dir(v.File)); err != nil {
		return version, err
	}
	return version, workspace.WriteFile(v.File, data, 0o600)
}

func (v Versions) read() (map[string]seenFile, error) {
	seen := map[string]seenFile{}
	if v.File == "" {
		return seen, nil
	}
	data, err := workspace.ReadFile(v.File, mostVersions)
	if errors.Is(err, fault.FileMissing) {
		return seen, nil
	}
	if err != nil {
		return nil, err
	}
	return seen, json.Unmarshal(data, &seen)
}

func look(program string) (seenFile, error) {
	info, err := os.Stat(program)
	if err != nil {
		return seenFile{}, err
	}
	return seenFile{Inode: Inode(info), Size: info.Size(), Changed: info.ModTime().UnixNano()}, nil
}

// versionIn returns the first version in the first lines: "2.1.329 (Claude Code)", "codex-cli 0.169.0".
func versionIn(said string) string {
	for word := range strings.FieldsSeq(said[:min(len(said), 4096)]) {
		if version := plain(strings.Trim(strings.TrimPrefix(word, "v"), ".,;:()")); version != "" {
			return version
		}
	}
	return ""
}
