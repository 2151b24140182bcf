package safety

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/config"
)

// maxSummaryLines limits the lines of a summary.
const maxSummaryLines = 40

// whatCounts summarises what a file changes once its content is trusted, so that a person does not decide by the name
// alone.
func (p commands) whatCounts(keys []config.Key, file string, content []byte) []string {
	lines := p.effects(keys, file, content)
	if lines == nil {
		lines = []string{"nothing: this program reads no file of that name"}
	}
	if len(lines) > maxSummaryLines {
		lines = append(lines[:maxSummaryLines-1], fmt.Sprintf("… and %d more", len(lines)-maxSummaryLines+1))
	}
	for i, line := range lines {
		lines[i] = text.OneLine(line, 200)
	}
	return lines
}

// effects returns what a file changes once its content is trusted; nil if nothing reads a file of that name.
func (p commands) effects(keys []config.Key, file string, content []byte) (lines []string) {
	name := filepath.Base(file)
	switch {
	case name == "config.toml" && filepath.Base(filepath.Dir(file)) == ".omniagent":
		lines = settingsOf(keys, content)
	case slices.Contains(agentsfile.Names(), name):
		lines = agentsOf(file, content)
	case strings.EqualFold(name, "AGENTS.md") || strings.EqualFold(name, "CLAUDE.md"):
		lines = wholeText("instructions that the native agent's model follows", content)
	case isProfiles(file):
		lines = profilesIn(content)
	case partOf(file) != "":
		lines = wholeText(partOf(file), content)
	default:
		for _, d := range p.Agents {
			if effect := d.Describe().RepoEffect; effect != nil && effect(file) != "" {
				lines = wholeText(effect(file), content)
			}
		}
	}
	return lines
}

// wholeText returns the purpose of a file in one line, followed by its lines.
func wholeText(what string, content []byte) []string {
	lines, n := []string{""}, 0
	for line := range strings.Lines(string(content)) {
		n++
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	lines[0] = fmt.Sprintf("%s, %s:", what, text.Plural(n, "line"))
	return lines
}

// settingsOf describes the settings in a configuration file.
func settingsOf(keys []config.Key, content []byte) []string {
	tree, err := literal.ParseTOML(content)
	if err != nil {
		return []string{"nothing as it is: " + err.Error()}
	}
	lines := []string{}
	var walk func(above string, v literal.Value)
	walk = func(above string, v literal.Value) {
		for _, m := range v.Members {
			name := strings.TrimPrefix(above+"."+m.Key, ".")
			if m.Value.Kind == literal.Object {
				walk(name, m.Value)
				continue
			}
			bare := name
			if rest, of := strings.CutPrefix(name, "context."); of {
				_, bare, _ = strings.Cut(rest, ".")
			}
			i := slices.IndexFunc(keys, func(k config.Key) bool { return k.Name == bare })
			switch {
			case i >= 0 && keys[i].Personal:
				lines = append(lines, name+" does not count in a project's file")
			case i >= 0:
				lines = append(lines, fmt.Sprintf("%s = %s: %s", name, literalText(m.Value), keys[i].Help))
			case name != "current_context":
				lines = append(lines, name+" does not count: there is no such setting")
			default:
				lines = append(lines, name+" = "+literalText(m.Value))
			}
		}
	}
	walk("", tree)
	if len(lines) == 0 {
		return []string{"nothing: it sets nothing"}
	}
	return lines
}

func literalText(v literal.Value) string {
	switch v.Kind {
	case literal.Array:
		var items []string
		for _, item := range v.Items {
			items = append(items, literalText(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case literal.Bool:
		return fmt.Sprint(v.Bool)
	case literal.String:
		return fmt.Sprintf("%q", v.Str)
	}
	return v.Num + v.Str
}

// agentsOf describes the agents that a file defines, with the commands that they start.
func agentsOf(file string, content []byte) []string {
	f, err := agentsfile.Parse(file, content)
	if err != nil || f == nil {
		return []string{"nothing as it is: it defines no agents that can be read"}
	}
	var lines []string
	if f.DefaultAgent != "" {
		lines = append(lines, "the default agent is "+f.DefaultAgent)
	}
	for _, t := range f.Targets {
		if t.CLI == nil {
			lines = append(lines, fmt.Sprintf("the agent %s: another name for %s", t.ID, t.Inherits.Text))
			continue
		}
		for _, call := range []agentsfile.Call{t.CLI.Interactive, t.CLI.OneShot, t.CLI.ACP} {
			if call.Command != "" {
				line := fmt.Sprintf("the agent %s starts: %s", t.ID,
					strings.Join(append([]string{call.Command}, call.Args...), " "))
				if !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
	}
	if len(lines) == 0 {
		return []string{"nothing: it defines no agents"}
	}
	return lines
}
