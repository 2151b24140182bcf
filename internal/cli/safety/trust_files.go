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

// mostTrusted limits the files of a repository that one call trusts: nobody would review more.
const mostTrusted = 500

// trustable returns the files of a repository that have an effect once they are trusted: those below each directory
// from dir up to the root. It does not follow links.
func (p commands) trustable(c *contract.Call, dir string) []string {
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
	for at := filepath.Clean(dir); !place.Home; at = filepath.Dir(at) { // files of the home directory are the user's
		for _, name := range p.trustableNames() {
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

// walk calls add with each trustable file below top, or with top itself.
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

// trustableNames returns the names of files and directories in a repository that can have or be trustable files.
func (p commands) trustableNames() []string {
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

// recordedBeneath returns the trusted files of the repository around dir.
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

// partOf describes a file that defines an agent, a command or a skill of a project, or returns "" for any other file.
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

// isProfiles reports whether a file has profiles of models.
func isProfiles(file string) bool {
	dir := filepath.Dir(file)
	return slices.Contains(provider.EidolonFiles(dir), file) ||
		slices.Contains(provider.EidolonFiles(filepath.Dir(dir)), file)
}

// profilesIn describes the profiles in a file, and names the active one. It does not show keys.
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
