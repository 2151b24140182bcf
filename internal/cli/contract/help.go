package contract

import (
	"cmp"
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
	"omniagent/internal/term/screen"
)

// Task is a part of the help of the program: something that people want to do, and the first words of the commands that
// do it.
type Task struct {
	Title string
	Words []string
}

// Topic is a page of the help that is about no single command.
type Topic struct {
	Name    string
	Also    []string // further names by which it is found
	Summary string   // one line, no period
	Text    func() string
}

// help answers --help: text on a terminal. For programs the text goes to standard error, and the envelope says where
// the schema is.
func (c *Call) help() answer {
	return c.helpAnswer(func(h *helpPage) { c.Program.commandHelp(h, c.Command) }, nil)
}

func (c *Call) helpAnswer(write func(*helpPage), data any) answer {
	a := answer{
		pure: true, data: data,
		meta: object{
			{"help", true},
			{"schema_ref", strings.TrimSpace(c.Program.Name+" "+c.Command.Path) + " --schema"},
		},
	}
	switch plain := c.format() == "plain"; {
	case plain && c.paged(write):
		a.bare = true
	case plain:
		a.human, a.bare = c.renderHelp(write, c.Host.StdoutTerminal), true
	case !c.Bool("quiet"):
		words := strings.TrimSpace(c.Program.Name + " help " + c.Command.Path)
		_, _ = io.WriteString(c.Host.Stderr, words+" prints this to standard output\n\n"+c.renderHelp(write, false))
	}
	return a
}

// renderHelp returns a page of the help. On a terminal it fits the width, and its headings are bold if colour is
// allowed.
func (c *Call) renderHelp(write func(*helpPage), terminal bool) string {
	h := &helpPage{width: pageWidth}
	if terminal {
		if columns, _ := c.Host.size(); columns > 0 {
			h.width = min(columns, widest)
		}
		h.styled = !c.Host.ci() && screen.Colour(c.Host.Lookup)
	}
	if c.Given("width") {
		h.width = c.Int("width")
	}
	write(h)
	return h.String()
}

// paged shows a page of the help in the person's pager if it is longer than their screen. It reports whether it did.
func (c *Call) paged(write func(*helpPage)) bool {
	_, rows := c.Host.size()
	out, isFile := c.Host.Stdout.(*os.File)
	in, isPerson := c.Host.Stdin.(*os.File)
	if !isFile || !isPerson || rows == 0 || c.Host.unattended() || c.Bool("non-interactive") {
		return false
	}
	page := c.renderHelp(write, true)
	return strings.Count(page, "\n") >= rows &&
		screen.PageText(context.Background(), in, out, c.Programs(), os.Environ(), page) == nil
}

// ShowHelp prints a page of the help as text, even where other commands print JSON. words name a command, a group of
// commands or a topic; without words it is the page of the program.
func (c *Call) ShowHelp(words []string) error {
	write, f := c.Program.helpPage(words)
	if f != nil {
		return f
	}
	if c.paged(write) {
		return nil
	}
	if _, err := io.WriteString(c.Host.Stdout, c.renderHelp(write, c.Host.StdoutTerminal)); err != nil {
		return fault.New(fault.OutputFailed, "standard output cannot be written").Because(err)
	}
	return nil
}

// helpPage finds the page that some words name.
func (p *Program) helpPage(words []string) (func(*helpPage), *fault.Fault) {
	path := strings.Join(words, " ")
	if path == "" {
		return p.rootHelp, nil
	}
	if command, is := p.Find(path); is {
		return func(h *helpPage) { p.commandHelp(h, command) }, nil
	}
	for _, t := range p.topics() {
		if t.Name == path || slices.Contains(t.also, path) {
			return func(h *helpPage) {
				t.write(h)
				if p.begins(path) {
					h.heading("Commands:")
					p.groupList(h, path)
				}
			}, nil
		}
	}
	if p.begins(path) {
		return func(h *helpPage) { p.groupHelp(h, path) }, nil
	}
	names := []string{}
	for _, t := range p.topics() {
		names = append(names, t.Name)
	}
	names = append(names, p.paths()...)
	near := nearestPath(path, names)
	f := fault.New(fault.UnknownCommand, "there is no help about %q%s", redact.String(path), didYouMean(near))
	if near != "" {
		return nil, f.Hint("%s help %s", p.Name, near)
	}
	return nil, f.Hint("%s help lists commands and topics", p.Name)
}

// paths returns the names of all commands and groups.
func (p *Program) paths() []string {
	paths := []string{}
	for _, c := range p.All() {
		paths = append(paths, c.Path)
		if first, _, nested := strings.Cut(c.Path, " "); nested {
			paths = append(paths, first)
		}
	}
	return paths
}

// topic is a Topic and what writes its page.
type topic struct {
	Name, Summary string
	also          []string
	write         func(*helpPage)
}

// topics returns the pages that are about no single command.
func (p *Program) topics() []topic {
	list := []topic{}
	for _, t := range p.Topics {
		list = append(list, topic{t.Name, t.Summary, t.Also, func(h *helpPage) { h.text(t.Text()) }})
	}
	return append(list,
		topic{"flags", "every flag that is not a command's own", nil, p.flagsHelp},
		topic{"environment", "variables of its own", nil, p.environmentHelp},
		topic{"exit-codes", "what each exit code means", nil, p.exitsHelp})
}

// commandHelp writes everything about a command, for people.
func (p *Program) commandHelp(h *helpPage, c *Command) {
	h.wrapped("Usage: ", c.usage(p.Name)+" [flags]")
	h.text(text.Sentence(c.Summary) + ".")
	if c.Detail != "" {
		h.text(c.Detail)
	}
	h.examples(c.Examples)
	var own, shared []Param
	for _, param := range c.allParams() {
		if !param.Global || !param.everywhere() {
			own = append(own, param)
		} else {
			shared = append(shared, param)
		}
	}
	h.params("Flags:", own)
	h.heading("Flags of every command, explained by " + p.Name + " help flags:")
	h.wrapped("  ", flagNames(shared))
	h.heading("Exit codes:")
	all := c.exits()
	rows := [][2]string{}
	for _, n := range exitOrder(all) {
		rows = append(rows, exitRow(n, all[n].Name, all[n].Description))
	}
	h.list(rows)
}

// everywhere reports whether every command with an envelope has the flag.
func (p Param) everywhere() bool {
	return slices.ContainsFunc(sharedParams(), func(s sharedParam) bool {
		return s.Name == p.Name && s.scope == "always"
	})
}

func flagNames(params []Param) string {
	names := []string{}
	for _, p := range params {
		name := "--" + p.Name
		if p.Short != "" {
			name = "-" + p.Short + " " + name
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func exitRow(number, name, means string) [2]string {
	return [2]string{strings.Repeat(" ", 3-len(number)) + number + "  " + name, means}
}

// form returns a flag as the help writes it, with its short form and the name of its value.
func (p Param) form() string {
	form := "    --" + p.Name
	if p.Short != "" {
		form = "-" + p.Short + ", --" + p.Name
	}
	value := cmp.Or(p.Value, strings.ToUpper(string(p.Kind)))
	switch {
	case p.Kind == Bool:
		return form
	case p.Optional:
		return form + "[=" + value + "]"
	}
	return form + " " + value
}

// explain returns the help of a flag with its values, its default and its place among the arguments.
func (p Param) explain() string {
	text := p.Help
	if len(p.Enum) > 0 {
		text += ": " + strings.Join(p.Enum, ", ")
	}
	if p.Default != "" {
		text += " (default " + p.Default + ")"
	}
	switch {
	case p.Variadic && p.Position > 0:
		text += "; or as arguments"
	case p.Position == 1:
		text += "; or as the first argument"
	case p.Position > 0:
		text += "; or as argument " + strconv.Itoa(p.Position)
	}
	if p.Stdin {
		text += "; - reads standard input"
	}
	if p.Required {
		text += "; required"
	}
	return text
}

func exitOrder(all map[string]exitEntry) []string {
	return slices.SortedFunc(maps.Keys(all), byNumber)
}

// byNumber compares exit codes, which are written without leading zeros.
func byNumber(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }

// rootHelp writes the help of the program: what it is for, and where the rest is.
func (p *Program) rootHelp(h *helpPage) {
	h.wrapped("", text.Sentence(p.Summary)+".")
	h.WriteString("\n")
	lead := "Usage: "
	if p.Direct != nil {
		h.wrapped(lead, p.Name+" "+p.Direct().Usage)
		lead = "       "
	}
	h.wrapped(lead, p.Name+" COMMAND [arguments] [flags]")
	if len(p.Examples) > 0 {
		h.heading("Examples:")
		rows := [][2]string{}
		for _, e := range p.Examples {
			rows = append(rows, [2]string{e.Command, e.Description})
		}
		h.list(rows)
	}
	p.taskList(h)
	if p.Direct != nil {
		d := p.Direct()
		h.params("Flags without a command:", slices.DeleteFunc(d.Params, func(q Param) bool { return !q.Common }))
		h.text(d.Differences)
	}
	h.heading("More help:")
	rows := [][2]string{{p.Name + " help COMMAND", "everything about a command, or about a topic:"}}
	for _, t := range p.topics() {
		rows = append(rows, [2]string{"  " + t.Name, t.Summary})
	}
	h.list(rows)
	h.heading("Flags of commands, and variables:")
	h.wrapped("  ", flagNames(slices.DeleteFunc(p.sharedUsed(), func(q Param) bool { return !q.Common })))
	names := []string{}
	for _, v := range p.variables() {
		if !v.own {
			names = append(names, v.Name)
		}
	}
	h.wrapped("  ", strings.Join(names, ", "))
}

// taskList writes the commands by task, one line for each first word; what belongs to no task comes last.
func (p *Program) taskList(h *helpPage) {
	rest := []string{}
	for _, c := range p.All() {
		if word, _, _ := strings.Cut(c.Path, " "); !slices.Contains(rest, word) {
			rest = append(rest, word)
		}
	}
	tasks, width := p.Tasks, 0
	for _, t := range tasks {
		for _, word := range t.Words {
			width = max(width, len(word))
			rest = slices.DeleteFunc(rest, func(w string) bool { return w == word })
		}
	}
	if len(tasks) == 0 {
		tasks, rest = []Task{{"Commands:", rest}}, nil
	}
	for _, t := range tasks {
		h.heading(t.Title)
		rows := [][2]string{}
		for _, word := range t.Words {
			rows = append(rows, [2]string{word + strings.Repeat(" ", max(0, width-len(word))), p.brief(word)})
		}
		h.list(rows)
	}
	if len(rest) > 0 {
		h.wrapped("  also: ", strings.Join(rest, ", "))
	}
}

// brief returns what the commands that begin with a word do, in one line.
func (p *Program) brief(word string) string {
	if summary := p.Groups[word]; summary != "" {
		return summary
	}
	if c, is := p.Find(word); is {
		return c.Summary
	}
	return ""
}

// groupHelp lists the commands of a group such as "config".
func (p *Program) groupHelp(h *helpPage, group string) {
	h.wrapped("Usage: ", p.Name+" "+group+" COMMAND [arguments] [flags]")
	if summary := p.Groups[group]; summary != "" {
		h.text(text.Sentence(summary) + ".")
	}
	h.heading("Commands:")
	p.groupList(h, group)
	h.WriteString("\n")
	h.wrapped("", "For details: "+p.Name+" help "+group+" COMMAND")
}

func (p *Program) groupList(h *helpPage, group string) {
	rows := [][2]string{}
	for _, c := range p.All() {
		if c.Path == group || strings.HasPrefix(c.Path, group+" ") {
			rows = append(rows, [2]string{c.Path, c.Summary})
		}
	}
	h.list(rows)
}

// flagsHelp explains every flag that is not a command's own.
func (p *Program) flagsHelp(h *helpPage) {
	if p.Direct != nil {
		h.params("Flags without a command:", p.Direct().Params)
	}
	h.params("Flags about the program:", p.rootCommand().Params)
	h.params("Flags that commands share, where they apply:", p.sharedUsed())
}

func (p *Program) environmentHelp(h *helpPage) {
	h.heading("Environment:")
	rows := [][2]string{}
	for _, v := range p.variables() {
		rows = append(rows, [2]string{v.Name, v.Description})
	}
	h.list(rows)
}

func (p *Program) exitsHelp(h *helpPage) {
	if p.Direct != nil {
		h.heading("Exit codes without a command, and of " + p.Name + " start:")
		rows := [][2]string{}
		for _, e := range p.Direct().Exits {
			rows = append(rows, exitRow(e.Number, e.Name, e.When))
		}
		h.list(rows)
	}
	h.heading("Exit codes of commands; the help of each lists its own:")
	rows := [][2]string{}
	for _, e := range SharedExits() {
		rows = append(rows, exitRow(itoa(e.Number), string(e.Code), e.Means))
	}
	h.list(rows)
}
