package contract

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// help answers --help: text on a terminal. For programs the text goes to standard error, and the envelope says where
// the schema is.
func (c *Call) help() answer {
	return c.helpAnswer(c.Program.helpText(c.Command), nil)
}

func (c *Call) helpAnswer(text string, data any) answer {
	a := answer{
		pure: true, data: data, human: text,
		meta: object{
			{"help", true},
			{"schema_ref", strings.TrimSpace(c.Program.Name+" "+c.Command.Path) + " --schema"},
		},
	}
	if f := c.format(); f != "plain" && !c.Bool("quiet") {
		_, _ = io.WriteString(c.Host.Stderr, text)
	}
	return a
}

// helpText returns everything about a command, for people.
func (p *Program) helpText(c *Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s [flags]\n\n%s.\n", c.usage(p.Name), sentence(c.Summary))
	if c.Detail != "" {
		fmt.Fprintf(&b, "\n%s\n", c.Detail)
	}
	if c.StreamsRows {
		fmt.Fprint(&b, "\nPrints JSON lines as they come; --no-stream gives one envelope.\n")
	}
	var own, shared []Param
	for _, param := range c.allParams() {
		if param.Global {
			shared = append(shared, param)
		} else {
			own = append(own, param)
		}
	}
	writeFlags(&b, "Flags", own)
	writeExamples(&b, c.Examples)
	writeExits(&b, c)
	writeFlags(&b, "Shared flags", shared)
	return b.String()
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func writeFlags(b *strings.Builder, title string, params []Param) {
	if len(params) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	width := 0
	for _, p := range params {
		width = max(width, len(p.form()))
	}
	for _, p := range params {
		fmt.Fprintf(b, "  %-*s  %s\n", width, p.form(), p.explain())
	}
}

// form returns a flag as it is written.
func (p Param) form() string {
	form := "    --" + p.Name
	if p.Short != "" {
		form = "-" + p.Short + ", --" + p.Name
	}
	if p.Kind != Bool {
		form += " " + strings.ToUpper(string(p.Kind))
	}
	return form
}

func (p Param) explain() string {
	text := p.Help
	if len(p.Enum) > 0 {
		text += ": " + strings.Join(p.Enum, ", ")
	}
	if p.Default != "" {
		text += " (default " + p.Default + ")"
	}
	if p.Position > 0 {
		text += "; also by its place"
	}
	if p.Stdin {
		text += "; - reads standard input"
	}
	if p.Required {
		text += "; required"
	}
	return text
}

func writeExamples(b *strings.Builder, examples []Example) {
	if len(examples) == 0 {
		return
	}
	b.WriteString("\nExamples:\n")
	for _, e := range examples {
		fmt.Fprintf(b, "  # %s\n  %s\n", e.Description, e.Command)
	}
}

func writeExits(b *strings.Builder, c *Command) {
	all := c.exits()
	b.WriteString("\nExit codes:\n")
	for _, n := range exitOrder(all) {
		fmt.Fprintf(b, "  %3s  %-17s  %s\n", n, all[n].Name, all[n].Description)
	}
}

func exitOrder(all map[string]exitEntry) []string {
	return slices.SortedFunc(maps.Keys(all), byNumber)
}

// byNumber compares exit codes, which are written without leading zeros.
func byNumber(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }

// rootHelp returns the help of the program: short for a bare call, with every shared flag and variable for --help.
func (p *Program) rootHelp(whole bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s.\n\nUsage: ", p.Name, p.Version, p.Summary)
	if p.Direct != nil {
		fmt.Fprintf(&b, "%s %s\n       ", p.Name, p.Direct().Usage)
	}
	fmt.Fprintf(&b, "%s COMMAND [arguments] [flags]\n", p.Name)
	if p.Direct != nil {
		p.directHelp(&b, whole)
	}
	b.WriteString("\nCommands:\n")
	width := 0
	for _, c := range p.Commands {
		width = max(width, len(c.Path))
	}
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, c.Path, c.Summary)
	}
	if !whole {
		fmt.Fprintf(&b,
			"\n%s --help lists the flags and variables that all commands share.\n%s COMMAND --help tells everything "+
				"about one.\n", p.Name, p.Name)
		return b.String()
	}
	if p.Detail != "" {
		fmt.Fprintf(&b, "\n%s\n", p.Detail)
	}
	writeFlags(&b, "Flags about the program", p.rootCommand().Params)
	writeFlags(&b, "Flags that commands share, where they apply", p.sharedUsed())
	b.WriteString("\nEnvironment:\n")
	for _, v := range p.variables() {
		fmt.Fprintf(&b, "  %-28s  %s\n", v.Name, v.Description)
	}
	return b.String()
}

func (p *Program) directHelp(b *strings.Builder, whole bool) {
	d := p.Direct()
	fmt.Fprintf(b, "\n%s.\n", sentence(d.Summary))
	writeFlags(b, "Flags without a command", d.Params)
	if !whole {
		return
	}
	fmt.Fprintf(b, "\n%s\n\nExit codes without a command:\n", d.Detail)
	for _, e := range d.Exits {
		fmt.Fprintf(b, "  %3s  %-17s  %s\n", e.Number, e.Name, e.When)
	}
}

// groupHelp lists the commands of a group such as "config".
func (p *Program) groupHelp(group string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s %s COMMAND [arguments] [flags]\n\n%s.\n\nCommands:\n", p.Name, group,
		sentence(p.Groups[group]))
	for _, c := range p.Commands {
		if strings.HasPrefix(c.Path, group+" ") {
			fmt.Fprintf(&b, "  %-18s  %s\n", c.Path, c.Summary)
		}
	}
	return b.String()
}
