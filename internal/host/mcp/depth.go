package mcp

import (
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/core/agent"
)

// Depth returns the number of nested servers above this process: the largest of the variable, the values in around (see
// process.OwnNotes), and the number of visible servers. An invalid value counts as the limit, because only this program
// sets it.
func Depth(lookup func(string) (string, bool), around []string) int {
	depth := above()
	value, _ := lookup(agent.DepthVariable)
	for _, told := range append([]string{value}, around...) {
		if told == "" {
			continue
		}
		n, err := strconv.Atoi(told)
		if err != nil || n < 0 {
			n = MaxDepth
		}
		depth = max(depth, n)
	}
	return min(depth, MaxDepth)
}

// Deeper returns the environment of an agent that is asked at this depth.
func Deeper(env []string, depth int) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return strings.HasPrefix(entry, agent.DepthVariable+"=")
	})
	return append(env, agent.DepthVariable+"="+strconv.Itoa(depth+1))
}
