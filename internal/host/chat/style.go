package chat

import (
	"fmt"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/screen"
)

// style adds styles to lines, if on.
type style struct{ on bool }

func (s style) of(look cells.Style, line string) string {
	if !s.on || line == "" {
		return line
	}
	return look.Of(line)
}

func (s style) bold(line string) string { return s.of(cells.Bold, line) }
func (s style) dim(line string) string  { return s.of(cells.Faint, line) }
func (s style) ask(line string) string  { return s.of(cells.Yellow, line) }
func (s style) call(line string) string { return s.of(cells.Cyan, line) }
func (s style) bad(line string) string  { return s.of(cells.Red, line) }

// each adds a style to several lines.
func (s style) each(look func(string) string, lines []string) []string {
	for i, line := range lines {
		lines[i] = look(line)
	}
	return lines
}

// change returns the lines that show how a file changes.
func (s style) change(c *event.Change) []string {
	old := ""
	if c.Old != nil {
		old = *c.Old
	}
	return append([]string{s.bold(text.Name(c.Path))}, screen.Diff(old, c.New, s.on)...)
}

// marksOf returns the lines that a change removes and adds.
func marksOf(c *event.Change) (marks []string) {
	for _, line := range (style{}).change(c)[1:] {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			marks = append(marks, line)
		}
	}
	return marks
}

// counted returns how many lines are added and removed, as text.
func counted(marks []string) string {
	added := 0
	for _, line := range marks {
		if line[0] == '+' {
			added++
		}
	}
	return fmt.Sprintf(": +%d -%d", added, len(marks)-added)
}

// todoOf returns the tasks of a list as a screen shows them.
func todoOf(tasks []eidolon.Task) (list []screen.Todo) {
	status := map[string]string{"completed": "done", "in_progress": "active"}
	for _, t := range tasks {
		list = append(list, screen.Todo{Text: t.Content, Status: status[t.Status]})
	}
	return list
}
