package gemini

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
)

const (
	relaunchName = "GEMINI_CLI_NO_RELAUNCH"
	nodeOptions  = "NODE_OPTIONS"
	startAnew    = 199

	// defaultHeap is Node's default limit on a machine with less than 16 GB, in MiB.
	defaultHeap = 2096
)

const defaultsName = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"

// trusts lets the CLI work in a directory that is not trusted, if our sandbox hides the settings and the .env of the
// repository. With and without a sandbox, a default of ours keeps the CLI from reading a repository's .env, unless a
// person has trusted its content or has defaults of their own.
func trusts(t *cli.Translation, s agent.Spec) {
	if s.Walled {
		t.Env = append(t.Env, "GEMINI_CLI_TRUST_WORKSPACE=true")
	}
	path := filepath.Join(pathname.Real(s.Dir), ".env")
	data, err := workspace.ReadFile(path, 1<<20)
	trusted := err == nil && s.Trusted != nil && s.Trusted(path, data)
	_, moved := process.Value(s.Env, defaultsName)
	if trusted || moved || s.Temp == "" || hasDefaults() {
		return
	}
	own := filepath.Join(s.Temp, "defaults.json")
	t.Env = append(t.Env, defaultsName+"="+own)
	t.Files = append(t.Files, agent.File{Path: own, Data: []byte(`{"advanced":{"ignoreLocalEnv":true}}`)})
}

// hasDefaults reports whether the machine or the person has a file of defaults for the CLI.
func hasDefaults() bool {
	return slices.ContainsFunc([]string{
		"/etc/gemini-cli", "/Library/Application Support/GeminiCli", `C:\ProgramData\gemini-cli`,
	}, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "system-defaults.json"))
		return err == nil
	})
}

// singleProcess returns the variables that keep the CLI to one process, or nil if it should start its second one.
//
// By default, the CLI starts itself a second time. The second process gets a larger heap, and the first one restarts it
// when its terminal interface exits with 199: after a person has trusted the directory or signed in, and in /settings.
// The CLI has a switch that omits the first process, so that the interface is ready in 1.2 s instead of 1.8 s. Then the
// caller has to restart it: see Launch.RestartCode. A value that a person gave to the switch is kept.
func singleProcess(s agent.Spec, memory int) []string {
	if _, set := process.Value(s.Env, relaunchName); set {
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

// heap returns the variable with the heap limit of the second process: half of the machine's memory, which a long
// conversation needs. known is false if the machine's memory is unknown.
func heap(s agent.Spec, memory int) (set []string, known bool) {
	options := cli.First(s.Env, nodeOptions)
	if strings.Contains(strings.ReplaceAll(options, "_", "-"), "--max-old-space-size") || startsContainer(s) ||
		keepsHeap(s) {
		return nil, true // a person chose or declined it, or the CLI is in a container
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
	on, ok := member(configPath(s.Env, "settings.json"), "advanced", "autoConfigureMemory")
	return ok && on.Kind == literal.Bool && !on.Bool
}
