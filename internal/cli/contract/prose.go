package contract

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
	"omniagent/internal/term/cells"
)

// prose returns the data for a person: members with their values, lists of objects as tables.
func (c *Call) prose(a *answer) []byte {
	var b strings.Builder
	o, _ := a.data.(object)
	screen := c.screenOf()
	if rows, isList := c.rows(a.data); isList {
		var columns []string
		if !c.Given("fields") {
			columns = c.Command.List.Columns
		}
		screen.whole, screen.null = c.Command.List.ID, c.Command.List.Null
		writeTable(&b, rows, columns, screen)
		rest := slices.DeleteFunc(slices.Clone(o), func(m member) bool {
			return m.name == c.Command.List.Key || nested(m.value) || cell(m.value) == ""
		})
		if len(rows) > 0 && len(rest) > 0 && columns != nil {
			b.WriteString("\n")
			writeObject(&b, rest, "", screen)
		}
		return []byte(b.String())
	}
	writeObject(&b, o, "", screen)
	return []byte(b.String())
}

// view is the screen that a table has to fit. The zero value has no width, and shows times as they are.
type view struct {
	width   int
	now     time.Time
	whole   string // the column that is never cut
	null    string // shown for null
	home    string // shown as ~ in a directory
	program string // begins the commands in a text
}

// statusColumn is the name of a column with one of a few words, which decide what to do. It is cut last.
const statusColumn = "status"

// dirColumn is the name of a column with directories. It is cut in the middle, because directories differ at their
// ends.
const dirColumn = "cwd"

// screenOf returns the screen of the person who reads the answer.
func (c *Call) screenOf() view {
	if c.Host.machine() {
		return view{}
	}
	columns, _ := c.Host.size()
	v := view{width: columns, now: time.Now(), home: c.Host.Home(), program: c.Program.Name}
	if c.Bool("stable-output") {
		v.now = time.Time{}
	}
	return v
}

// cell formats a value of a table: a time as the distance from now, an error as its message.
func (v view) cell(value any) string {
	if value == nil {
		return v.null
	}
	if o, is := value.(object); is {
		if message, _ := o.get("message"); message != nil {
			return v.cell(message)
		}
		value = o.shown()
	}
	s := strings.ReplaceAll(cell(value), "\n", " ")
	if len(s) < len("2006-01-02T15:04:05Z") || v.now.IsZero() || s[4] != '-' {
		return s
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return s
	}
	return ago(v.now.Sub(at), at)
}

// ago says how long ago something was. After a week it names the day instead.
func ago(d time.Duration, at time.Time) string {
	count := func(n int, unit string) string {
		if n != 1 {
			unit += "s"
		}
		return itoa(n) + " " + unit + " ago"
	}
	switch {
	case d < -time.Minute || d >= 7*24*time.Hour:
		return at.Local().Format("2006-01-02")
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 24*time.Hour:
		return count(int(d/time.Hour), "hour")
	}
	return count(int(d/(24*time.Hour)), "day")
}

// fit narrows columns until a row fits the screen. widths are those of the columns, below those of their values without
// the name. If it is enough to narrow columns whose name is wider than their values, it narrows only those; otherwise
// the widest.
func (v view) fit(widths, below []int, columns []string) {
	narrowest := func(i int) int {
		if columns[i] == dirColumn {
			return 12
		}
		return 6
	}
	total, spare := 2*(len(widths)-1), 0
	for i, w := range widths {
		total += w
		if least := max(below[i], narrowest(i)); columns[i] != v.whole && w > least {
			spare += w - least
		}
	}
	for names, status := total-spare <= v.width, false; v.width > 0 && total > v.width; {
		widest := -1
		for i, w := range widths {
			if w > narrowest(i) && (!names || w > below[i]) && columns[i] != v.whole &&
				(status || columns[i] != statusColumn) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 && !status {
			status = true
			continue
		}
		if widest < 0 {
			return
		}
		widths[widest]--
		total--
	}
}

// writeObject writes the members that have a value: first the simple ones, aligned, then objects and lists.
func writeObject(b *strings.Builder, o object, indent string, v view) {
	width := 0
	o = o.shown()
	for _, m := range o {
		if !nested(m.value) {
			width = max(width, utf8.RuneCountInString(m.name))
		}
	}
	for _, m := range o {
		if nested(m.value) {
			continue
		}
		value := strings.ReplaceAll(cell(m.value), "\n", "\n"+indent+strings.Repeat(" ", width+2))
		fmt.Fprintf(b, "%s%-*s  %s\n", indent, width, m.name, value)
	}
	for _, m := range o {
		if !nested(m.value) {
			continue
		}
		fmt.Fprintf(b, "\n%s%s:\n", indent, m.name)
		switch below := m.value.(type) {
		case object:
			writeObject(b, below, indent+"  ", v)
		case []any:
			writeTable(b, below, nil, v)
		}
	}
}

func emptyColumn(rows []any, name string) bool {
	return !slices.ContainsFunc(rows, func(row any) bool {
		o, _ := row.(object)
		v, _ := o.get(name)
		return (view{}).cell(v) != ""
	})
}

func nested(v any) bool {
	switch v := v.(type) {
	case object:
		return len(v) > 0
	case []any:
		return len(v) > 0 && scalars(v) == nil
	}
	return false
}

// presentable cleans a text that a command made for people, as the tree cleans every string.
func presentable(human string) string {
	clean, _ := text.Clean(human)
	return redact.String(clean)
}

// writeTable aligns rows below their names. columns are those to show; nil: all that have a value.
func writeTable(b *strings.Builder, rows []any, columns []string, screen view) {
	if len(rows) == 0 {
		return
	}
	if _, isObject := rows[0].(object); !isObject {
		for _, row := range rows {
			fmt.Fprintln(b, cell(row))
		}
		return
	}
	if columns == nil {
		columns = slices.DeleteFunc(columnsOf(rows), func(n string) bool {
			return strings.HasPrefix(n, "_") ||
				emptyColumn(rows, n)
		})
	}
	widths := make([]int, len(columns))
	table := make([][]string, 0, len(rows)+1)
	header := []string{}
	for _, name := range columns {
		header = append(header, strings.ToUpper(name))
	}
	table = append(table, header)
	for _, row := range rows {
		o, _ := row.(object)
		line := []string{}
		for _, name := range columns {
			v, _ := o.get(name)
			shown := screen.cell(v)
			if below, within := pathname.In(screen.home, shown); name == dirColumn && within {
				shown = filepath.Join("~", below)
			}
			line = append(line, shown)
		}
		table = append(table, line)
	}
	below := make([]int, len(columns))
	for n, line := range table {
		for i, s := range line {
			widths[i] = max(widths[i], cells.Width(s))
			if n > 0 {
				below[i] = max(below[i], cells.Width(s))
			}
		}
	}
	screen.fit(widths, below, columns)
	for _, line := range table {
		row := ""
		for i, s := range line {
			switch {
			case cells.Width(s) <= widths[i]:
			case columns[i] == dirColumn:
				s = withoutMiddle(s, widths[i])
			default:
				s = cells.Cut(s, widths[i])
			}
			row += s + strings.Repeat(" ", widths[i]-cells.Width(s)+2)
		}
		fmt.Fprintln(b, strings.TrimRight(row, " "))
	}
}

// withoutMiddle returns the beginning and the end of a path, with … between them.
func withoutMiddle(path string, width int) string {
	head := strings.TrimSuffix(cells.Cut(path, width/3), "…")
	tail := path[len(head):]
	for cells.Width(head)+1+cells.Width(tail) > width {
		_, size := utf8.DecodeRuneInString(tail)
		tail = tail[size:]
	}
	return head + "…" + tail
}

// hasCommand reports whether a line has a command to type. Such a line is not wrapped: pasted, its rows would be two
// commands.
func hasCommand(program, line string) bool {
	return strings.Contains(line, program+" ") || strings.HasPrefix(strings.TrimSpace(line), "fix: ")
}

// flowing wraps the lines of a text for people at the width of the screen. The further rows of a line are indented like
// the last of the columns that begin in its left half, or like the line if it has no columns.
func (v view) flowing(human string) string {
	if v.width <= 0 {
		return human
	}
	h := &helpPage{width: v.width}
	for line := range strings.Lines(human) {
		line = strings.TrimSuffix(line, "\n")
		if cells.Width(line) <= v.width || hasCommand(v.program, line) {
			h.WriteString(line + "\n")
			continue
		}
		at := len(line) - len(strings.TrimLeft(line, " "))
		if gap := strings.LastIndex(line[:min(len(line), v.width/2)], "  "); gap >= at {
			at = gap + 2
		}
		h.wrapped(line[:at], line[at:])
	}
	return h.String()
}
