package mcp

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// above counts the servers among the ancestors of this process.
func above() int {
	count := 0
	for pid, steps := os.Getppid(), 0; pid > 1 && steps < 100; steps++ {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && isServer(line) {
			count++
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			break
		}
		// The name in parentheses may contain anything; the parent's number is the second word after it.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 {
			break
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			break
		}
	}
	return count
}

// isServer reports whether a command line is that of a server.
func isServer(line []byte) bool {
	words := strings.Split(string(line), "\x00")
	return len(words) > 1 && filepath.Base(words[0]) == "omniagent" && words[1] == "mcp"
}
