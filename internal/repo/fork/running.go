package fork

import (
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// Running returns the processes that have started programs in the fork.
func (f *Fork) Running() (pids []int) {
	for _, m := range f.members() {
		pids = append(pids, m.PID)
	}
	return pids
}

// Idle returns a fault while programs run in the fork.
func (f *Fork) Idle() error {
	n, programs := len(f.Running()), "programs are"
	switch n {
	case 0:
		return nil
	case 1:
		programs = "program is"
	}
	return fault.New(fault.Conflicting, "%d %s still running in the fork %s", n, programs, f.Name).
		Hint("end them first; omniagent fork list shows their processes")
}

// member is a process that has started a program in the fork.
type member struct {
	PID     int    `json:"pid"`
	Net     string `json:"net"`               // the requested network
	User    uint64 `json:"user,omitempty"`    // descriptors of its namespaces, unless it is just starting
	Mount   uint64 `json:"mount,omitempty"`   //
	Network uint64 `json:"network,omitempty"` // 0 for that of the machine
	Proxy   int    `json:"proxy,omitempty"`
}

// members returns the live processes.
func (f *Fork) members() (all []member) {
	files, _ := filepath.Glob(filepath.Join(f.dir, openDir, "*.json"))
	for _, file := range files {
		lock := strings.TrimSuffix(file, ".json")
		if _, held := workspace.HolderOf(lock); !held {
			_ = os.Remove(file)
			_ = os.Remove(lock)
			continue
		}
		var m member
		if workspace.ReadJSON(file, jsonLimit, &m) == nil {
			all = append(all, m)
		}
	}
	return all
}
