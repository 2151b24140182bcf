package safety

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/sys/config"
)

// mostTrusted is how many files of a repository are trusted at once. More than that nobody looks at.
const mostTrusted = 500

// countable returns the files of a repository that can count, below each directory from the one that is named up to
// the root, and the records of trust there whose files are gone. It does not follow links.
func (p commands) countable(c *contract.Call, dir string) []string {
	root, _ := config.ProjectRoot(dir)
	files := []string{}
	add := func(path string) {
		if !slices.Contains(files, path) && len(files) < mostTrusted {
			files = append(files, path)
		}
	}
	place := c.ProjectAt(dir)
	if place.Exists {
		add(place.File)
	}
	for at := filepath.Clean(dir); !place.Home; at = filepath.Dir(at) { // what is in the home directory is the user's
		for _, name := range p.brought() {
			p.walk(filepath.Join(at, filepath.FromSlash(name)), add)
		}
		if at == root || at == filepath.Dir(at) {
			break
		}
	}
	if len(files) == mostTrusted {
		c.Warn("TOO_MANY_FILES", "only the first %d files of %s are looked at", mostTrusted, root)
	}
	return files
}

// walk calls add with the files below a path, or the path itself, that can count.
func (p commands) walk(top string, add func(path string)) {
	_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case e.IsDir() && slices.Contains([]string{"node_modules", ".git"}, e.Name()):
			return filepath.SkipDir
		case e.Type().IsRegular() && p.effects(nil, path, nil) != nil:
			add(path)
		}
		return nil
	})
}

// brought are the names in a repository, of files and of directories, below which something can count.
func (p commands) brought() []string {
	names := []string{
		".omniagent", ".eidolon", ".eidolon.json", "AGENTS.md", "CLAUDE.md", "claude.md", ".claude/CLAUDE.md", "skills",
	}
	for _, name := range agentsfile.Names() {
		names = append(names, agentsfile.Default+"/"+name)
	}
	for _, d := range p.Agents {
		names = append(names, d.Describe().RepoFiles...)
	}
	return names
}

const maxTrusted = 1 << 20

// recordedBeneath returns what is trusted of a repository.
func recordedBeneath(record *config.Trust, dir string) (files []string) {
	root, _ := config.ProjectRoot(dir)
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	for _, e := range record.List() {
		if pathname.Within(root, e.Path) {
			files = append(files, e.Path)
		}
	}
	return files
}

// partOf describes a file of a project's own agents, commands and skills, by its place, or returns "".
func partOf(file string) string {
	slashed := filepath.ToSlash(file)
	if filepath.Base(file) == "SKILL.md" {
		if dir := filepath.Base(filepath.Dir(filepath.Dir(file))); dir == "skills" {
			return "the skill " + filepath.Base(filepath.Dir(file)) + ", which a model may follow"
		}
		return ""
	}
	for _, top := range []string{".eidolon", ".omniagent"} {
		_, beneath, found := strings.Cut(slashed, "/"+top+"/")
		name, isPage := strings.CutSuffix(beneath, ".md")
		switch {
		case !found || !isPage:
		case strings.HasPrefix(name, "agents/"):
			return "the agent @agent:" + filepath.Base(name) + ", whose prompt a conversation gets"
		case strings.HasPrefix(name, "commands/"), top == eidolon.Folder && !strings.HasPrefix(name, "projects/"):
			return "the command /" + eidolon.CommandName(beneath)
		}
	}
	return ""
}

// isProfiles reports whether a file is one of profiles of models.
func isProfiles(file string) bool {
	dir := filepath.Dir(file)
	return slices.Contains(provider.EidolonFiles(dir), file) ||
		slices.Contains(provider.EidolonFiles(filepath.Dir(dir)), file)
}

// profilesIn returns the profiles of a file, and the active one. A key is not shown.
func profilesIn(content []byte) []string {
	tree, err := literal.ParseJSON5(content)
	if err != nil {
		return []string{"nothing as it is: " + err.Error()}
	}
	lines := []string{}
	if active, ok := tree.Lookup("models", "active"); ok {
		lines = append(lines, fmt.Sprintf("the active profile is %q", active.Str))
	}
	word := func(v literal.Value, name string) string {
		at, _ := v.Lookup(name)
		return at.Str
	}
	describe := func(what string, v literal.Value) {
		line := what
		for _, m := range []string{"provider", "model", "apiKind", "baseUrl"} {
			if text := word(v, m); text != "" {
				line += " " + m + "=" + text
			}
		}
		if word(v, "apiKey") != "" {
			line += " with a key of its own"
		}
		lines = append(lines, line)
	}
	profiles, _ := tree.Lookup("models", "profiles")
	for _, one := range profiles.Items {
		describe(fmt.Sprintf("the profile %q:", word(one, "name")), one)
	}
	if older, ok := tree.Lookup("model"); ok {
		describe("the single model:", older)
	}
	if len(lines) == 0 {
		return []string{"nothing: it names no models"}
	}
	return lines
}
