package delegate

import (
	"strconv"

	"omniagent/internal/agent"
)

// Depth returns how many servers are above this process: what the variable says, or what can be seen, whichever is
// more. A variable that is no number counts as the limit: nobody but us sets it.
func Depth(lookup func(string) (string, bool)) int {
	depth := 0
	if value, ok := lookup(agent.DepthVariable); ok && value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > maxDepth {
			n = maxDepth
		}
		depth = n
	}
	return min(max(depth, above()), maxDepth)
}
