package workspace

import (
	"os"
	"strconv"
	"strings"
)

// startOf returns when a process began, in ticks since boot, and the boot of the system; nothing for one that is over,
// whether its parent knows that or not.
func startOf(pid int) (started, boot string) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", ""
	}
	// a name may contain anything
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	const start = 19 // index among the fields after the name
	if len(fields) > start && fields[0] != "Z" {
		started = fields[start]
	}
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return started, strings.TrimSpace(string(id))
}
