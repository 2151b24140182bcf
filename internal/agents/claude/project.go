package claude

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/sys/workspace"
)

// In a conversation, the CLI must not read a repository's configuration itself: it reads some files once and others
// repeatedly, depending on its version, so their content could change after a person trusted it. It reads the user's
// own settings. We pass it copies of the repository's trusted files, and the project's instructions as text.

const longestFile = 1 << 20 // the limit for trusted files

// projectFlags adds flags that keep the CLI from reading the repository's files, and flags that name our copies of
// trusted ones.
func projectFlags(args []string, s agent.Spec) ([]string, []agent.File) {
	args = append(args, "--setting-sources=user", "--strict-mcp-config")
	if s.Dir == "" || s.Temp == "" {
		return args, nil
	}
	var files []agent.File
	put := func(name string, data []byte) string {
		path := filepath.Join(s.Temp, name)
		files = append(files, agent.File{Path: path, Data: data})
		return path
	}
	dirs := projectDirs(s)
	if all := trustedSettings(s); len(all) > 0 {
		args = slices.Clone(args)
		for i, arg := range args {
			var ours map[string]any
			if text, ok := strings.CutPrefix(arg, settings+"="); ok && json.Unmarshal([]byte(text), &ours) == nil {
				all = merged(all, ours)
				args = slices.Delete(args, i, i+1)
				break
			}
		}
		args = append(args, settings+"="+put("settings.json", []byte(encode(all))))
	}
	if servers := trustedServers(s, dirs); len(servers) > 0 && !s.Terms.OnlyThese {
		args = append(args, "--mcp-config="+put("servers.json", []byte(encode(map[string]any{"mcpServers": servers}))))
	}
	if agents := trustedAgents(s, dirs); len(agents) > 0 {
		args = append(args, "--agents="+encode(agents))
	}
	if text := instructions(dirs); text != "" {
		args = append(args, "--append-system-prompt-file="+put("instructions.md", []byte(text)))
	}
	return args, files
}

// projectDirs returns the directories whose files the CLI would count as the project's, the nearest last. Files in the
// home directory are the user's own.
func projectDirs(s agent.Spec) []string {
	home := cli.First(s.Env, "HOME")
	dirs := slices.DeleteFunc(repositoryDirs(s.Dir), func(dir string) bool {
		return home != "" && dir == filepath.Clean(home)
	})
	slices.Reverse(dirs)
	return dirs
}

// trusted returns the content of a file that a person has trusted, from the copy that was made then.
func trusted(s agent.Spec, path string) ([]byte, bool) {
	if s.Trusted == nil {
		return nil, false
	}
	data, err := workspace.ReadFile(path, longestFile)
	if err != nil || !s.Trusted(path, data) {
		return nil, false
	}
	if s.Copy != nil {
		if original, ok := s.Copy(path); ok {
			return original, true
		}
	}
	return data, true // an older version made no copy; its hash matches
}

// trustedSettings returns the settings of the directory itself. The CLI does not look above it.
func trustedSettings(s agent.Spec) map[string]any {
	all := map[string]any{}
	if home := cli.First(s.Env, "HOME"); home != "" && filepath.Clean(s.Dir) == filepath.Clean(home) {
		return all
	}
	for _, name := range []string{"settings.json", "settings.local.json"} {
		var one map[string]any
		if data, ok := trusted(s, filepath.Join(s.Dir, ".claude", name)); ok && json.Unmarshal(data, &one) == nil {
			all = merged(all, one)
		}
	}
	return all
}

// merged combines settings as the CLI does: it merges objects, joins lists, and otherwise prefers the later value.
func merged(below, above map[string]any) map[string]any {
	out := maps.Clone(below)
	for name, value := range above {
		switch v := value.(type) {
		case map[string]any:
			if old, ok := out[name].(map[string]any); ok {
				out[name] = merged(old, v)
				continue
			}
		case []any:
			if old, ok := out[name].([]any); ok {
				out[name] = append(slices.Clone(old), v...)
				continue
			}
		}
		out[name] = value
	}
	return out
}

func trustedServers(s agent.Spec, dirs []string) map[string]any {
	all := map[string]any{}
	for _, dir := range dirs {
		var file struct {
			Servers map[string]any `json:"mcpServers"`
		}
		if data, ok := trusted(s, filepath.Join(dir, ".mcp.json")); ok && json.Unmarshal(data, &file) == nil {
			maps.Copy(all, file.Servers)
		}
	}
	return all
}

// trustedAgents returns sub-agents in the form of --agents, without their hooks, servers and permission modes, so that
// the mode of the conversation applies to them too.
func trustedAgents(s agent.Spec, dirs []string) map[string]any {
	all := map[string]any{}
	for _, dir := range dirs {
		base := filepath.Join(dir, ".claude", "agents")
		entries, err := os.ReadDir(base)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) != ".md" {
				continue
			}
			data, ok := trusted(s, filepath.Join(base, e.Name()))
			if !ok {
				continue
			}
			if name, one, ok := helper(string(data)); ok {
				all[name] = one
			}
		}
	}
	return all
}

// helper reads a file that defines a sub-agent. It rejects front matter with anything but lines of the form "name:
// value".
func helper(text string) (name string, one map[string]any, ok bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest, begins := strings.CutPrefix(text, "---\n")
	head, body, ends := strings.Cut(rest, "\n---")
	if !begins || !ends {
		return "", nil, false
	}
	one = map[string]any{"prompt": strings.TrimSpace(body)}
	var list string // the member whose items follow, one a line
	for line := range strings.Lines(head) {
		line = strings.TrimRight(line, " \t\n")
		item, isItem := strings.CutPrefix(strings.TrimSpace(line), "- ")
		switch {
		case isItem && list != "":
			words, _ := one[list].([]string)
			one[list] = append(words, unquoted(item))
			continue
		case isItem, line == "", strings.ContainsAny(line[:1], " \t#"):
			continue // part of a member that is not passed on
		}
		key, value, is := strings.Cut(line, ":")
		value, list = strings.TrimSpace(value), ""
		bare := strings.Trim(key, " \t\"'")
		switch {
		case !is, bare != key && strings.Contains(strings.ToLower(bare), "tools"):
			return "", nil, false // a restriction that we cannot parse
		case key == "name":
			name = unquoted(value)
		case key == "description", key == "model":
			one[key] = unquoted(value)
		case key == "tools", key == "disallowedTools":
			if one[key] = words(value); value == "" {
				one[key], list = []string{}, key
			}
		}
	}
	described, _ := one["description"].(string)
	return name, one, name != "" && described != "" && !strings.ContainsAny(described[:1], "|>&*!{[")
}

func words(value string) []string {
	list := []string{}
	for word := range strings.SplitSeq(strings.Trim(value, "[]"), ",") {
		if word = unquoted(strings.TrimSpace(word)); word != "" {
			list = append(list, word)
		}
	}
	return list
}

func unquoted(value string) string {
	if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}

// repositoryDirs returns a directory and its parents, up to the root of the repository. Outside a repository, it
// returns only the directory.
func repositoryDirs(dir string) (all []string) {
	for at := range cli.Upward(dir) {
		if all = append(all, at); cli.Exists(at, ".git") {
			return all
		}
	}
	return all[:1]
}

// repoEffect describes what the CLI does with a trusted file.
func repoEffect(file string) string {
	name := filepath.Base(file)
	switch {
	case name == ".mcp.json":
		return "MCP servers that Claude Code starts in a conversation"
	case agent.Beneath(file, ".claude") && strings.HasPrefix(name, "settings") && filepath.Ext(name) == ".json":
		return "settings that Claude Code gets in a conversation, with their hooks, variables and rules"
	case agent.Beneath(file, ".claude") && filepath.Base(filepath.Dir(file)) == "agents":
		return "a sub-agent that Claude Code gets in a conversation: its description, prompt, tools and model"
	}
	return ""
}
