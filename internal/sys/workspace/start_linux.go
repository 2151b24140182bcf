package workspace

import (
	"os"
	"strconv"
	"strings"
)

// startOf returns when a process began, in ticks since boot, and the id of the boot. It returns empty strings for a
// process that has ended, even if it is a zombie.
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
