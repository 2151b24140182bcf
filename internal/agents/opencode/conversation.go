package opencode

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"omniagent/internal/agents/acpclient"
	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/workspace"
)

// Mind returns a Mind with a lasting process over ACP, or else with a process for every turn. It returns a fault if the
// CLI would run an untrusted file of the repository.
func (d driver) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	if err := checkRepository(s); err != nil {
		return nil, err
	}
	stream := func(s agent.Spec, sv agent.Services) (agent.Mind, error) {
		sv.Connect = 0 // the CLI prints nothing before the model has answered
		return cli.TurnMind(conversing{d}, s, sv)
	}
	return acpclient.Agent{
		Driver: conversing{d}, Launch: d.acp, Models: true, Recorded: spent, Stream: stream,
	}.Mind(s, sv)
}

// acp returns the launch of a process that speaks ACP. There are no arguments for a model and for --auto: the model is
// chosen in the settings, and we answer the questions that --auto would.
func (d driver) acp(s agent.Spec) (agent.Launch, error) {
	if err := checkRepository(s); err != nil {
		return agent.Launch{}, err
	}
	d.OneShot = []string{"acp"}
	s.Mode, s.Passthrough = setting.OneShot, nil
	m := d.Matrix(s.Install.Version)
	m.Edit(agent.Approval, string(setting.Yolo), func(c *agent.Cell) { c.Args = nil })
	m.Rows = slices.DeleteFunc(m.Rows, func(r agent.Row) bool { return r.Feature == agent.Model })
	plain := s
	plain.Shared.Model, plain.Shared.Output = setting.Chosen[string]{}, setting.Chosen[setting.Output]{}
	t, err := cli.Translate(m, plain)
	if err != nil {
		return agent.Launch{}, err
	}
	t.Env = append(permission(t.Env, s), "PWD="+s.Dir)
	if s.Rehearsal != nil {
		rehearse(&t, s)
	}
	return withoutProjectConfig(d.Launch(s, t)), nil
}

// conversing is the driver in a conversation.
type conversing struct{ driver }

// Command refuses to start if the CLI would run an untrusted program of the repository. The rest of a repository's
// configuration is turned off: see withoutProjectConfig.
func (c conversing) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	if err := checkRepository(s); err != nil {
		return agent.Launch{}, nil, err
	}
	l, warnings, err := c.driver.Command(s)
	return withoutProjectConfig(l), warnings, err
}

// withoutProjectConfig turns off a repository's configuration: its settings, agents, commands and tools with the first
// variable, skills of other agents with the second.
func withoutProjectConfig(l agent.Launch) agent.Launch {
	l.Env = cli.Environ(l.Env, []string{"OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_DISABLE_EXTERNAL_SKILLS=1"})
	return l
}

const (
	longestConfig = 1 << 20 // bytes of a configuration file; the limit for trusted files
	mostFiles     = 500     // in a directory of programs
)

// withheld reports whether the CLI neither reads nor runs an entry of .opencode while withoutProjectConfig is in
// effect. All of these were tried. Any other entry has to be trusted, because a later version might read it.
func withheld(name string) bool {
	return slices.Contains([]string{
		"agent", "agents", "command", "commands", "mode", "modes", "skill", "skills", "tool", "tools", "themes",
		"plans",
		".gitignore", "package.json", "package-lock.json", "bun.lock", "bun.lockb", "node_modules", "README.md",
	}, name)
}

// inert reports whether a member of a configuration file has no effect while withoutProjectConfig is in effect. Any
// other member may name a program.
func inert(key string) bool {
	return slices.Contains([]string{
		"$schema", "agent", "autoshare", "autoupdate", "command", "compaction", "default_agent",
		"disabled_providers", "enabled_providers", "formatter", "instructions", "keybinds", "lsp", "mcp", "mode",
		"model", "permission", "provider", "share", "small_model", "snapshot", "theme", "tools", "username",
		"watcher",
	}, key)
}

// checkRepository returns a fault about the first untrusted file of the repository that the CLI would run, or that may
// name a program for it.
func checkRepository(s agent.Spec) error {
	if s.Dir == "" {
		return nil
	}
	dirs := searchedDirs(s.Dir)
	if real, err := filepath.EvalSymlinks(s.Dir); err == nil && real != filepath.Clean(s.Dir) {
		dirs = append(dirs, searchedDirs(real)...)
	}
	home := cli.First(s.Env, "HOME")
	for _, dir := range dirs {
		if home != "" && pathname.Same(dir, home) {
			continue // these files are the user's own
		}
		for _, name := range []string{"opencode.json", "opencode.jsonc"} {
			if err := checkConfig(s, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		if err := checkDirectory(s, filepath.Join(dir, ".opencode")); err != nil {
			return err
		}
	}
	return nil
}

// searchedDirs returns the directories that the CLI searches: from dir up to the root of its repository, or only dir
// outside a repository. It does not stop at a .git that may not be a repository, because git would look further up.
func searchedDirs(dir string) []string {
	var all []string
	doubtful := false
	for at := range cli.Upward(dir) {
		all = append(all, at)
		git := filepath.Join(at, ".git")
		if cli.Exists(git) && isGitDir(git) {
			return all
		}
		doubtful = doubtful || cli.Exists(git)
	}
	if doubtful {
		return all
	}
	return all[:1]
}

// isGitDir reports whether git would accept a .git directory as that of a repository in its parent.
func isGitDir(git string) bool {
	if info, err := os.Stat(git); err != nil || !info.IsDir() {
		return false // a file points elsewhere, and the settings there may name other places
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(git, name)); err != nil {
			return false
		}
	}
	config, err := workspace.ReadFile(filepath.Join(git, "config"), longestConfig)
	text := strings.ToLower(string(config))
	return err == nil && !strings.Contains(text, "worktree") && !strings.Contains(text, "[include")
}

// checkDirectory checks a directory .opencode.
func checkDirectory(s agent.Spec, path string) error {
	info, err := os.Lstat(path)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil || !info.IsDir():
		return refused(path, "it is not a directory, or a link to one", "put a directory in its place")
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return refused(path, "it cannot be read", "omniagent doctor")
	}
	for _, e := range entries {
		below := filepath.Join(path, e.Name())
		switch {
		case e.Name() == "opencode.json" || e.Name() == "opencode.jsonc":
			err = checkConfig(s, below)
		case !withheld(e.Name()):
			left := mostFiles
			err = checkPrograms(s, below, &left)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkPrograms checks files that may be run. Each has to be trusted.
func checkPrograms(s agent.Spec, path string, left *int) error {
	info, err := os.Lstat(path)
	if err != nil {
		return refused(path, "it cannot be looked at", "omniagent doctor")
	}
	if *left--; *left < 0 {
		return refused(path, "it is one of too many files to be looked at", "keep programs and what they need apart")
	}
	if !info.IsDir() {
		return trusted(s, path, "it is not trusted, and may run as a program")
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return refused(path, "it cannot be read", "omniagent doctor")
	}
	for _, e := range entries {
		if err := checkPrograms(s, filepath.Join(path, e.Name()), left); err != nil {
			return err
		}
	}
	return nil
}

// checkConfig checks a configuration file. It has to be trusted if it could name a program.
func checkConfig(s agent.Spec, path string) error {
	if _, err := os.Lstat(path); os.IsNotExist(err) {
		return nil
	}
	data, err := workspace.ReadFile(path, longestConfig)
	if err != nil {
		return refused(path, "it cannot be read as a file of at most 1 MiB", "put such a file in its place")
	}
	tree, err := literal.ParseJSON5(data)
	if err != nil || tree.Kind != literal.Object || ambiguous(string(data)) {
		return trusted(s, path, "it is not trusted, and it cannot be understood")
	}
	i := slices.IndexFunc(tree.Members, func(m literal.Member) bool { return !inert(m.Key) })
	if i < 0 {
		return nil
	}
	why := "it is not trusted, and its member " + tree.Members[i].Key + " may name a program"
	if err := trusted(s, path, why); err != nil {
		return err
	}
	for _, m := range tree.Members {
		if strings.HasPrefix(m.Key, "plugin") && !byName(m.Value) {
			return refused(path, "its member "+m.Key+" leads to a file, whose content is not trusted",
				"put the plugin into .opencode/plugin, and trust it there")
		}
	}
	return nil
}

// ambiguous reports whether the CLI's parser could find lines or strings that ours does not.
func ambiguous(text string) bool {
	unix := strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Contains(unix, "\\\n") || strings.ContainsAny(unix, "\r\v\f\x00\u2028\u2029\ufeff")
}

// byName reports whether all strings in a value are words or packages with versions, not paths or URLs.
func byName(v literal.Value) bool {
	plain := regexp.MustCompile(`^(@[A-Za-z0-9._-]+/)?[A-Za-z0-9_-][A-Za-z0-9._-]*(@[0-9A-Za-z][0-9A-Za-z.+-]*)?$`)
	if v.Kind == literal.String {
		return v.Str == "" || plain.MatchString(v.Str)
	}
	return !slices.ContainsFunc(v.Items, func(item literal.Value) bool { return !byName(item) }) &&
		!slices.ContainsFunc(v.Members, func(m literal.Member) bool { return !byName(m.Value) })
}

// trusted returns nil if a person has reviewed exactly the content of the file.
func trusted(s agent.Spec, path, why string) error {
	data, err := workspace.ReadFile(path, longestConfig)
	if err != nil {
		return refused(path, "it cannot be read as a file of at most 1 MiB", "put such a file in its place")
	}
	if s.Trusted != nil && s.Trusted(path, data) {
		return nil
	}
	return refused(path, why, "omniagent trust "+path)
}

func refused(path, why, next string) error {
	return fault.New(fault.Unsafe, "opencode is not started, because it reads %s: %s", path, why).
		Hint("%s", next).With("path", path)
}

// repoEffect describes what the CLI does with a trusted file.
func repoEffect(file string) string {
	if agent.Beneath(file, ".opencode") || slices.Contains([]string{"opencode.json", "opencode.jsonc"},
		filepath.Base(file)) {
		return "what opencode runs in a conversation as a program, or takes the name of a program from"
	}
	return ""
}
