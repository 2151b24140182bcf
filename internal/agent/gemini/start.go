package gemini

import (
	"strconv"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/literal"
	"omniagent/internal/setting"
)

const (
	relaunchName = "GEMINI_CLI_NO_RELAUNCH"
	nodeOptions  = "NODE_OPTIONS"
	startAnew    = 199

	// defaultHeap is the most that Node takes by itself on a machine with less than 16 GB, in MiB.
	defaultHeap = 2096
)

// single returns the variables that make the CLI one process. It returns none if the CLI should stay two.
//
// It starts itself a second time to get a larger heap, and so that the first process can restart it when its terminal
// interface asks for that with exit code 199: after a person has trusted the directory or signed in, and in /settings.
// Its own switch omits the first process, and saves a third of the time until the interface is ready (1.2 s, not 1.8).
// Then the caller has to restart it, see Launch.Again. A value that a person gave to the switch stays.
func single(s agent.Spec, memory int) []string {
	if _, set := cli.Lookup(s.Env, relaunchName); set {
		return nil
	}
	if s.Mode == setting.OneShot {
		return []string{relaunchName + "=true"}
	}
	heap, known := heap(s, memory)
	if !known {
		return nil
	}
	return append(heap, relaunchName+"=true")
}

// heap returns the variable with the limit that the second process would have got: half of the machine's memory. A
// person may use the interface for hours, and a long conversation needs it. known is false if the machine's memory is
// unknown.
func heap(s agent.Spec, memory int) (set []string, known bool) {
	options := lookup(s.Env, nodeOptions, "")
	if strings.Contains(strings.ReplaceAll(options, "_", "-"), "--max-old-space-size") || contained(s) || keepsHeap(s) {
		return nil, true // a person chose it or does not want it, or the CLI is in a container
	}
	if memory == 0 {
		return nil, false
	}
	if memory/2 <= defaultHeap {
		return nil, true
	}
	return []string{nodeOptions + "=" + strings.TrimSpace(options+" --max-old-space-size="+strconv.Itoa(memory/2))},
		true
}

// keepsHeap reports whether the user's settings keep the default heap.
func keepsHeap(s agent.Spec) bool {
	on, ok := member(own(s.Env, "settings.json"), "advanced", "autoConfigureMemory")
	return ok && on.Kind == literal.Bool && !on.Bool
}
