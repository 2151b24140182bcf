package contract

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
)

// rootCommand stands for the program itself: calls that name no command.
func (p *Program) rootCommand() *Command {
	return &Command{
		Class: Envelope, Danger: Safe, Quiet: true, LooseConfig: true, Version: "1.0.0", Summary: p.Summary,
		Output: TypeOf[map[string]any](), Scopes: []string{},
		Params: []Param{
			{Name: "version", Short: "V", Kind: Bool, Help: "print the version"},
			{Name: "print-schema", Kind: Bool, Help: "the same as --schema"},
			{Name: "show-config", Kind: Bool, Help: "show the configuration in force and where it comes from"},
		},
		Exits:    []Exit{{Code: Success, When: "what was asked for is printed", Changed: None}},
		Examples: []Example{{"List the commands", p.Name}},
		Run: func(_ context.Context, c *Call) (Result, error) {
			return Result{Data: c.ShowConfig()}, nil
		},
	}
}

// root answers calls that name no command.
func (p *Program) root(call *Call, words, rest []string) int {
	call.Command = p.rootCommand()
	if len(call.words) > 0 && strings.HasPrefix(call.words[0], "__complete") {
		return p.complete(call)
	}
	if len(words) > 0 && strings.HasPrefix(call.words[0], "-") {
		words, rest = nil, call.words
	}
	call.params = map[string]Param{}
	for _, param := range call.Command.allParams() {
		call.params[param.Name] = param
	}
	word, found := p.firstWord(rest)
	leads := found && word == rest[0] // the flags after it belong to a command that does not exist
	if _, _, wrong := p.flags(call, rest); len(wrong) > 0 && len(words) == 0 && !leads && !p.CommandBehind(rest) {
		return call.finish(answer{fault: call.invalid(wrong...)}, nil)
	}
	exists := p.begins(strings.Join(append(slices.Clone(words), word), " "))
	if found && !(exists && slices.Contains(rest, "--help")) {
		return call.finish(answer{fault: p.noCommand(words, word, rest), pure: len(rest) == 0}, nil)
	}
	if f := p.parse(call, rest); f != nil {
		return call.finish(answer{fault: f}, nil)
	}
	group := strings.Join(words, " ")
	switch {
	case group != "":
		return call.finish(call.helpAnswer(func(h *helpPage) { p.groupHelp(h, group) },
			p.summaries(group+" ")), nil)
	case call.Bool("version"):
		if call.Given("output") && call.format() == "json" {
			return call.finish(answer{data: object{{"version", p.Version}}, pure: true}, nil)
		}
		return call.finish(answer{human: p.Version + "\n", bare: true, pure: true}, nil)
	case call.Bool("schema"), call.Bool("print-schema"):
		return call.finish(p.wholeSchema(), nil)
	case call.Bool("show-config"):
		if f := call.prepare(); f != nil {
			return call.finish(answer{fault: f}, nil)
		}
		return call.finish(call.supervise(context.Background(), make(chan os.Signal)), nil)
	case call.Bool("help"):
		return call.finish(call.helpAnswer(p.rootHelp, p.summaries("")), nil)
	case len(rest) > 0 && !onlyShared(call):
		return call.finish(answer{fault: p.noCommand(words, "", rest)}, nil)
	}
	return call.finish(call.helpAnswer(p.rootHelp, p.summaries("")), nil)
}

func onlyShared(call *Call) bool {
	for name := range call.values {
		if !call.params[name].Global {
			return false
		}
	}
	return true
}

// summaries lists the commands whose path begins with below, one line each.
func (p *Program) summaries(below string) object {
	list := []any{}
	for _, c := range p.All() {
		if strings.HasPrefix(c.Path, below) {
			list = append(list, object{{"command", c.Key()}, {"description", c.Summary}})
		}
	}
	return object{{"commands", list}}
}

// firstWord returns the first argument that is neither a flag nor the value of one.
func (p *Program) firstWord(rest []string) (string, bool) {
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		switch {
		case !strings.HasPrefix(rest[i], "-"):
			return rest[i], true
		case p.takesNext(nil, rest[i]):
			i++
		}
	}
	return "", false
}

// Shares reports whether a flag, without its dashes, is shared by commands or belongs to the program itself.
func (p *Program) Shares(flag string) bool {
	known, _ := p.Shared(flag)
	return known
}

// Shared reports whether a flag is shared by commands, and whether a value follows it.
func (p *Program) Shared(flag string) (known, value bool) {
	for _, q := range slices.Concat(p.rootCommand().Params, p.sharedUsed()) {
		if flag != "" && (q.Name == flag || q.Short == flag) {
			return true, q.Kind != Bool
		}
	}
	return false, false
}

// CommandBehind reports whether options precede a command that exists.
func (p *Program) CommandBehind(rest []string) bool {
	word, found := p.firstWord(rest)
	return found && p.begins(word)
}

// suggestion returns the call without a command that was probably meant, or "".
func (p *Program) suggestion(word string) string {
	if p.Direct == nil {
		return ""
	}
	return p.Direct().Suggest(word)
}

// noCommand explains a word that names no command, and what was probably meant.
func (p *Program) noCommand(words []string, word string, rest []string) *fault.Fault {
	typed := strings.TrimSpace(strings.Join(append(slices.Clone(words), word), " "))
	if i := slices.Index(rest, word); i > 0 && p.begins(word) { // the command follows an option
		command := text.Shell(slices.Concat([]string{p.Name}, rest[i:], rest[:i])...)
		f := fault.New(fault.UnknownCommand, "%s stands before the command; options come after it",
			redact.String(rest[0]))
		return f.FixBy("put the command first", "").Hint("%s", command).With("corrected_input",
			command).With("input_value", redact.String(rest[0]))
	}
	near := nearestPath(typed, p.paths())
	ends := p.ending(typed)
	f := fault.New(fault.UnknownCommand, "there is no command %q%s", redact.String(typed),
		didYouMean(cmp.Or(near, text.Either(ends))))
	f.Problems = []fault.Problem{{
		Param: "command", Code: fault.UnknownCommand, Value: redact.String(typed), Message: f.Message, Corrected: near,
	}}
	f.FixBy("name a command that --help lists", "").With("input_value", redact.String(typed))
	better := p.suggestion(word)
	switch {
	case near != "":
		f.Ways = []string{p.Name + " --help lists the commands"}
		return f.Hint("%s %s", p.Name, near).With("corrected_input", near)
	case len(words) > 0:
		return f.Hint("%s %s lists its commands", p.Name, strings.Join(words, " "))
	case better != "":
		return f.Hint("%s", better)
	}
	return f.Hint("%s --help lists the commands", p.Name)
}

// nearestPath returns the command or group that was probably meant, or "". Each word must be like the one in its place:
// because only their first words are the same, "session resume" is not taken for a misspelt "session delete".
func nearestPath(typed string, paths []string) string {
	words := strings.Fields(typed)
	return text.Nearest(typed, slices.DeleteFunc(paths, func(path string) bool {
		own := strings.Fields(path)
		for i, word := range words {
			if len(own) == len(words) && word != own[i] && text.Nearest(word, own[i:i+1]) == "" {
				return true
			}
		}
		return false
	}))
}

// ending returns the commands of groups whose last word was probably meant: for "lst" all that end with list.
func (p *Program) ending(typed string) (paths []string) {
	last := func(path string) string { return path[strings.LastIndexByte(path, ' ')+1:] }
	words := []string{}
	for _, c := range p.All() {
		words = append(words, last(c.Path))
	}
	near := typed
	if !slices.Contains(words, typed) {
		near = text.Nearest(typed, words)
	}
	for _, c := range p.All() {
		if near != "" && last(c.Path) == near && strings.Contains(c.Path, " ") {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// ShowConfig returns every setting, its value and its source.
func (c *Call) ShowConfig() any {
	effective, sources, shadowed := object{}, object{}, object{}
	for _, e := range c.Config.All() {
		var value any = e.Value.Text
		if e.Value.Text == "" {
			value = nil
		}
		effective = append(effective, member{e.Key.Name, value})
		sources = append(sources, member{e.Key.Name, e.Value.Source})
		shadowed = shadowed.when(len(e.Value.Shadowed) > 0, e.Key.Name, names(e.Value.Shadowed))
	}
	return object{
		{"effective_config", effective},
		{"sources", sources},
		{"shadowed", shadowed},
		{"precedence_order", []any{"flag", "env", "project file, once trusted", "user file", "default"}},
	}
}
