package contract

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
)

// Parsing has two steps. First the command's words are found, so that options may stand between and after them; then
// the rest is read against the flags of that one command. Values stay text here. validate checks them later, all at
// once.

// split finds the command that args begin with. rest is everything else, in order.
func (p *Program) split(args []string) (words, rest []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return words, append(rest, args[i:]...)
		}
		if strings.HasPrefix(arg, "-") && arg != "-" {
			rest = append(rest, arg)
			if p.takesNext(words, arg) && i+1 < len(args) {
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

// begins reports whether path is a command, or the first words of one.
func (p *Program) begins(path string) bool {
	return slices.ContainsFunc(p.Commands, func(r Registered) bool {
		return r.Path == path || strings.HasPrefix(r.Path, path+" ")
	})
}

// takesNext reports whether the flag in arg has its value in the next argument. words are those of the command so far.
// Registration ensures that the answer is the same for every command. The others are constructed only for a flag that
// this one does not have.
func (p *Program) takesNext(words []string, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	long := strings.HasPrefix(arg, "--")
	is := func(param *Param) bool {
		return long && (param.Name == name || param.As == name) ||
			!long && param.Short != "" && strings.HasSuffix(name, param.Short)
	}
	in := func(c *Command) (known, value bool) {
		for i := range c.Params {
			for _, param := range c.Params[i].expand() {
				if is(&param) {
					return true, param.Kind != Bool
				}
			}
		}
		return false, false
	}
	if c, ok := p.Find(strings.Join(words, " ")); ok {
		if known, value := in(c); known {
			return value
		}
	}
	for _, shared := range sharedParams() {
		if is(&shared.Param) {
			return shared.Kind != Bool
		}
	}
	for _, c := range p.All() {
		if known, value := in(c); known {
			return value
		}
	}
	return false
}

// parse reads the arguments of a known command into call. The fault lists everything that keeps it from being read.
func (p *Program) parse(call *Call, rest []string) *fault.Fault {
	call.params = map[string]Param{}
	for _, param := range call.Command.allParams() {
		call.params[param.Name] = param
	}
	given, positional, problems := p.flags(call, rest)
	if call.values = given; call.Bool("help") {
		positional = nil // the help has no use for them, right or wrong
	}
	surplus, f := p.place(call, positional)
	if f != nil {
		return f
	}
	if len(problems) == 0 && len(surplus) == 0 {
		return nil
	}
	// After an unknown flag, a surplus argument is most likely its value.
	if len(problems) == 0 {
		problems = surplus
	}
	return call.furtherInvalid(problems, false)
}

// flags assigns the arguments to the flags of the command, and returns everything that keeps them from being read.
// The flags that decide about the form of the answer are set even then.
func (p *Program) flags(call *Call, rest []string) (given map[string][]string, positional []string,
	problems []fault.Problem,
) {
	given = map[string][]string{}
	var unknown, missing []fault.Problem
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		if arg == "--" {
			positional = append(positional, rest[i+1:]...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			positional = append(positional, arg)
			continue
		}
		for _, one := range call.flagsIn(arg) {
			switch {
			case one.Name == "":
				typed, _, _ := strings.Cut(arg, "=")
				unknown = append(unknown, call.unknownFlag(strings.TrimLeft(typed, "-"), typed))
				// If it takes a value in another command, the next argument is most likely its value.
				if p.takesNext(nil, arg) && i+1 < len(rest) && !strings.HasPrefix(rest[i+1], "-") {
					i++
				}
			case one.joined, one.Kind == Bool:
				given[one.Name] = append(given[one.Name], one.value)
				if on, _ := strconv.ParseBool(one.value); on && one.Global && one.Name == "json" {
					given["output"] = append(given["output"], one.Name)
				}
			case one.Optional && (i+1 == len(rest) || strings.HasPrefix(rest[i+1], "-")):
				given[one.Name] = append(given[one.Name], "")
			case i+1 < len(rest):
				i++
				given[one.Name] = append(given[one.Name], rest[i])
			default:
				missing = append(missing,
					Wrong(one.Name, fault.MissingArgument, "", "flag needs an argument: %s", arg))
			}
		}
	}
	call.read(given)
	for _, name := range []string{"quiet", "stable-output", "output"} {
		if values, ok := given[name]; ok {
			call.values[name] = values
		}
	}
	return given, positional, append(unknown, missing...)
}

// flagUse is a flag as it was written in an argument. The name is empty if the command does not have the flag.
type flagUse struct {
	Param
	value  string
	joined bool // the value is in the same argument
}

// flagsIn finds the flags in an argument: a long one, or a cluster of short ones.
func (c *Call) flagsIn(arg string) []flagUse {
	if name, long := strings.CutPrefix(arg, "--"); long {
		name, value, joined := strings.Cut(name, "=")
		if !joined {
			value = "true"
		}
		return []flagUse{{c.flag(name), value, joined}}
	}
	var found []flagUse
	for left := arg[1:]; left != ""; {
		one := flagUse{value: "true"}
		for _, p := range c.params {
			if p.Short != "" && p.Short == left[:1] {
				one.Param = p
			}
		}
		if one.Name == "" {
			return []flagUse{one}
		}
		left = left[1:]
		if value, is := strings.CutPrefix(left, "="); is || one.Kind != Bool && left != "" {
			one.value, one.joined, left = value, true, ""
		}
		found = append(found, one)
	}
	return found
}

// flag returns the flag of a name, or of another spelling of it.
func (c *Call) flag(name string) Param {
	if p, ok := c.params[name]; ok || name == "" {
		return p
	}
	for _, p := range c.params {
		if p.As == name {
			return p
		}
	}
	return Param{}
}

// read replaces synonyms from other programs by the values of the flags.
func (c *Call) read(values map[string][]string) {
	for name, list := range values {
		for i, word := range list {
			list[i] = c.params[name].Also.Read(word)
		}
	}
}

// unknownFlag explains a flag that the command does not have, as typed.
func (c *Call) unknownFlag(name, typed string) fault.Problem {
	problem := fault.Problem{Param: name, Code: fault.UnknownFlag, Value: typed}
	if redact.Name(name) || c.Command.hasSecret(name) {
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
	if near := text.Nearest(name, slices.Sorted(maps.Keys(c.params))); near != "" {
		problem.Corrected = "--" + near
	}
	var others []string
	for _, other := range c.Program.All() {
		i := slices.IndexFunc(other.Params, func(p Param) bool {
			return p.Name == name || p.Short == name && typed == "-"+name
		})
		if i < 0 {
			continue
		}
		others = append(others, other.Path)
		for _, same := range c.Command.Params { // here the same short form has another name
			if problem.Corrected == "" && same.Short != "" && same.Short == other.Params[i].Short {
				problem.Corrected = "--" + same.Name
			}
		}
	}
	problem.Message = fmt.Sprintf("%s has no flag %s%s", c.title(), typed, didYouMean(problem.Corrected))
	if problem.Corrected == "" && len(others) > 0 && len(others) <= 5 && !c.Program.Shares(name) {
		problem.Message += " (it is one of " + text.Either(others) + ")"
	}
	return problem
}

// place assigns the positional arguments to the parameters that were not given as flags.
func (p *Program) place(call *Call, args []string) (surplus []fault.Problem, f *fault.Fault) {
	for _, param := range call.Command.positionals() {
		if len(args) == 0 {
			break
		}
		if call.Given(param.Name) && !param.Variadic {
			continue
		}
		if param.Variadic {
			call.values[param.Name] = append(call.values[param.Name], args...)
			args = nil
			break
		}
		call.values[param.Name] = args[:1:1]
		args = args[1:]
	}
	if len(args) > 0 {
		call.surplus = args
		value := call.surplusValue(args[0])
		problem := Wrong("argument", fault.ArgError, value, "%s takes no further argument, got %q", call.Command.Path,
			value)
		if text := call.Command.text(); text != "" && !call.Given(text) && len(args) == 1 {
			problem.Corrected = "--" + text + "=" + problem.Value
		}
		surplus = []fault.Problem{problem}
	}
	return surplus, p.payload(call)
}

// text returns the name of the parameter that -p sets, or "". People often type its value without -p.
func (c *Command) text() string {
	for _, p := range c.Params {
		if p.Short == "p" {
			return p.Name
		}
	}
	return ""
}

// payload reads the arguments from --raw-payload, which excludes giving them any other way.
func (p *Program) payload(call *Call) *fault.Fault {
	raw, given := call.values["raw-payload"]
	if !given {
		return nil
	}
	param := call.params["raw-payload"]
	if problems := param.check(raw[0]); len(problems) > 0 {
		return call.invalid(problems...)
	}
	for name, own := range call.params {
		if !own.Global && call.Given(name) {
			call.payloadProblems = append(call.payloadProblems,
				Wrong(name, fault.ArgError, redact.String(call.String(name)),
					"%s and --raw-payload exclude each other", own.shown()))
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
			call.payloadProblems = append(call.payloadProblems, problem)
			continue
		}
		call.values[m.Key] = texts(m.Value)
	}
	return nil // validation reports these problems together with its own
}

// texts returns a value of a payload as a person would type it, one text for each item of a list.
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
