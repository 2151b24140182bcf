package claude

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/sys/workspace"
)

const (
	longestInstructions = 128 << 10 // of one file; the CLI warns about shorter ones
	mostInstructions    = 256 << 10 // of all files
	mostRules           = 50        // files in .claude/rules
	deepestImport       = 5         // levels of @ references
)

// collection gathers a project's instructions.
type collection struct {
	root *workspace.Dir
	seen []string
	text strings.Builder
}

// instructions returns what the CLI would read as the memory of the project, from the root of the repository down to
// the directory: CLAUDE.md, and the files that it names with @. They are text for the model, and need no more trust
// than other files that it reads. Files that are too long, or not regular files of the repository, are left out, and
// the text says so.
func instructions(dirs []string) string {
	if len(dirs) == 0 {
		return ""
	}
	root, err := workspace.OpenDir(dirs[0])
	if err != nil {
		return ""
	}
	defer root.Close()
	g := &collection{root: root}
	for _, dir := range dirs {
		rel, err := filepath.Rel(dirs[0], dir)
		if err != nil {
			continue
		}
		at := filepath.ToSlash(rel)
		g.add(path.Join(at, "CLAUDE.md"), 0)
		g.add(path.Join(at, ".claude/CLAUDE.md"), 0)
		folder := path.Join(at, ".claude/rules")
		rules, more, err := root.ReadDir(folder, mostRules)
		if err == nil {
			for _, e := range rules {
				if path.Ext(e.Name()) == ".md" {
					g.add(path.Join(folder, e.Name()), 0)
				}
			}
		}
		if more {
			fmt.Fprintf(&g.text, "The repository has more than %d instructions in %s; some are left out.\n\n",
				mostRules, folder)
		}
		g.add(path.Join(at, "CLAUDE.local.md"), 0)
	}
	return g.text.String()
}

// add appends a file, and then the files that it names.
func (g *collection) add(name string, depth int) {
	if slices.Contains(g.seen, name) {
		return
	}
	if _, err := g.root.Lstat(name); err != nil {
		return
	}
	g.seen = append(g.seen, name)
	data, err := g.root.ReadFile(name, longestInstructions)
	switch {
	case err != nil:
		fmt.Fprintf(&g.text,
			"The repository's instructions in %s are left out: too long, or not a file of the repository.\n\n", name)
		return
	case g.text.Len()+len(data) > mostInstructions:
		fmt.Fprintf(&g.text, "The repository's instructions in %s are left out: there are too many.\n\n", name)
		return
	}
	text := strings.ToValidUTF8(string(data), "\ufffd")
	fmt.Fprintf(&g.text, "The repository's instructions, from %s:\n\n%s\n\n", name, strings.TrimSpace(text))
	if depth == deepestImport {
		return
	}
	for _, other := range imports(text) {
		if !path.IsAbs(other) && !strings.HasPrefix(other, "~") {
			g.add(path.Join(path.Dir(name), other), depth+1)
		}
	}
}

// imports returns the files that a text names with @, outside of code.
func imports(text string) []string {
	var names []string
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		for i, part := range strings.Split(line, "`") {
			for word := range strings.FieldsSeq(part) {
				if name, ok := strings.CutPrefix(word, "@"); ok && i%2 == 0 && name != "" {
					names = append(names, strings.TrimRight(name, ".,;:)"))
				}
			}
		}
	}
	return names
}
