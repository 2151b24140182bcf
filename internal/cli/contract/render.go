package contract

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// What people read is written as small Unix tools do it: the result on standard output, everything else on standard
// error. An error is one lower-case line that begins with the program's name, then hint lines. There are no frames,
// colours or emphasis.

// format returns the form of the result. --stream and --output count first, then the configuration and the variable;
// the default is JSON for a program and plain text for a person.
func (c *Call) format() string {
	if c.Host.line != nil {
		return "json" // a line of a batch is always an envelope
	}
	if c.Bool("stream") {
		return "jsonl"
	}
	if c.Command.Class == Script && !c.Given("output") && !c.describes() {
		return "plain"
	}
	for _, wanted := range []string{c.String("output"), c.Config.String("output"), c.Host.env(prefix + "OUTPUT")} {
		wanted = c.params["output"].Also.Read(wanted)
		if slices.Contains([]string{"json", "jsonl", "tsv", "plain", "id"}, wanted) {
			return wanted
		}
	}
	if !c.Host.machine() {
		return "plain"
	}
	return "json"
}

// chosen reports whether the caller or the configuration chose the form of the answer.
func (c *Call) chosen() bool {
	return c.Given("output") || c.Config.String("output") != "" || c.Host.env(prefix+"OUTPUT") != ""
}

// streams reports whether rows or events are written while they are made.
func (c *Call) streams() bool {
	return c.Command.Class.streams() && c.Host.line == nil && (c.Bool("stream") || c.format() == "jsonl" &&
		!c.Bool("no-stream"))
}

// rowEmitter returns the function that writes rows as they come, until the size limit is reached.
func (c *Call) rowEmitter() func(any) bool {
	left := int(c.Config.Int("max_output_bytes"))
	unlimited := left == 0
	return func(row any) bool {
		if o, ok := row.(object); ok {
			if wanted := c.Strings("fields"); len(wanted) > 0 {
				row = o.only(wanted)
			}
		}
		line := append(appendJSON(nil, row), '\n')
		if left -= len(line); left < 0 && !unlimited {
			return false
		}
		return c.out.beat(line)
	}
}

// Emit writes a line of JSON before the answer. It is for commands of the class Events. It
// returns false if the caller wants no lines, or nobody reads them.
func (c *Call) Emit(line []byte) bool { return c.streams() && c.out.beat(line) }

// Emits reports whether the caller wants lines of Emit.
func (c *Call) Emits() bool { return c.Command.Class == Events && c.streams() }

// render returns what goes to standard output.
func (c *Call) render(a *answer, status int) []byte {
	format := c.format()
	if status != 0 && c.Command.Class == Script && !c.Given("output") && c.Host.machine() {
		format = "json" // a failure has no script to print
	}
	if a.bare || a.verbatim {
		return []byte(a.human)
	}
	if a.human != "" && format == "plain" {
		return []byte(presentable(a.human))
	}
	switch {
	case format == "json", format == "jsonl" && (status != 0 || c.Emits()):
		return c.encode(a, status)
	case status != 0 && a.data == nil:
		return nil
	}
	switch format {
	case "jsonl":
		return c.lines(a)
	case "tsv":
		return c.table(a.data)
	case "id":
		return c.ids(a.data)
	}
	return c.prose(a)
}

// encode makes the envelope, cut to the size limit.
func (c *Call) encode(a *answer, status int) []byte {
	body := appendJSON(nil, c.envelope(a, status))
	limit := int(c.Config.Int("max_output_bytes"))
	if limit <= 0 || len(body)+1 <= limit || a.data == nil {
		return append(body, '\n')
	}
	next := fmt.Sprintf("%sMAX_OUTPUT_BYTES=%d %s", prefix, 2*len(body), c.line())
	whole, warned := *a, len(c.warnings)
	room := limit - 1 - (len(body) - size(a.data))
	for range 5 { // the report of the cut takes room too, and how much is known only after the cut
		*a, c.warnings = whole, c.warnings[:warned]
		a.meta = slices.Clone(whole.meta)
		c.cut(a, max(0, room), next)
		if body = appendJSON(nil, c.envelope(a, status)); len(body)+1 <= limit {
			break
		}
		room = min(room, size(a.data)) - (len(body) + 1 - limit)
	}
	return append(body, '\n')
}

// lines returns the rows alone, or the data as one line; a stream ends with a summary.
func (c *Call) lines(a *answer) []byte {
	var b []byte
	rows, isList := c.rows(a.data)
	for _, row := range rows {
		b = append(appendJSON(b, row), '\n')
	}
	if !isList && a.data != nil {
		b = append(appendJSON(b, a.data), '\n')
	}
	if c.Bool("stream") && c.streams() && a.page != nil {
		summary := append(object{{"_summary", true}}, c.pageMeta(a)...)
		b = append(appendJSON(b, summary), '\n')
	}
	return b
}

// rows returns the list in the data.
func (c *Call) rows(data any) ([]any, bool) {
	o, ok := data.(object)
	if !ok || c.Command.List == nil {
		return nil, false
	}
	v, _ := o.get(c.Command.List.Key)
	rows, ok := v.([]any)
	return rows, ok
}

// rowsOrWhole returns the list in the data, or the data as the only row.
func (c *Call) rowsOrWhole(data any) (rows []any, isList bool) {
	if rows, isList = c.rows(data); !isList {
		rows = []any{data}
	}
	return rows, isList
}

func (c *Call) ids(data any) []byte {
	var b strings.Builder
	rows, _ := c.rowsOrWhole(data)
	for _, row := range rows {
		o, _ := row.(object)
		for _, name := range c.Command.idMembers() {
			if v, found := o.get(name); found {
				fmt.Fprintln(&b, text.Flat(cell(v)))
				break
			}
		}
	}
	return []byte(b.String())
}

// idMembers returns the members that can identify the data, or each of its rows.
func (c *Command) idMembers() []string {
	if c.List != nil {
		return []string{c.List.ID}
	}
	return []string{"id", "name", "key", "path", "run_id"}
}

// identifies reports whether --output id can print anything. The members of maps are only known at run time.
func (c *Command) identifies() bool {
	schema := schemaOf(c.Output)
	_, known := schema.get("properties")
	return c.List != nil || !known ||
		slices.ContainsFunc(c.idMembers(), func(name string) bool { return hasField(schema, name) })
}

// table returns a header and the rows, separated by tabs. Data that is not a list is one row.
func (c *Call) table(data any) []byte {
	rows, isList := c.rowsOrWhole(data)
	columns := columnsOf(rows)
	if isList && len(rows) == 0 {
		columns = c.declaredColumns()
	}
	var b strings.Builder
	fmt.Fprintln(&b, strings.Join(columns, "\t"))
	for _, row := range rows {
		o, _ := row.(object)
		cells := make([]string, len(columns))
		for i, name := range columns {
			v, _ := o.get(name)
			// Escapes, as databases write them, keep everything and leave a row on one line.
			cells[i] = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`).Replace(field(v))
		}
		fmt.Fprintln(&b, strings.Join(cells, "\t"))
	}
	return []byte(b.String())
}

// field formats a value for programs: yes and no are for people.
func field(v any) string {
	if truth, ok := v.(bool); ok {
		return fmt.Sprint(truth)
	}
	return cell(v)
}

// declaredColumns returns the columns of a list, for a header even without rows.
func (c *Call) declaredColumns() []string {
	columns, wanted := []string{}, c.Strings("fields")
	row := schemaOf(c.Command.Output)
	for _, name := range []string{"properties", c.Command.List.Key, "items", "properties"} {
		v, _ := row.get(name)
		row, _ = v.(object)
	}
	for _, m := range row {
		if len(wanted) == 0 || slices.Contains(wanted, m.name) {
			columns = append(columns, m.name)
		}
	}
	return columns
}

func columnsOf(rows []any) []string {
	columns := []string{}
	for _, row := range rows {
		o, _ := row.(object)
		for _, m := range o {
			if !slices.Contains(columns, m.name) {
				columns = append(columns, m.name)
			}
		}
	}
	return columns
}

// cell formats a value on one line.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case json.Number:
		return string(v)
	case object:
		if len(v) == 0 {
			return ""
		}
	case []any:
		if list := scalars(v); list != nil {
			return strings.Join(list, ", ")
		}
	}
	return string(appendJSON(nil, v))
}

func scalars(list []any) []string {
	out := []string{}
	for _, item := range list {
		switch item.(type) {
		case object, []any:
			return nil
		}
		out = append(out, cell(item))
	}
	return out
}

// writeNotes writes to standard error what a person must know: what failed, what to do, what was unusual.
func (c *Call) writeNotes(a answer, status int, format string) {
	if c.Bool("quiet") {
		return
	}
	if format != "json" {
		for _, w := range c.warnings {
			c.say("warning: " + text.Flat(w.Message))
		}
	}
	if rows, isList := c.rows(a.data); isList && len(rows) == 0 && a.human == "" && format == "plain" && status == 0 {
		none := "no " + strings.ReplaceAll(c.Command.List.Key, "_", " ") + " found"
		if c.Command.List.None != "" {
			none = c.Command.List.None
		}
		c.say(none)
	}
	asked := c.Given("limit") && format != "plain" // a program that asked for this many rows
	if a.page != nil && a.page.next() != "" && format != "json" && !c.Bool("stream") && status == 0 && !asked {
		c.say(fmt.Sprintf("%d of %d shown; next: %s", a.page.returned, a.page.total, c.next(a.page)))
	}
	if c.Command.List != nil && c.Host.StderrTerminal && !c.Host.StdoutTerminal && format == "json" && !c.chosen() {
		c.say("hint: " + c.line("--output", "plain") + " prints a table")
	}
	if status == 0 || a.fault == nil || format == "json" && c.Host.Merged { // as the envelope says
		return
	}
	for _, line := range c.errorLines(a.fault) {
		c.say(line)
	}
	if c.Host.machine() && format != "plain" {
		_, _ = io.WriteString(c.Host.Stderr, "TOOL_FAILED=1\n")
	}
}

// errorLines returns one error as people read it.
func (c *Call) errorLines(f *fault.Fault) []string {
	lines := []string{c.Program.Name + ": " + text.Flat(f.Error())}
	if len(f.Problems) > 1 {
		lines[0] = c.Program.Name + ": " + itoa(len(f.Problems)) + " things are wrong"
		for _, p := range f.Problems {
			lines = append(lines, "  "+text.Flat(p.Message))
		}
	}
	for _, hint := range f.Hints() {
		lines = append(lines, "hint: "+text.Flat(hint))
	}
	for _, way := range f.Ways {
		lines = append(lines, "  "+way)
	}
	if len(lines) == 1 {
		if next := f.Code.Entry().NextStep; next != "" {
			lines = append(lines, "hint: "+next)
		}
	}
	return lines
}

// abandoned reports that the reader of a command that changes nothing has gone: it wanted no more, so there is nothing
// to report. A batch keeps its status, because its lines may change something, and each of its lines does too.
func (c *Call) abandoned(a answer) bool {
	broken, _ := c.out.state()
	return broken && c.Command.Danger == Safe && !a.bare && c.Host.line == nil
}

// deliver writes the answer and returns the exit status.
func (c *Call) deliver(body []byte, a answer, status int, signals <-chan os.Signal) int {
	if len(body) > 0 {
		ended := a.fault != nil && (a.fault.Kind() == fault.Timeout || a.fault.Kind() == fault.Cancelled)
		switch s, done := c.out.deliver(body, signals, ended); {
		case !done && s != nil:
			n, _ := c.Command.number(codeFor(cancelled(c, s)))
			return n
		case !done:
			return status
		}
	}
	broken, err := c.out.state()
	switch {
	case c.abandoned(a):
		return 0
	case broken, err == nil, a.fault != nil && a.fault.Code == fault.OutputFailed: // already reported
		return status
	}
	if !c.Bool("quiet") {
		what := "the result"
		if c.Command.Danger != Safe && a.fault == nil && a.effect != Noop && !c.DryRun() {
			what = "the work is done, but its result"
		}
		_, _ = fmt.Fprintf(c.Host.Stderr, "%s: %s could not be written: %v\n", c.Program.Name, what, err)
	}
	if status == 0 {
		status, _ = c.Command.number(GeneralError)
	}
	return status
}

// wrap breaks a line between words; width 0 never does.
func wrap(line string, width int) string {
	if width <= 0 {
		return line
	}
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(line, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
