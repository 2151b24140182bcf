package run

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// family returns a process and its descendants, and their total CPU time.
func family(pid int) (pids []int, cpu time.Duration) {
	const ticks = 100 // per second; the unit in /proc on every Linux
	parents, spent := map[int]int{}, map[int]int64{}
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
		parents[id], _ = strconv.Atoi(string(fields[1]))
		for _, f := range fields[11:15] { // its own time, and that of children it waited for
			n, _ := strconv.ParseInt(string(f), 10, 64)
			spent[id] += n
		}
	}
	var sum int64
	for id := range parents {
		for at := id; at > 1; at = parents[at] {
			if at == pid {
				pids, sum = append(pids, id), sum+spent[id]
				break
			}
		}
	}
	return pids, time.Duration(sum) * time.Second / ticks
}
