package codex

import (
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/fault"
)

// refusals are the conditions under which Codex is known to fail.
func refusals(l agent.Launch, p passed) []agent.Refusal {
	var out []agent.Refusal
	home := codexHome(l.Env)
	if named, ok := cli.Lookup(l.Env, "CODEX_HOME"); ok && named != "" && l.Spec.Rehearsal == nil {
		if _, err := os.Stat(named); os.IsNotExist(err) {
			out = append(out, agent.Refusal{
				Reason: "CODEX_HOME names a directory that does not exist", Fix: "make the directory",
				Command: "mkdir -p " + quoted(named),
			})
		}
	}
	if !l.Interactive && !p.has("--skip-git-repo-check") && !p.bypass() && !inRepository(workDir(l, p)) {
		out = append(out, outside(l, p))
	}
	if temp := tempDir(l.Env); beneath(home, temp) && !p.bypass() && !full(l) {
		names := "HOME and CODEX_HOME"
		if l.Spec.Rehearsal != nil {
			names = "HOME and XDG_STATE_HOME" // its home is among our own files
		}
		out = append(out, agent.Refusal{
			Reason: "Codex's home lies in " + temp + ", where its sandbox cannot run a command", Fix: "let " + names +
				" name another place, or TMPDIR",
			Codes: []int{0}, // it goes on after that
		})
	}
	return out
}

// outside is the refusal to work where no repository is. A rehearsal is refused as well: it shows what a call without
// it will meet.
func outside(l agent.Launch, p passed) agent.Refusal {
	flag := "--skip-git-repo-check"
	if len(l.Spec.Passthrough) == 0 {
		flag = "-- " + flag
	}
	return agent.Refusal{
		Reason: "codex exec works inside a Git repository only", Fix: "add " + flag +
			" at the end, or make it a repository", Command: "git init " + quoted(workDir(l, p)),
	}
}

// refused recognises that refusal where we could read along: no session began, so there is no record of it. What to do
// is in the refusals of the launch.
func refused(x agent.Exit, l agent.Launch) *fault.Fault {
	const sentence = "Not inside a trusted directory and --skip-git-repo-check was not specified."
	text := strings.TrimRight(string(x.Stderr), "\r\n")
	if x.Code != 1 || l.Interactive || text[strings.LastIndexByte(text, '\n')+1:] != sentence {
		return nil
	}
	return fault.New(fault.AgentRefused, "it refuses to work outside of a Git repository")
}

// full says whether the sandbox is off by a word of ours.
func full(l agent.Launch) bool {
	for _, arg := range l.Args[:l.Translated] {
		if strings.Contains(arg, fullAccess) {
			return true
		}
	}
	return false
}

// codexHome is where Codex keeps its settings and transcripts; empty if that is not known.
func codexHome(env []string) string {
	if home, ok := cli.Lookup(env, "CODEX_HOME"); ok && home != "" {
		return home
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, ok := cli.Lookup(env, name); ok && filepath.IsAbs(home) {
			return filepath.Join(home, ".codex")
		}
	}
	return ""
}

// workDir is where the agent works.
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

// inRepository says whether dir or one above it is the top of a Git repository. An empty directory .git makes none.
func inRepository(dir string) bool {
	for ; dir != ""; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if info, err := os.Stat(git); err == nil {
			if !info.IsDir() {
				return true // of a worktree or a submodule
			}
			if _, err := os.Stat(filepath.Join(git, "HEAD")); err == nil {
				return true
			}
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return false
}

func tempDir(env []string) string {
	if dir, ok := cli.Lookup(env, "TMPDIR"); ok && filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Clean(os.TempDir())
}

func beneath(path, dir string) bool {
	if path == "" {
		return false
	}
	path, dir = real(path), real(dir)
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// real is the path without symbolic links, as far as it exists.
func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return filepath.Clean(path)
}

func quoted(path string) string {
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
