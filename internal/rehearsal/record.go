package rehearsal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/fault"
	"omniagent/internal/workspace"
)

const (
	schema  = 1
	maxFile = 1 << 20
)

// Record is the stored rehearsal of one agent.
type Record struct {
	Schema   int       `json:"schema"`
	Agent    string    `json:"agent"`
	Version  string    `json:"version"`
	Path     string    `json:"path"`
	RealPath string    `json:"real_path"`
	Program  []File    `json:"program" doc:"the program; of a script also its package, and the large files of that"`
	Tool     string    `json:"tool_version"`
	Machine  Machine   `json:"machine"`
	Date     time.Time `json:"date"`
	TookMS   int64     `json:"took_ms"`
	Findings []Finding `json:"findings"`
}

// File is one file of a program.
type File struct {
	Path    string `json:"path"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`
	Inode   uint64 `json:"inode"`
	Changed int64  `json:"changed" doc:"nanoseconds since 1970"`
}

// Machine is the part of the machine that a verdict depends on.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel" doc:"empty: not known"`
	Root   bool   `json:"root"`
}

// Freshness is whether a record matches what is installed.
type Freshness string

// The kinds of freshness. The first that applies is reported.
const (
	Never        Freshness = "never"         // there is no record, or none that can be read
	OtherVersion Freshness = "other-version" // of the agent
	OtherProgram Freshness = "other-program" // of the same version
	OtherTool    Freshness = "other-tool"    // made by another version of this program
	OtherMachine Freshness = "other-machine" // another kernel, or other privileges
	Fresh        Freshness = "fresh"
)

// Counts returns how many findings have which verdict.
func (r Record) Counts() map[Verdict]int {
	n := map[Verdict]int{}
	for _, f := range r.Findings {
		n[f.Verdict]++
	}
	return n
}

// Failed returns the findings that speak against relying on the agent.
func (r Record) Failed() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.Failed() })
}

// Store is the place of the records.
type Store struct {
	State string // the directory of all state; empty: nothing is kept
	Tool  string // our version
}

func (s Store) file(name string) string {
	return filepath.Join(s.State, "rehearsals", name+".json")
}

// Save replaces the record of an agent.
func (s Store) Save(r Record) error {
	if s.State == "" {
		return fault.New(fault.NoHome,
			"there is no place for the record of a rehearsal").Hint("set HOME or XDG_STATE_HOME")
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := workspace.MkdirAll(filepath.Dir(s.file(r.Agent))); err != nil {
		return err
	}
	return workspace.WriteFile(s.file(r.Agent), append(data, '\n'), 0o600)
}

// Load reads the record of an agent and compares it with what is installed now. It hashes only files that look changed,
// so it is cheap.
func (s Store) Load(name string, in agent.Install) (Record, Freshness) {
	var r Record
	if s.State == "" {
		return r, Never
	}
	data, err := workspace.ReadFile(s.file(name), maxFile)
	if err != nil || json.Unmarshal(data, &r) != nil || r.Schema != schema || r.Agent != name {
		return Record{}, Never
	}
	switch {
	case r.Version != in.Version:
		return r, OtherVersion
	case r.RealPath != in.RealPath || !same(r.Program, in.RealPath):
		return r, OtherProgram
	case r.Tool != s.Tool:
		return r, OtherTool
	case r.Machine != here():
		return r, OtherMachine
	}
	return r, Fresh
}

// same reports whether the program is the one that was rehearsed.
func same(was []File, real string) bool {
	if len(was) == 0 || was[0].Path != real {
		return false
	}
	for _, f := range was {
		info, err := os.Stat(f.Path)
		if err != nil || info.Size() != f.Size {
			return false
		}
		if f.Inode == cli.Inode(info) && f.Changed == info.ModTime().UnixNano() {
			continue
		}
		if now, err := digest(f.Path); err != nil || now.SHA256 != f.SHA256 {
			return false
		}
	}
	return true
}

// program returns the files of the program and their hashes.
func program(real string) ([]File, error) {
	list := []File{}
	for _, path := range files(real) {
		f, err := digest(path)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

const (
	mostFiles   = 100
	mostEntries = 20_000
	largeFile   = 1 << 20
)

// files returns the program and, if it is a script, its package.json, the large files of its package, and those of its
// platform packages, which contain the real program. Small files change only together with package.json.
func files(real string) []string {
	list := []string{real}
	if !script(real) {
		return list
	}
	dir, m := packageOf(filepath.Dir(real))
	if dir == "" {
		return list
	}
	list = append(list, belonging(dir, real)...)
	for _, name := range slices.Sorted(maps.Keys(m.Platforms)) {
		for at := range cli.Upward(dir) {
			other := filepath.Join(at, "node_modules", filepath.FromSlash(name))
			if filepath.IsLocal(filepath.FromSlash(name)) && cli.Size(filepath.Join(other, manifestFile)) > 0 {
				list = append(list, belonging(other, real)...)
				break
			}
		}
	}
	return list[:min(len(list), mostFiles)]
}

const manifestFile = "package.json"

// manifest is the part of package.json that is read.
type manifest struct {
	Name      string            `json:"name"`
	Platforms map[string]string `json:"optionalDependencies"`
}

// packageOf returns the nearest package around a directory.
func packageOf(dir string) (string, manifest) {
	for at := range cli.Upward(dir) {
		var m manifest
		if data, err := workspace.ReadFile(filepath.Join(at, manifestFile), maxFile); err == nil &&
			json.Unmarshal(data, &m) == nil && m.Name != "" {
			return at, m
		}
	}
	return "", manifest{}
}

// belonging returns package.json and the large files of the package in a directory, except for known.
func belonging(dir, known string) []string {
	list, seen := []string{filepath.Join(dir, manifestFile)}, 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if seen++; err != nil || seen > mostEntries || len(list) > mostFiles {
			return fs.SkipAll
		}
		if e.IsDir() {
			if e.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Size() > largeFile && path != known {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// script reports whether a file is a script.
func script(path string) bool {
	head, _ := cli.Head(path, 2)
	return string(head) == "#!" ||
		slices.Contains([]string{".js", ".mjs", ".cjs", ".cmd", ".ps1"}, strings.ToLower(filepath.Ext(path)))
}

// digest hashes a file of any size.
func digest(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "hash", Path: path, Err: errors.ErrUnsupported}
	}
	if err != nil {
		return File{}, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return File{}, err
	}
	return File{path, hex.EncodeToString(h.Sum(nil)), info.Size(), cli.Inode(info), info.ModTime().UnixNano()}, nil
}

// here returns this machine.
func here() Machine {
	return Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernel(), Root: os.Geteuid() == 0}
}
