package delegate

import (
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/agent"
)

// Depth returns how many servers are above this process: the value of the variable or the number of visible servers,
// whichever is larger. An invalid variable counts as the limit, because only this program sets it.
func Depth(lookup func(string) (string, bool)) int {
	depth := 0
	if value, ok := lookup(agent.DepthVariable); ok && value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > MaxDepth {
			n = MaxDepth
		}
		depth = n
	}
	return min(max(depth, above()), MaxDepth)
}

// Deeper returns the environment of an agent that is asked at this depth.
func Deeper(env []string, depth int) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return strings.HasPrefix(entry, agent.DepthVariable+"=")
	})
	return append(env, agent.DepthVariable+"="+strconv.Itoa(depth+1))
}
