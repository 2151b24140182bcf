package claude

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/workspace"
)

// In a conversation, the CLI does not read a repository's configuration itself: it reads some files once, others again
// and again, and which depends on its version. It gets the user's own settings, and from us those files of the
// repository whose content a person has trusted, and the project's instructions as text.

const longestFile = 1 << 20 // as of a file that can be trusted

// passed adds the flags that keep the CLI from the repository's files, and those that name our copies of trusted files.
func passed(args []string, s agent.Spec) ([]string, []agent.File) {
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
	dirs := places(s)
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

// places returns the directories whose files the CLI would take for the project's, the nearest last. The files of a
// home directory are the user's own.
func places(s agent.Spec) []string {
	home := cli.First(s.Env, "HOME")
	dirs := slices.DeleteFunc(within(s.Dir), func(dir string) bool { return home != "" && dir == filepath.Clean(home) })
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
	return data, true // an older version made no copy; the hash says that the content is the same
}

// trustedSettings returns the settings of the directory itself. The CLI reads none above it.
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

// merged combines settings as the CLI does: objects are merged, lists are joined, and of other values the later counts.
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

// trustedAgents returns sub-agents in the form of the flag, without their hooks, servers and permission modes, so that
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

// helper reads a file that defines a sub-agent. It rejects a file whose head has anything but lines of the form "name:
// value".
func helper(text string) (name string, one map[string]any, ok bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest, begins := strings.CutPrefix(text, "---\n")
	head, body, ends := strings.Cut(rest, "\n---")
	if !begins || !ends {
		return "", nil, false
	}
	one = map[string]any{"prompt": strings.TrimSpace(body)}
	var list string // the member whose items follow, a line each
	for line := range strings.Lines(head) {
		line = strings.TrimRight(line, " \t\n")
		item, isItem := strings.CutPrefix(strings.TrimSpace(line), "- ")
		switch {
		case isItem && list != "":
			words, _ := one[list].([]string)
			one[list] = append(words, unquoted(item))
			continue
		case isItem, line == "", strings.ContainsAny(line[:1], " \t#"):
			continue // belongs to a member that is not passed on
		}
		key, value, is := strings.Cut(line, ":")
		value, list = strings.TrimSpace(value), ""
		bare := strings.Trim(key, " \t\"'")
		switch {
		case !is, bare != key && strings.Contains(strings.ToLower(bare), "tools"):
			return "", nil, false // a restriction in a form that is not understood
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

// within returns a directory and those above it, up to the root of the repository. Without a repository it returns only
// the directory.
func within(dir string) (all []string) {
	for at := range cli.Upward(dir) {
		if all = append(all, at); cli.Exists(at, ".git") {
			return all
		}
	}
	return all[:1]
}

// obeys returns what the CLI does with a file of trusted content.
func obeys(file string) string {
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
