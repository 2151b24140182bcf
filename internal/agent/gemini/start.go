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

	// defaultHeap is what Node gives itself at the most on a machine with less than 16 GB, in MiB.
	defaultHeap = 2096
)

// single is what makes the CLI one process: nothing where it should stay two.
//
// It starts itself a second time to get a larger heap, and so that the first process can restart it when its terminal
// interface asks for that with exit code 199: after a person has trusted the directory or signed in, and in /settings.
// Its own switch omits the first process, and saves a third of the time until the interface is ready (1.2 s, not 1.8).
// Then the caller has to restart it, see Launch.Again. A value that a person gave to the switch stays.
func single(s agent.Spec, memory int) []string {
	if _, said := cli.Lookup(s.Env, relaunchName); said {
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

// heap keeps the limit which the second start would have set: half of the machine's memory. A person works with the
// interface for hours, and a long conversation needs it. The CLI sets it with the same variable where it is one
// executable. It is not known where the machine's memory is not.
func heap(s agent.Spec, memory int) (set []string, known bool) {
	options := lookup(s.Env, nodeOptions, "")
	if strings.Contains(strings.ReplaceAll(options, "_", "-"), "--max-old-space-size") || contained(s) || keepsHeap(s) {
		return nil, true // a person chose it, it is not set in a container, or not wanted
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

// keepsHeap says whether the user's settings leave the heap as it is.
func keepsHeap(s agent.Spec) bool {
	on, ok := member(own(s.Env, "settings.json"), "advanced", "autoConfigureMemory")
	return ok && on.Kind == literal.Bool && !on.Bool
}
