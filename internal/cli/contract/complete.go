package contract

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
)

// Shells lists the shells that have a completion script.
func Shells() []string { return []string{"bash", "fish", "powershell", "zsh"} }

// Completion writes the completion script for a shell. The script asks the program, so it knows every command. The
// first line belongs to the shell; the second names the version that wrote the script.
func (p *Program) Completion(w io.Writer, shell string) error {
	root, script := p.cobra(nil), &strings.Builder{}
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
	rest = strings.Replace(rest, wordsOfPackage, wordsOfLine, 1)
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n# %s %s\n%s\n", first, p.Name, p.Version, strings.TrimRight(rest, "\n"))
	}
	return err
}

// The script for bash gets the words of the line from the package bash-completion, which is not installed everywhere.
// Without it, the script splits the line at blanks, even at quoted ones.
const (
	wordsOfPackage = "    _get_comp_words_by_ref \"$@\" cur prev words cword\n"
	wordsOfLine    = `    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    [[ $line == *[[:blank:]] ]] && words+=("")
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=
    ((cword == 0)) || prev=${words[cword - 1]}
`
)

// Choice is a value that completion offers, and what it is.
type Choice struct{ Value, About string }

// complete answers the query of a completion script.
func (p *Program) complete(call *Call) int {
	root := p.cobra(call)
	root.SetArgs(call.Host.Args)
	root.SetOut(call.Host.Stdout)
	root.SetErr(io.Discard)
	if root.Execute() != nil {
		return 1
	}
	return 0
}

// cobra returns the whole tree with all flags. Only completion needs it: a call builds only its own command.
func (p *Program) cobra(call *Call) *cobra.Command {
	root := &cobra.Command{
		Use: p.Name, Short: p.Summary, SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {},
	}
	nodes := map[string]*cobra.Command{"": root}
	for _, c := range p.All() {
		parent, words := "", strings.Fields(c.Path)
		for i := range words {
			path := strings.Join(words[:i+1], " ")
			if nodes[path] == nil {
				nodes[path] = &cobra.Command{
					Use: words[i], Short: p.Groups[path], Run: func(*cobra.Command, []string) {},
				}
				nodes[parent].AddCommand(nodes[path])
			}
			parent = path
		}
		nodes[c.Path].Short = c.Summary
		p.equip(nodes[c.Path], c, c.allParams(), call)
	}
	if own := nodes["help"]; own != nil {
		root.SetHelpCommand(own)
	}
	c := p.rootCommand()
	params := c.allParams()
	if p.Direct != nil {
		params = slices.Concat(c.Params, p.Direct().Params, params[len(c.Params):])
	}
	p.equip(root, c, params, call)
	return root
}

// equip gives a node its flags, and what completes their values and its arguments. Of flags with the same name, the
// first one counts.
func (p *Program) equip(node *cobra.Command, c *Command, params []Param, call *Call) {
	for _, param := range params {
		switch short := param.Short; {
		case node.Flags().Lookup(param.Name) != nil:
			continue
		case short != "" && node.Flags().ShorthandLookup(short) != nil:
			param.Short = ""
		}
		if param.Kind == Bool {
			node.Flags().BoolP(param.Name, param.Short, false, param.Help)
			continue
		}
		node.Flags().StringP(param.Name, param.Short, "", param.Help)
		_ = node.RegisterFlagCompletionFunc(param.Name, func(node *cobra.Command, args []string, _ string,
		) ([]string, cobra.ShellCompDirective) {
			return p.offer(call.typedSoFar(node, c, args), param)
		})
	}
	places := c.positionals()
	node.ValidArgsFunction = func(node *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		last := len(places) - 1
		switch {
		case last >= 0 && len(args) > last && !places[last].Variadic, last < 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case len(args) > last:
			return p.offer(call.typedSoFar(node, c, args), places[last])
		}
		return p.offer(call.typedSoFar(node, c, args), places[len(args)])
	}
}

// typedSoFar returns the call that is being typed, or nil if it cannot be prepared.
func (c *Call) typedSoFar(node *cobra.Command, command *Command, args []string) *Call {
	typed, loose := *c, *command
	loose.LooseConfig, loose.NoConfig = true, false
	typed.Command, typed.params, typed.values = &loose, map[string]Param{}, map[string][]string{}
	for _, param := range slices.Concat(c.Program.rootCommand().allParams(), command.allParams()) {
		typed.params[param.Name] = param
	}
	node.Flags().Visit(func(f *pflag.Flag) { typed.values[f.Name] = []string{f.Value.String()} })
	for i, place := range command.positionals() {
		if i < len(args) {
			typed.values[place.Name] = args[i : i+1]
		}
	}
	if typed.prepare() != nil {
		return nil
	}
	return &typed
}

// offer returns the values that completion offers for a parameter. Without values, the shell completes files if the
// value may be a file.
func (p *Program) offer(call *Call, param Param) ([]string, cobra.ShellCompDirective) {
	list := slices.Clone(param.Enum)
	if len(list) == 0 && call != nil && p.Complete != nil {
		for _, one := range p.Complete(call, param) {
			about, _ := text.Clean(text.Flat(one.About))
			list = append(list, strings.TrimRight(one.Value+"\t"+text.OneLine(redact.String(about), 80), "\t "))
		}
	}
	if len(list) == 0 && (param.Kind == File || param.Kind == Text && param.Variadic) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
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
		fmt.Fprintf(&b, ".SH CALLS WITHOUT A COMMAND\n%s.\n", roff(text.Sentence(d.Summary)))
		roffParams(&b, d.Params)
		fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n.SH EXIT STATUS OF CALLS WITHOUT A COMMAND\n", roff(d.Detail))
		for _, e := range d.Exits {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", e.Number, roff(e.When))
		}
	}
	b.WriteString(".SH COMMANDS\n")
	for _, c := range p.All() {
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
	for _, c := range p.All() {
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
	for _, c := range p.All() {
		name := "SKILL-" + strings.ReplaceAll(c.Path, " ", "-") + ".md"
		fmt.Fprintf(&context, "- [`%s %s`](%s): %s\n", p.Name, c.Path, name, c.Summary)
		pages = append(pages, Page{c.Path, name, p.Skill(c)})
	}
	return append([]Page{{"", "CONTEXT.md", context.String()}}, pages...)
}

// SkillSchemas returns the full description of each command as JSON.
func (p *Program) SkillSchemas() []Page {
	pages := []Page{}
	for _, c := range p.All() {
		entry := append(p.entry(c, true), p.extension(c)...).set("version", p.Version)
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
		strings.ReplaceAll(c.Path, " ", "-"), c.Summary, p.Version, p.Name, c.Path, text.Sentence(c.Summary))
	output := map[string]string{
		"envelope": "one JSON envelope (`ok`, `data`, `error`, `warnings`, `meta`) on standard output",
		"stream":   "lines of JSON of its own on standard output",
		"terminal": "a conversation in the terminal",
	}[c.Class.wire()]
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
	if !c.Class.enveloped() {
		return append(list, Example{"Show how it is used", call + " --help"})
	}
	return append(list, Example{"Check arguments without doing anything", c.Examples[0].Command + " --validate-only"})
}
