package gemini

import (
	"bytes"
	"os"
	"strconv"
)

// memory returns the machine's memory in MiB, or 0 if it is unknown.
func memory() int {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return totalMemory(data)
}

// totalMemory parses the line "MemTotal: 24684084 kB".
func totalMemory(meminfo []byte) int {
	for line := range bytes.Lines(meminfo) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "MemTotal:" {
			kib, _ := strconv.Atoi(string(f[1]))
			return kib >> 10
		}
	}
	return 0
}
