package eidolon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// The limits of what is read.
const (
	longestPrompt = 1 << 20
	mostFiles     = 2000
	deepest       = 16
)

// Prompts are the agents and commands that a person and a workspace define, sorted by name.
type Prompts struct {
	Agents   []Prompt
	Commands []Prompt
	Problems []Problem
}

// Prompt is a text that a person can add to a conversation by its name.
type Prompt struct {
	Name        string // of a command, without the slash
	Description string
	Text        string
	Path        string // absolute
	Project     bool   // it comes from the workspace
	Untrusted   bool   // it comes from the workspace and is not trusted, so it must not be used
}

// Problem is a file, or a place in it, that is invalid.
type Problem struct {
	Path         string
	Line, Column int // 0: the file as a whole
	Reason       string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Reason
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.Path, p.Line, p.Column, p.Reason)
}

// ReadPrompts reads the agents and commands of a home directory and of a workspace, each of which may be "". A trusted
// prompt of the workspace replaces the user's prompt with the same name.
func ReadPrompts(ctx context.Context, home, root string, trusted func(path string, content []byte) bool) Prompts {
	r := reader{trusted: trusted}
	if home != "" {
		own := filepath.Join(home, Folder)
		r.agents(ctx, own, false)
		r.commands(ctx, own, "commands", false)
	}
	if root != "" && root != home {
		own := filepath.Join(root, Folder)
		r.agents(ctx, own, true)
		r.commands(ctx, own, ".", true)
	}
	return Prompts{Agents: byName(r.found.Agents), Commands: byName(r.found.Commands), Problems: r.found.Problems}
}

// byName sorts prompts by name, and keeps one of each: the trusted one of the workspace, or else the user's.
func byName(all []Prompt) []Prompt {
	slices.SortStableFunc(all, func(a, b Prompt) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), order(a)-order(b))
	})
	return slices.CompactFunc(all, func(a, b Prompt) bool { return a.Name == b.Name })
}

// order returns the rank among prompts with the same name: the lowest wins.
func order(p Prompt) int {
	switch {
	case p.Untrusted:
		return 2
	case p.Project:
		return 0
	}
	return 1
}

type reader struct {
	trusted func(path string, content []byte) bool
	found   Prompts
}

func (r *reader) agents(ctx context.Context, dir string, project bool) {
	r.walk(ctx, dir, "agents", 1, func(p Prompt, _ string, head map[string]string) {
		p.Name = cmp.Or(head["name"], strings.TrimSuffix(filepath.Base(p.Path), filepath.Ext(p.Path)))
		switch p.Project = project; {
		case p.Text == "":
			r.problem(p.Path, errors.New("the agent has no prompt"))
		case word(p.Name) != p.Name:
			r.problem(p.Path, errors.New("the name of an agent cannot contain spaces"))
		default:
			r.found.Agents = append(r.found.Agents, p)
		}
	}, project)
}

func (r *reader) commands(ctx context.Context, dir, below string, project bool) {
	r.walk(ctx, dir, below, deepest, func(p Prompt, name string, _ map[string]string) {
		switch p.Name, p.Project = CommandName(name), project; {
		case p.Name == "":
		case word(p.Name) != p.Name:
			r.problem(p.Path, errors.New("the name of a command cannot contain spaces"))
		default:
			r.found.Commands = append(r.found.Commands, p)
		}
	}, project)
}

// CommandName returns the name of the command that a Markdown file defines, from its path below .eidolon without
// directories named commands. It returns "" for any other file.
func CommandName(file string) string {
	if !strings.EqualFold(path.Ext(file), ".md") {
		return ""
	}
	parts := strings.Split(file[:len(file)-len(".md")], "/")
	parts = slices.DeleteFunc(parts, func(part string) bool {
		return part == "commands" || part == Folder || part == ""
	})
	if strings.HasSuffix(file, "/.md") || file == ".md" {
		return ""
	}
	return strings.Join(parts, ":")
}

// walk calls take for each Markdown file below a directory, with its path below dir and the fields of its front matter.
func (r *reader) walk(ctx context.Context, dir, below string, depth int, take func(Prompt, string, map[string]string),
	project bool,
) {
	d, err := workspace.OpenDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.problem(dir, err)
		}
		return
	}
	defer func() { _ = d.Close() }() // opened for reading only
	left := mostFiles
	var visit func(name string, depth int)
	visit = func(name string, depth int) {
		entries, more, err := d.ReadDir(name, mostFiles)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return
		case err != nil:
			r.problem(filepath.Join(dir, name), err)
			return
		case more:
			r.problem(filepath.Join(dir, name), fmt.Errorf("it has more than %d entries", mostFiles))
		}
		for _, e := range entries {
			file := path.Join(name, e.Name())
			if e.IsDir() {
				// Agents are chosen with @agent:, and projects are records.
				if depth > 1 && file != "agents" && file != "projects" {
					visit(file, depth-1)
				}
				continue
			}
			if !strings.EqualFold(path.Ext(file), ".md") || ctx.Err() != nil {
				continue
			}
			if left--; left < 0 {
				return
			}
			r.read(d, dir, file, take, project)
		}
	}
	visit(below, depth)
	if left < 0 {
		r.problem(dir, fmt.Errorf("it has more than %d files; the others are left out", mostFiles))
	}
}

func (r *reader) read(
	d *workspace.Dir, dir, file string, take func(Prompt, string, map[string]string), project bool,
) {
	full := filepath.Join(dir, filepath.FromSlash(file))
	content, err := d.ReadFile(file, longestPrompt)
	if err != nil {
		r.problem(full, err)
		return
	}
	head, body, problem := frontMatter(string(content))
	if problem.Reason != "" {
		problem.Path = full
		r.found.Problems = append(r.found.Problems, problem)
	}
	take(Prompt{
		Description: head["description"], Text: body, Path: full,
		Untrusted: project && (r.trusted == nil || !r.trusted(full, content)),
	}, file, head)
}

func (r *reader) problem(path string, err error) {
	r.found.Problems = append(r.found.Problems, Problem{Path: path, Reason: fault.Bare(err).Error()})
}

// frontMatter divides a prompt into its head, which has lines of `key: value` between two lines of three dashes, and
// the text after it. If the head has no end, everything is text, with a problem.
func frontMatter(content string) (head map[string]string, body string, problem Problem) {
	content = strings.ReplaceAll(strings.TrimPrefix(content, "\ufeff"), "\r\n", "\n")
	lines := strings.Split(content, "\n")
	if strings.TrimSpace(lines[0]) != "---" {
		return nil, strings.TrimSpace(content), problem
	}
	end := slices.IndexFunc(lines[1:], func(line string) bool { return strings.TrimSpace(line) == "---" })
	if end < 0 {
		return nil, strings.TrimSpace(strings.Join(lines[1:], "\n")),
			Problem{Line: 1, Column: 1, Reason: "the head that begins here has no end: a line of three dashes"}
	}
	head = map[string]string{}
	for i, line := range lines[1 : end+1] {
		key, value, ok := strings.Cut(line, ":")
		switch key = strings.TrimSpace(key); {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(key, "#"):
		case !ok && problem.Reason == "":
			column := len(line) - len(strings.TrimLeft(line, " \t")) + 1
			problem = Problem{Line: i + 2, Column: column, Reason: "expected key: value"}
		case ok:
			head[key] = unquoted(strings.TrimSpace(value))
		}
	}
	rest := lines[end+2:]
	for i, line := range rest { // put a blank line on each side of a rule in the text
		if strings.TrimSpace(line) == "---" {
			rest[i] = "\n---\n"
		}
	}
	return head, strings.TrimSpace(strings.Join(rest, "\n")), problem
}

func unquoted(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	return value
}
