package contract

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"omniagent/internal/fault"
)

// Shells lists the shells that have a completion script.
func Shells() []string { return []string{"bash", "fish", "powershell", "zsh"} }

// Completion writes the completion script for a shell. The script asks the program, so it knows every command. The
// first line belongs to the shell; the second names the version that wrote the script.
func (p *Program) Completion(w io.Writer, shell string) error {
	root, script := p.cobra(), &strings.Builder{}
	var err error
	switch shell {
	case "bash":
		err = root.GenBashCompletionV2(script, true)
	case "fish":
		err = root.GenFishCompletion(script, true)
	case "powershell":
		err = root.GenPowerShellCompletionWithDesc(script)
	case "zsh":
		err = root.GenZshCompletion(script)
	default:
		return fault.New(fault.ArgError, "there is no completion for %s", shell)
	}
	first, rest, _ := strings.Cut(script.String(), "\n")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n# %s %s\n%s", first, p.Name, p.Version, rest)
	}
	return err
}

// complete answers the query of a completion script.
func (p *Program) complete(h Host) int {
	root := p.cobra()
	root.SetArgs(h.Args)
	root.SetOut(h.Stdout)
	root.SetErr(io.Discard)
	if root.Execute() != nil {
		return 1
	}
	return 0
}

// cobra returns the whole tree with all flags. Only completion needs it: a call builds only its own command.
func (p *Program) cobra() *cobra.Command {
	root := &cobra.Command{
		Use: p.Name, Short: p.Summary, SilenceErrors: true, SilenceUsage: true,
		Run: func(*cobra.Command, []string) {},
	}
	nodes := map[string]*cobra.Command{"": root}
	for _, c := range p.Commands {
		parent, words := "", strings.Fields(c.Path)
		for i := range words {
			path := strings.Join(words[:i+1], " ")
			if nodes[path] == nil {
				nodes[path] = &cobra.Command{
					Use: words[i], Short: p.Groups[path],
					Run: func(*cobra.Command, []string) {},
				}
				nodes[parent].AddCommand(nodes[path])
			}
			parent = path
		}
		p.equip(nodes[c.Path], c)
	}
	return root
}

func (p *Program) equip(node *cobra.Command, c *Command) {
	node.Short = c.Summary
	for _, param := range c.allParams() {
		if param.Kind == Bool {
			node.Flags().BoolP(param.Name, param.Short, false, param.Help)
		} else {
			node.Flags().StringP(param.Name, param.Short, "", param.Help)
		}
		if len(param.Enum) > 0 {
			_ = node.RegisterFlagCompletionFunc(param.Name,
				cobra.FixedCompletions(param.Enum, cobra.ShellCompDirectiveNoFileComp))
		} else if param.Kind != File {
			_ = node.RegisterFlagCompletionFunc(param.Name, cobra.NoFileCompletions)
		}
	}
	places := c.positionals()
	node.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) < len(places) {
			if place := places[len(args)]; place.Kind != File {
				return place.Enum, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// Man returns a command's manual page.
func (p *Program) Man(c *Command) string {
	var b strings.Builder
	name := p.Name
	if c.Path != "" {
		name += "-" + strings.ReplaceAll(c.Path, " ", "-")
	}
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s %s\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(roff(name)), p.Name, p.Version,
		roff(name), roff(c.Summary))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n[flags]\n", roff(c.usage(p.Name)))
	if c.Detail != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(c.Detail))
	}
	b.WriteString(".SH OPTIONS\n")
	roffParams(&b, c.allParams())
	b.WriteString(".SH EXIT STATUS\n")
	all := c.exits()
	for _, n := range exitOrder(all) {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", n, roff(all[n].Description))
	}
	b.WriteString(".SH EXAMPLES\n")
	for _, e := range c.Examples {
		fmt.Fprintf(&b, ".PP\n%s\n.PP\n.nf\n%s\n.fi\n", roff(e.Description), roff(e.Command))
	}
	return b.String()
}

// manual returns the program's own page: what a call without a command does, and which commands there are.
func (p *Program) manual() string {
	var b strings.Builder
	name := roff(p.Name)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s %s\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", strings.ToUpper(name), p.Name,
		p.Version, name, roff(p.Summary))
	if p.Direct != nil {
		fmt.Fprintf(&b, ".B %s\n%s\n.br\n", name, roff(p.Direct().Usage))
	}
	fmt.Fprintf(&b, ".B %s\n\\fICOMMAND\\fR [arguments] [flags]\n.SH DESCRIPTION\n%s\n", name, roff(p.Detail))
	if p.Direct != nil {
		d := p.Direct()
		fmt.Fprintf(&b, ".SH CALLS WITHOUT A COMMAND\n%s.\n", roff(sentence(d.Summary)))
		roffParams(&b, d.Params)
		fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n.SH EXIT STATUS OF CALLS WITHOUT A COMMAND\n", roff(d.Detail))
		for _, e := range d.Exits {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", e.Number, roff(e.When))
		}
	}
	b.WriteString(".SH COMMANDS\n")
	for _, c := range p.Commands {
		fmt.Fprintf(&b, ".TP\n.BR %s\\-%s (1)\n%s\n", name, roff(strings.ReplaceAll(c.Path, " ", "-")), roff(c.Summary))
	}
	b.WriteString(".SH OPTIONS\n")
	roffParams(&b, p.rootCommand().Params)
	b.WriteString(".SH ENVIRONMENT\n")
	for _, v := range p.variables() {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(v.Name), roff(v.Description))
	}
	return b.String()
}

func roffParams(b *strings.Builder, list []Param) {
	for _, param := range list {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(param.form())), roff(param.explain()))
	}
}

// roff escapes what the formatter would interpret.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// Page is a file generated from the declarations.
type Page struct{ Command, Name, Text string }

// ManPages returns the manual: the program's page, then one for each command.
func (p *Program) ManPages() []Page {
	pages := []Page{{"", p.Name + ".1", p.manual()}}
	for _, c := range p.Commands {
		pages = append(pages, Page{c.Path, p.Name + "-" + strings.ReplaceAll(c.Path, " ", "-") + ".1", p.Man(c)})
	}
	return pages
}

// SkillPages returns the cards for agents: the program's, then one for each command.
func (p *Program) SkillPages() []Page {
	var context strings.Builder
	fmt.Fprintf(&context, "---\nname: %s\ndescription: %s\nversion: %s\n---\n\n# %s\n\n%s\n\nCommands:\n\n", p.Name,
		p.Summary, p.Version, p.Name, p.Detail)
	pages := []Page{}
	for _, c := range p.Commands {
		name := "SKILL-" + strings.ReplaceAll(c.Path, " ", "-") + ".md"
		fmt.Fprintf(&context, "- [`%s %s`](%s): %s\n", p.Name, c.Path, name, c.Summary)
		pages = append(pages, Page{c.Path, name, p.Skill(c)})
	}
	return append([]Page{{"", "CONTEXT.md", context.String()}}, pages...)
}

// SkillSchemas returns the same as data: the full description of each command.
func (p *Program) SkillSchemas() []Page {
	pages := []Page{}
	for _, c := range p.Commands {
		entry := p.entry(c, true).append(p.extension(c)).set("version", p.Version)
		pages = append(pages, Page{
			c.Path, "SKILL-" + strings.ReplaceAll(c.Path, " ", "-") + ".json",
			string(appendJSON(nil, entry)) + "\n",
		})
	}
	return pages
}

// Skill returns a command's card for agents: when to use it, how, and what it returns.
func (p *Program) Skill(c *Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: %s-%s\ndescription: %s\nversion: %s\n---\n\n# %s %s\n\n%s.\n", p.Name,
		strings.ReplaceAll(c.Path, " ", "-"), c.Summary, p.Version, p.Name, c.Path, sentence(c.Summary))
	output := map[Class]string{
		Envelope: "one JSON envelope (`ok`, `data`, `error`, `warnings`, `meta`) on standard output",
		Stream:   "lines of JSON of its own on standard output", Terminal: "a conversation in the terminal",
	}[c.Class]
	fmt.Fprintf(&b, "\nDanger: %s. Output: %s.\n\n## Flags\n\n", c.Danger, output)
	own := false
	for _, param := range c.allParams() {
		if !param.Global {
			own = true
			fmt.Fprintf(&b, "- `%s`: %s\n", strings.TrimSpace(param.form()), param.explain())
		}
	}
	if !own {
		b.WriteString("None besides the shared ones.\n")
	}
	b.WriteString("\n## Exit codes\n\n")
	all := c.exits()
	for _, n := range exitOrder(all) {
		fmt.Fprintf(&b, "- %s %s: %s\n", n, all[n].Name, all[n].Description)
	}
	b.WriteString("\n## Examples\n")
	for _, e := range p.skillExamples(c) {
		fmt.Fprintf(&b, "\n%s:\n\n```sh\n%s\n```\n", e.Description, e.Command)
	}
	return b.String()
}

// skillExamples returns the command's own examples and those that hold for every command.
func (p *Program) skillExamples(c *Command) []Example {
	call := p.Name + " " + c.Path
	list := append(append([]Example{}, c.Examples...), Example{"Describe it as data", call + " --schema"})
	if c.Class != Envelope {
		return append(list, Example{"Show how it is used", call + " --help"})
	}
	return append(list, Example{"Check arguments without doing anything", c.Examples[0].Command + " --validate-only"})
}
