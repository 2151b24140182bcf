package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"omniagent/internal/fault"
	"omniagent/internal/literal"
	"omniagent/internal/redact"
	"omniagent/internal/text"
)

// Parsing has two steps. First split finds the command, so that options may come between and after its words. Then
// cobra parses the rest with the flags of that command. Every value is text at first; all problems with values are
// reported later, together.

// split finds the command that args begin with. rest is everything else, in order.
func (p *Program) split(args []string) (words, rest []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return words, append(rest, args[i:]...)
		}
		if strings.HasPrefix(arg, "-") && arg != "-" {
			rest = append(rest, arg)
			if p.takesNext(arg) && i+1 < len(args) {
				i++
				rest = append(rest, args[i])
			}
			continue
		}
		path := strings.Join(append(slices.Clone(words), arg), " ")
		if !p.begins(path) {
			return words, append(rest, args[i:]...)
		}
		words = append(words, arg)
	}
	return words, rest
}

// begins reports whether a command's path is, or starts with, these words.
func (p *Program) begins(path string) bool {
	return slices.ContainsFunc(p.Commands, func(c *Command) bool {
		return c.Path == path ||
			strings.HasPrefix(c.Path, path+" ")
	})
}

// takesNext reports whether the flag in arg has its value in the next argument. Registration ensures that the answer is
// the same for every command.
func (p *Program) takesNext(arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	long := strings.HasPrefix(arg, "--")
	for _, c := range p.Commands {
		for _, param := range c.allParams() {
			if long && param.Name == name || !long && param.Short != "" && strings.HasSuffix(name, param.Short) {
				return param.Kind != Bool
			}
		}
	}
	return false
}

// parse reads the arguments of a known command into call. The fault lists everything that cannot be parsed.
func (p *Program) parse(call *Call, words, rest []string) *fault.Fault {
	call.params = map[string]Param{}
	for _, param := range call.Command.allParams() {
		call.params[param.Name] = param
	}
	if f := p.unknown(call, rest); f != nil {
		return f
	}
	values := map[string]*pflag.Flag{}
	var positional []string
	leaf := &cobra.Command{
		Use: words[len(words)-1], SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { positional = args; return nil },
	}
	leaf.SetHelpFunc(func(*cobra.Command, []string) {})
	leaf.CompletionOptions.DisableDefaultCmd = true
	flags := leaf.Flags()
	for name, param := range call.params {
		flags.VarP(newCollector(param.Kind), name, param.Short, "")
		values[name] = flags.Lookup(name)
		if param.Kind == Bool {
			values[name].NoOptDefVal = "true"
		}
	}
	root := &cobra.Command{Use: p.Name, SilenceErrors: true, SilenceUsage: true}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(leaf)
	root.SetArgs(append([]string{leaf.Use}, rest...))
	if err := root.Execute(); err != nil {
		return invalid(p, call,
			[]fault.Problem{{Param: flagIn(err.Error()), Code: fault.MissingArgument, Message: err.Error()}})
	}
	call.given = map[string][]string{}
	for name, flag := range values {
		if flag.Changed {
			call.given[name] = flag.Value.(*collector).list
		}
	}
	return p.place(call, positional)
}

// collector keeps every value as typed.
type collector struct {
	list []string
	kind Kind // cobra looks at the type of its help flag
}

func newCollector(kind Kind) *collector { return &collector{kind: kind} }

func (c *collector) Set(v string) error { c.list = append(c.list, v); return nil }
func (c *collector) Type() string       { return string(c.kind) }

func (c *collector) String() string {
	if c.kind == Bool {
		return strconv.FormatBool(len(c.list) > 0)
	}
	return strings.Join(c.list, ",")
}

func flagIn(message string) string {
	if i := strings.LastIndex(message, "-"); i >= 0 {
		return strings.Trim(message[i:], "- ")
	}
	return ""
}

// unknown returns every flag that the command does not have.
func (p *Program) unknown(call *Call, rest []string) *fault.Fault {
	call.early(rest)
	var problems []fault.Problem
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		arg := rest[i]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			continue
		}
		typed, _, _ := strings.Cut(arg, "=")
		name := strings.TrimLeft(typed, "-")
		param, known := call.named(arg, name)
		if known {
			if param.Kind != Bool && !strings.Contains(arg, "=") &&
				(strings.HasPrefix(arg, "--") || strings.HasSuffix(name, param.Short)) {
				i++
			}
			continue
		}
		problems = append(problems, call.unknownFlag(name, typed))
	}
	if len(problems) == 0 {
		return nil
	}
	return invalid(p, call, problems)
}

// early reads the flags that decide how a failure is reported: --quiet, --stable-output and --output apply even if the
// arguments cannot be parsed.
func (c *Call) early(rest []string) {
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		form, given := strings.CutPrefix(rest[i], "--output=")
		switch {
		case rest[i] == "--quiet", rest[i] == "-q":
			c.given["quiet"] = []string{"true"}
		case rest[i] == "--stable-output":
			c.given["stable-output"] = []string{"true"}
		case given:
			c.given["output"] = []string{form}
		case rest[i] == "--output" && i+1 < len(rest):
			i++
			c.given["output"] = []string{rest[i]}
		}
	}
}

// named returns the parameter of a long flag, or of the last in a cluster of short ones.
func (c *Call) named(arg, name string) (Param, bool) {
	if strings.HasPrefix(arg, "--") {
		p, ok := c.params[name]
		return p, ok
	}
	var last Param
	for i, r := range name {
		found := false
		for _, p := range c.params {
			if p.Short == string(r) {
				last, found = p, true
			}
		}
		if !found {
			return last, false
		}
		if last.Kind != Bool {
			return last, i >= 0 // the rest is its value
		}
	}
	return last, name != ""
}

// unknownFlag explains a flag that the command does not have, as typed.
func (c *Call) unknownFlag(name, typed string) fault.Problem {
	problem := fault.Problem{Param: name, Code: fault.UnknownFlag, Value: typed}
	if redact.Name(name) {
		problem.Code = fault.SecretOnCommandLine
		instead := "an environment variable or a file"
		if _, offered := c.params[name+"-from-env"]; offered {
			instead = "--" + name + "-from-env VARIABLE or --" + name + "-from-file FILE"
		}
		problem.Message = fmt.Sprintf(
			"--%s is not taken: a secret on the command line can be read by every process; use %s", name, instead)
		return problem
	}
	if name == "stream" {
		problem.Code = fault.StreamingNotSupported
		problem.Message = c.Command.Path + " cannot stream; its answer is one envelope"
		return problem
	}
	names := []string{}
	for n := range c.params {
		names = append(names, n)
	}
	slices.Sort(names)
	near := text.Nearest(name, names)
	if near != "" {
		problem.Corrected = "--" + near
	}
	problem.Message = fmt.Sprintf("%s has no flag %s%s", c.title(), typed, meant(problem.Corrected))
	return problem
}

// place assigns the positional arguments to the parameters that were not given as flags.
func (p *Program) place(call *Call, args []string) *fault.Fault {
	for _, param := range call.Command.positionals() {
		if len(args) == 0 {
			break
		}
		if call.Given(param.Name) && !param.Variadic {
			continue
		}
		if param.Variadic {
			call.given[param.Name] = append(call.given[param.Name], args...)
			args = nil
			break
		}
		call.given[param.Name] = args[:1:1]
		args = args[1:]
	}
	if len(args) > 0 {
		return invalid(p, call, []fault.Problem{{
			Param: "argument", Code: fault.ArgError, Value: redact.String(args[0]),
			Message: fmt.Sprintf("%s takes no further argument, got %q", call.Command.Path, redact.String(args[0])),
		}})
	}
	return p.payload(call)
}

// payload reads the arguments from --raw-payload, which excludes giving them any other way.
func (p *Program) payload(call *Call) *fault.Fault {
	raw, given := call.given["raw-payload"]
	if !given {
		return nil
	}
	param := call.params["raw-payload"]
	if problems := param.check(raw[0]); len(problems) > 0 {
		return invalid(p, call, problems)
	}
	for name, own := range call.params {
		if !own.Global && call.Given(name) {
			call.misgiven = append(call.misgiven, fault.Problem{
				Param: name, Code: fault.ArgError, Value: redact.String(call.String(name)),
				Message: fmt.Sprintf("--%s and --raw-payload exclude each other", name),
			})
		}
	}
	v, _ := literal.ParseJSON5([]byte(raw[0]))
	for _, m := range v.Members {
		if own, takes := call.params[m.Key]; !takes || own.Global {
			problem := call.unknownFlag(m.Key, "--"+m.Key)
			if problem.Code == fault.UnknownFlag {
				problem.Message = fmt.Sprintf("the payload has a member %s that %s does not take", m.Key,
					call.Command.Path)
			}
			call.misgiven = append(call.misgiven, problem)
			continue
		}
		call.given[m.Key] = texts(m.Value)
	}
	return nil // validation reports these problems together with its own
}

// texts returns a payload's value as it would be typed.
func texts(v literal.Value) []string {
	switch v.Kind {
	case literal.Null:
		return nil
	case literal.Array:
		list := []string{}
		for _, item := range v.Items {
			list = append(list, texts(item)...)
		}
		return list
	case literal.String:
		return []string{v.Str}
	}
	return []string{string(v.JSON())}
}
