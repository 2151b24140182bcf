package native

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/workspace"
)

const (
	mostSkills   = 64
	longestSkill = 64 << 10
)

// skills returns the user's skills and a project's trusted skills, which replace the user's of the same name.
func (o Options) skills() []tool.Skill {
	var all []tool.Skill
	add := func(dir string, trusted func(path string, content []byte) bool) {
		entries, _ := os.ReadDir(dir) // sorted by name
		for _, e := range entries {
			path := filepath.Join(dir, e.Name(), "SKILL.md")
			data, err := workspace.ReadFile(path, longestSkill)
			switch {
			case errors.Is(err, fault.FieldTooLarge):
				o.Log("the skill %s is not offered: %v", e.Name(), err)
				continue
			case err != nil:
				continue
			case len(all) == mostSkills:
				o.Log("the skill %s is not offered, because there are already %d", e.Name(), mostSkills)
				continue
			}
			if !trusted(path, data) {
				o.Log("the skill %s is not offered, because its content is not trusted; review it, then run: "+
					"omniagent trust %s", e.Name(), path)
				continue
			}
			s := skillOf(e.Name(), string(data))
			s.Dir = filepath.Dir(path)
			if !slices.ContainsFunc(all, func(have tool.Skill) bool { return have.Name == s.Name }) {
				all = append(all, s)
			}
		}
	}
	root, _ := config.ProjectRoot(o.Dir)
	for _, name := range []string{"skills", ".claude/skills"} {
		add(filepath.Join(root, filepath.FromSlash(name)), func(path string, data []byte) bool {
			return o.Trusted != nil && o.Trusted(path, data)
		})
	}
	mine := func(string, []byte) bool { return true }
	if o.Config != "" {
		add(filepath.Join(o.Config, "skills"), mine)
	}
	if o.Walls.Home != "" && filepath.Clean(o.Walls.Home) != filepath.Clean(root) {
		add(filepath.Join(o.Walls.Home, ".claude", "skills"), mine)
	}
	return all
}

// skillOf reads a skill: lines between --- with its name and its description, then its instructions. Without a name, it
// is named dir.
func skillOf(dir, content string) tool.Skill {
	s := tool.Skill{Name: dir, Text: content}
	head, body, found := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(content, "\r\n", "\n"), "---\n"), "\n---")
	if !strings.HasPrefix(content, "---") || !found {
		s.Description = text.OneLine(strings.TrimLeft(content, "# \n"), 200)
		return s
	}
	s.Text = strings.TrimSpace(body)
	fields, last := map[string]string{}, ""
	for line := range strings.Lines(head) {
		name, value, is := strings.Cut(line, ":")
		if is && !strings.HasPrefix(line, " ") {
			last = strings.TrimSpace(name)
			fields[last] = strings.Trim(strings.TrimSpace(value), `"'>|`)
			continue
		}
		fields[last] += " " + strings.TrimSpace(line) // a text over several lines
	}
	if name := strings.TrimSpace(fields["name"]); name != "" {
		s.Name = text.OneLine(name, 64)
	}
	s.Description = text.OneLine(cmp.Or(strings.TrimSpace(fields["description"]), s.Text), 400)
	return s
}
