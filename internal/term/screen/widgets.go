package screen

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/diff"
	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
)

// Colour reports whether styles are wanted, by the variables of the environment: not with NO_COLOR, and not on a
// terminal without styles.
func Colour(lookup func(name string) (value string, ok bool)) bool {
	none, _ := lookup("NO_COLOR")
	kind, _ := lookup("TERM")
	return none == "" && kind != "dumb"
}

// Diff returns the lines of a unified diff between two texts, coloured if styled.
func Diff(before, after string, styled bool) []string {
	var b bytes.Buffer
	if err := diff.Write(&b, []byte(before), []byte(after)); err != nil || b.Len() == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = text.Visible(line)
		if styled {
			lines[i] = styleOf(line).Of(lines[i])
		}
	}
	return lines
}

func styleOf(line string) cells.Style {
	switch {
	case strings.HasPrefix(line, "+"):
		return cells.Green
	case strings.HasPrefix(line, "-"):
		return cells.Red
	case strings.HasPrefix(line, "@@"):
		return cells.Cyan
	}
	return cells.None
}

// Working returns the status line of a turn: for how long it has run, and the tokens that it has cost so far. A
// host that passes the tokens as they were at the last full second has a calm line, and pays for one change a second.
func Working(what string, since time.Duration, tokens int64) string {
	parts := []string{span(since)}
	if tokens > 0 {
		parts = append(parts, count(tokens)+" tokens")
	}
	frame := []rune("⠋⠙⠸⠴⠦⠇")[int(since/time.Second)%6]
	return cells.Cyan.Of(string(frame)) + " " + what + cells.Faint.Of(" "+strings.Join(parts, " · "))
}

func span(d time.Duration) string {
	d = d.Truncate(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
}

func count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// Todo is an item of a list of tasks.
type Todo struct {
	Text   string
	Status string // done, active, or anything else: it waits
}

// Todos returns the rows of a list of tasks, at most that many: those around the first that is not done.
func Todos(list []Todo, most int) []string {
	from := 0
	for from < len(list) && list[from].Status == "done" {
		from++
	}
	from = max(min(from-1, len(list)-most), 0)
	var rows []string
	for _, t := range list[from:min(from+most, len(list))] {
		words := text.Flat(t.Text)
		switch t.Status {
		case "done":
			rows = append(rows, cells.Faint.Of("✓ "+words))
		case "active":
			rows = append(rows, cells.Bold.Of("▸ "+words))
		default:
			rows = append(rows, "· "+words)
		}
	}
	return rows
}

// Notify returns what to write to alert a person who looks at another window: a bell, and a notification if the
// terminal is known to support it.
func Notify(words string, lookup func(name string) (value string, ok bool)) string {
	program, _ := lookup("TERM_PROGRAM")
	kind, _ := lookup("TERM")
	bell := "\a"
	if slices.Contains([]string{"iTerm.app", "WezTerm", "ghostty"}, program) || strings.Contains(kind, "kitty") {
		return "\x1b]9;" + text.OneLine(words, 200) + "\a" + bell
	}
	return bell
}
