package rehearsal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/launch/allow"
	"omniagent/internal/sys/workspace"
)

const (
	schema  = 1
	maxFile = 1 << 20
)

// Record is the stored rehearsal of one agent.
type Record struct {
	Schema   int          `json:"schema"`
	Agent    string       `json:"agent"`
	Version  string       `json:"version"`
	Path     string       `json:"path"`
	RealPath string       `json:"real_path"`
	Program  []allow.File `json:"program" doc:"the program; of a script also its package, and the large files of that"`
	Tool     string       `json:"tool_version"`
	Machine  Machine      `json:"machine"`
	Date     time.Time    `json:"date"`
	TookMS   int64        `json:"took_ms"`
	Findings []Finding    `json:"findings"`
}

// Machine is the part of the machine that a verdict depends on.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel" doc:"empty: not known"`
	Root   bool   `json:"root"`
}

// Freshness says whether a record matches the installed program and this machine.
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

// Counts returns the number of findings by verdict.
func (r Record) Counts() map[Verdict]int {
	n := map[Verdict]int{}
	for _, f := range r.Findings {
		n[f.Verdict]++
	}
	return n
}

// Failed returns the findings for which Finding.Failed is true.
func (r Record) Failed() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.Failed() })
}

// Store is the place of the records.
type Store struct {
	State string // the directory of all state; if empty, no record can be saved
	Tool  string // our version
}

func (s Store) file(name string) string {
	return filepath.Join(s.State, "rehearsals", name+".json")
}

// Save replaces the record of an agent.
func (s Store) Save(r Record) error {
	if s.State == "" {
		return fault.New(fault.NoHome, "there is no place for the record of a rehearsal").
			Hint("set HOME or XDG_STATE_HOME")
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

// Load reads the record of an agent and compares it with the installed program. It hashes only files that look changed.
func (s Store) Load(name string, in agent.Install) (Record, Freshness) {
	var r Record
	if s.State == "" {
		return r, Never
	}
	if workspace.ReadJSON(s.file(name), maxFile, &r) != nil || r.Schema != schema || r.Agent != name {
		return Record{}, Never
	}
	switch {
	case r.Version != in.Version:
		return r, OtherVersion
	case r.RealPath != in.RealPath || !allow.SameFiles(r.Program, in.RealPath):
		return r, OtherProgram
	case r.Tool != s.Tool:
		return r, OtherTool
	case r.Machine != here():
		return r, OtherMachine
	}
	return r, Fresh
}

// here returns this machine.
func here() Machine {
	return Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: kernel(), Root: os.Geteuid() == 0}
}
