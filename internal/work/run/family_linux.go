package run

import (
	"bytes"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// kin is an agent's process and its descendants.
type kin struct {
	agent []int         // its processes, the first one first; without ours, which build its walls
	cpu   time.Duration // total CPU time, including ours
}

// family returns a process and its descendants.
func family(pid int) (k kin) {
	const ticks = 100 // per second; the unit in /proc on every Linux
	children, spent := map[int][]int{}, map[int]int64{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name in parentheses may itself contain spaces and parentheses.
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(fields) < 15 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		children[parent] = append(children[parent], id)
		for _, f := range fields[11:15] { // its own time, and that of children it waited for
			n, _ := strconv.ParseInt(string(f), 10, 64)
			spent[id] += n
		}
	}
	self, _ := os.Stat("/proc/self/exe")
	type member struct {
		pid   int
		below bool // it is the agent, or a descendant of it
	}
	var sum int64
	for all := []member{{pid: pid}}; len(all) > 0; all = all[1:] {
		m := all[0]
		sum += spent[m.pid]
		if !m.below {
			program, err := os.Stat("/proc/" + strconv.Itoa(m.pid) + "/exe")
			m.below = err != nil || self == nil || !os.SameFile(program, self)
		}
		if m.below {
			k.agent = append(k.agent, m.pid)
		}
		for _, child := range children[m.pid] {
			all = append(all, member{child, m.below})
		}
	}
	k.cpu = time.Duration(sum) * time.Second / ticks
	return k
}

// inputOf describes the standard input of a process, or returns nil.
func inputOf(pid int) fs.FileInfo {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/fd/0")
	if err != nil {
		return nil
	}
	return info
}
