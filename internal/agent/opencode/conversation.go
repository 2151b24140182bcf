package opencode

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/fault"
	"omniagent/internal/literal"
	"omniagent/internal/setting"
	"omniagent/internal/workspace"
)

// Mind prepares a conversation: over ACP a lasting process, else a process for every turn.
func (d driver) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	if err := harmless(s); err != nil {
		return nil, err
	}
	stream := func(s agent.Spec, sv agent.Services) (agent.Mind, error) {
		sv.Connect = 0 // it prints nothing before the model has answered
		return cli.TurnMind(conversing{d}, s, sv)
	}
	return cli.ACP{Driver: conversing{d}, Launch: d.acp, Models: true, Stream: stream}.Mind(s, sv)
}

// acp returns the launch of a process that speaks ACP. Neither a model nor --auto is an argument there: the settings
// choose the one, and we answer what the other would.
func (d driver) acp(s agent.Spec) (agent.Launch, error) {
	if err := harmless(s); err != nil {
		return agent.Launch{}, err
	}
	d.OneShot = []string{"acp"}
	s.Mode, s.Passthrough = setting.OneShot, nil
	m := d.Matrix(s.Install.Version)
	m.Edit(agent.Approval, string(setting.Yolo), func(c *agent.Cell) { c.Args = nil })
	m.Rows = slices.DeleteFunc(m.Rows, func(r agent.Row) bool { return r.Feature == agent.Model })
	plain := s
	plain.Shared.Model, plain.Shared.Output = setting.Chosen[string]{}, setting.Chosen[setting.Output]{}
	t := cli.Translate(m, plain)
	t.Env = append(permission(t.Env, s), "PWD="+s.Dir)
	if s.Rehearsal != nil {
		rehearse(&t, s)
	}
	return closed(d.Launch(s, t)), nil
}

// conversing is the driver in a conversation. Before the process of each turn, it checks what the CLI would run of the
// repository.
type conversing struct{ driver }

// Command refuses to start if the CLI would run an untrusted program of the repository. Everything else that a
// repository configures is switched off: its settings, agents, commands and tools by the first variable, skills of
// other agents by the second.
func (c conversing) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	if err := harmless(s); err != nil {
		return agent.Launch{}, nil, err
	}
	l, warnings, err := c.driver.Command(s)
	return closed(l), warnings, err
}

// closed switches off what a repository configures.
func closed(l agent.Launch) agent.Launch {
	l.Env = cli.Environ(l.Env, []string{"OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_DISABLE_EXTERNAL_SKILLS=1"})
	return l
}

const (
	longestConfig = 1 << 20 // of a configuration file, as of a file that can be trusted
	mostFiles     = 500     // in a directory of programs
)

// withheld reports whether the CLI neither reads nor runs an entry of .opencode while the switches are on. All of these
// were tried. Any other entry has to be trusted, because a later version might read it.
func withheld(name string) bool {
	return slices.Contains([]string{
		"agent", "agents", "command", "commands", "mode", "modes", "skill", "skills", "tool", "tools", "themes",
		"plans",
		".gitignore", "package.json", "package-lock.json", "bun.lock", "bun.lockb", "node_modules", "README.md",
	}, name)
}

// inert reports whether a member of a configuration file has no effect while the switches are on. Any other member may
// name a program.
func inert(key string) bool {
	return slices.Contains([]string{
		"$schema", "agent", "autoshare", "autoupdate", "command", "compaction", "default_agent",
		"disabled_providers", "enabled_providers", "formatter", "instructions", "keybinds", "lsp", "mcp", "mode",
		"model", "permission", "provider", "share", "small_model", "snapshot", "theme", "tools", "username",
		"watcher",
	}, key)
}

// harmless returns a fault about the first file of the repository that the CLI would run, or take the name of a program
// from, and whose content is not trusted.
func harmless(s agent.Spec) error {
	if s.Dir == "" {
		return nil
	}
	dirs := reached(s.Dir)
	if real, err := filepath.EvalSymlinks(s.Dir); err == nil && real != filepath.Clean(s.Dir) {
		dirs = append(dirs, reached(real)...)
	}
	home := cli.First(s.Env, "HOME")
	for _, dir := range dirs {
		if home != "" && same(dir, home) {
			continue // its files are the user's own
		}
		for _, name := range []string{"opencode.json", "opencode.jsonc"} {
			if err := settings(s, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		if err := directory(s, filepath.Join(dir, ".opencode")); err != nil {
			return err
		}
	}
	return nil
}

// reached returns the directories in which the CLI looks: from dir up to the root of its repository, as git sees it, or
// only dir without a repository. It does not stop at a .git that may not be a repository, since git would look further
// up.
func reached(dir string) []string {
	var all []string
	doubtful := false
	for at := range cli.Upward(dir) {
		all = append(all, at)
		git := filepath.Join(at, ".git")
		if cli.Exists(git) && begins(git) {
			return all
		}
		doubtful = doubtful || cli.Exists(git)
	}
	if doubtful {
		return all
	}
	return all[:1]
}

// begins reports whether git would take a directory for that of a repository, whose files are around it.
func begins(git string) bool {
	if info, err := os.Stat(git); err != nil || !info.IsDir() {
		return false // a file leads elsewhere, and the settings there may name other places
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

func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// directory checks a directory .opencode.
func directory(s agent.Spec, path string) error {
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
			err = settings(s, below)
		case !withheld(e.Name()):
			left := mostFiles
			err = programs(s, below, &left)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// programs checks files that may be run, each of which has to be trusted.
func programs(s agent.Spec, path string, left *int) error {
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
		if err := programs(s, filepath.Join(path, e.Name()), left); err != nil {
			return err
		}
	}
	return nil
}

// settings checks a configuration file. A file in which nothing could name a program has no effect, and need not be
// trusted.
func settings(s agent.Spec, path string) error {
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

// ambiguous reports whether the CLI's parser could see lines or strings that ours does not see.
func ambiguous(text string) bool {
	unix := strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Contains(unix, "\\\n") || strings.ContainsAny(unix, "\r\v\f\x00\u2028\u2029\ufeff")
}

// byName reports whether all strings of a value are words, or packages with their versions: neither paths nor
// addresses.
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

// obeys returns what the CLI does with a file of trusted content.
func obeys(file string) string {
	if agent.Beneath(file, ".opencode") || slices.Contains([]string{"opencode.json", "opencode.jsonc"},
		filepath.Base(file)) {
		return "what opencode runs in a conversation as a program, or takes the name of a program from"
	}
	return ""
}
