package codex

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
)

// refusals returns the known reasons why Codex fails.
func refusals(l agent.Launch, p passed) []agent.Refusal {
	var out []agent.Refusal
	home := codexHome(l.Env)
	if named := cli.First(l.Env, "CODEX_HOME"); named != "" && l.Spec.Rehearsal == nil {
		if _, err := os.Stat(named); os.IsNotExist(err) {
			out = append(out, agent.Refusal{
				Reason: "CODEX_HOME names a directory that does not exist", Fix: "make the directory",
				Command: text.Shell("mkdir", "-p", named),
			})
		}
	}
	skips := l.Spec.Terms.Once || p.has("--skip-git-repo-check") || p.bypass()
	if !l.Interactive && !skips && !inRepository(workDir(l, p)) {
		out = append(out, outsideRepository(l, p))
	}
	if temp := tempDir(l.Env); home != "" && pathname.Within(pathname.Real(temp), pathname.Real(home)) && !p.bypass() &&
		!sendsFullAccess(l) {
		names := "HOME and CODEX_HOME"
		if l.Spec.Rehearsal != nil {
			names = "HOME and XDG_STATE_HOME" // the private home is in our state directory
		}
		out = append(out, agent.Refusal{
			Reason: "Codex's home lies in " + temp + ", where its sandbox cannot run a command", Fix: "let " + names +
				" name another place, or TMPDIR",
			Codes: []int{0}, // Codex continues after that
		})
	}
	return out
}

// outsideRepository is Codex's refusal to work outside a repository. A rehearsal is refused too.
func outsideRepository(l agent.Launch, p passed) agent.Refusal {
	flag := "--skip-git-repo-check"
	if len(l.Spec.Passthrough) == 0 {
		flag = "-- " + flag
	}
	return agent.Refusal{
		Reason: "codex exec works inside a Git repository only", Fix: "add " + flag +
			" at the end, or make it a repository", Command: text.Shell("git", "init", workDir(l, p)),
	}
}

// refused returns the fault for that refusal if stderr ends with it, or nil. There is no record, because no session
// began. The launch's refusals have the advice.
func refused(x agent.Exit, l agent.Launch) *fault.Fault {
	const sentence = "Not inside a trusted directory and --skip-git-repo-check was not specified."
	said := strings.TrimRight(string(x.Stderr), "\r\n")
	if x.Code != 1 || l.Interactive || said[strings.LastIndexByte(said, '\n')+1:] != sentence {
		return nil
	}
	return fault.New(fault.AgentRefused, "it refuses to work outside of a Git repository")
}

// sendsFullAccess reports whether our own arguments turn the sandbox off.
func sendsFullAccess(l agent.Launch) bool {
	return slices.ContainsFunc(l.Args[:l.Translated],
		func(arg string) bool { return strings.Contains(arg, fullAccess) })
}

// codexHome returns the directory in which Codex keeps its settings and transcripts, or "".
func codexHome(env []string) string {
	if home := cli.First(env, "CODEX_HOME"); home != "" {
		return home
	}
	if home := cli.Home(env); filepath.IsAbs(home) {
		return filepath.Join(home, ".codex")
	}
	return ""
}

// keeps returns the places of the CLI's own data.
func keeps(env []string) agent.Keeps { return agent.Keeps{Dirs: []string{codexHome(env)}} }

// workDir returns the directory that the agent works in.
func workDir(l agent.Launch, p passed) string {
	dir, ok := p.dir()
	switch {
	case !ok || dir == "":
		return l.Dir
	case filepath.IsAbs(dir):
		return dir
	}
	return filepath.Join(l.Dir, dir)
}

// inRepository reports whether a directory is in a Git repository. An empty .git directory does not count.
func inRepository(dir string) bool {
	for at := range cli.Upward(dir) {
		git := filepath.Join(at, ".git")
		if info, err := os.Stat(git); err == nil && (!info.IsDir() || cli.Exists(git, "HEAD")) {
			return true // worktrees and submodules have a file
		}
	}
	return false
}

func tempDir(env []string) string {
	if dir := cli.First(env, "TMPDIR"); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Clean(os.TempDir())
}
