package contract

import (
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
)

// validate finds everything that is wrong with the arguments: their form, what is missing, what excludes each other,
// and what the command itself checks. It may read, but changes nothing.
func (c *Call) validate() *fault.Fault {
	problems := c.readable()
	if c.Command.Validate != nil {
		problems = withProblems(problems, c.Command.Validate(c))
	}
	if _, problem := c.window(); problem != nil {
		problems = append(problems, *problem)
	}
	if len(problems) > 0 {
		return c.invalid(problems...)
	}
	return nil
}

// furtherInvalid returns a fault with the problems that keep a call from being read or prepared, and with all others
// that can be found without the configuration, which is not loaded yet. Unless the call was read whole, it reports no
// missing argument: that may be in the part that was not read.
func (c *Call) furtherInvalid(problems []fault.Problem, whole bool) *fault.Fault {
	unread := false
	for _, p := range c.Command.Params {
		if p.Stdin && c.String(p.Name) == "-" {
			delete(c.values, p.Name)
			unread = true
		}
	}
	further := withProblems(problems, c.readable())
	c.Paths = c.Host.paths(c.Program.Name, c.instance)
	if c.Command.Validate != nil && !unread {
		further = withProblems(further, c.Command.Validate(c))
	}
	missing := func(p fault.Problem) bool { return !whole && p.Code == fault.MissingArgument || p.Fault != nil }
	return c.invalid(append(problems, slices.DeleteFunc(further[len(problems):], missing)...)...)
}

// withProblems adds the problems that were found, except for parameters that have one already.
func withProblems(problems, found []fault.Problem) []fault.Problem {
	known := func(f fault.Problem) bool {
		return slices.ContainsFunc(problems, func(p fault.Problem) bool { return p.Param == f.Param })
	}
	return slices.Concat(problems, slices.DeleteFunc(slices.Clone(found), known))
}

// readable finds what is wrong with the arguments without asking the command.
func (c *Call) readable() []fault.Problem {
	problems := c.payloadProblems
	for _, param := range c.Command.allParams() {
		problems = append(problems, c.checkParam(param)...)
	}
	return append(append(problems, c.checkRules()...), c.checkShared()...)
}

// Wrong returns a problem with a parameter.
func Wrong(param string, code fault.Code, value, format string, args ...any) fault.Problem {
	return fault.Problem{Param: param, Code: code, Value: value, Message: fmt.Sprintf(format, args...)}
}

func (c *Call) checkParam(p Param) []fault.Problem {
	values := c.values[p.Name]
	where := p.shown()
	if p.Required && len(values) == 0 {
		return []fault.Problem{Wrong(p.Name, fault.MissingArgument, "", "%s needs %s: %s", c.Command.Path, where,
			p.Help)}
	}
	var problems []fault.Problem
	for i, v := range values {
		// An empty ID comes from a shell variable without a value. A further argument for another program may be empty.
		needed := p.Required && !(i > 0 && p.Variadic && p.Kind == Text) || p.Kind == ID && !p.Optional
		if v == "" && needed {
			problems = append(problems, Wrong(p.Name, fault.ArgError, "", "%s is empty", where))
			continue
		}
		found := p.check(v)
		if len(found) == 0 && c.Command.forChild(p) && strings.ContainsAny(v, shellCharacters) {
			found = []fault.Problem{Wrong(p.Name, fault.InvalidAgentInput, redact.String(v),
				"%s contains a character that shells give a meaning to", where)}
		}
		problems = append(problems, found...)
	}
	return problems
}

func (c *Call) checkRules() []fault.Problem {
	var problems []fault.Problem
	given := func(name string) bool { return c.Given(name) && (c.params[name].Kind != Bool || c.Bool(name)) }
	for _, rule := range c.Command.Rules {
		if !given(rule.If) || rule.Is != "" && c.String(rule.If) != rule.Is {
			continue
		}
		for _, name := range rule.Then {
			if !given(name) {
				problems = append(problems, Wrong(name, fault.MissingArgument, "", "--%s needs --%s too", rule.If,
					name))
			}
		}
		for _, name := range rule.Not {
			if given(name) {
				problems = append(problems,
					Wrong(name, fault.ArgError, c.String(name), "%s and %s exclude each other", c.typed(rule.If),
						c.typed(name)))
			}
		}
		for name, value := range rule.Default {
			if !c.Given(name) {
				c.values[name] = []string{value}
			}
		}
	}
	return problems
}

// typed returns a flag as it was typed, with its long name too.
func (c *Call) typed(name string) string {
	if short := "-" + c.params[name].Short; short != "-" &&
		slices.ContainsFunc(c.words, func(w string) bool { return strings.HasPrefix(w, short) }) {
		return short + " (--" + name + ")"
	}
	return "--" + name
}

// exclusions returns the groups of shared flags of which a call may have only one.
func exclusions() [][]string {
	return [][]string{{"quiet", "verbose", "debug"}, {"stream", "no-stream"}, {"live", "dry-run"}}
}

// checkShared checks the shared flags against each other and against the command.
func (c *Call) checkShared() []fault.Problem {
	var problems []fault.Problem
	for _, group := range exclusions() {
		given := slices.DeleteFunc(group, func(n string) bool { return !c.Bool(n) })
		if len(given) > 1 {
			problems = append(problems, Wrong(given[1], fault.ArgError, "", "--%s and --%s exclude each other",
				given[0], given[1]))
		}
	}
	if v := c.String("schema-version"); v != "" && v != "1" {
		problems = append(problems, fault.Problem{
			Param: "schema-version", Code: fault.SchemaVersion, Value: v,
			Corrected: "1", Message: "--schema-version: only version 1 is offered",
		})
	}
	if c.Bool("no-injection-protection") && c.Host.unattended() && !c.Bool("yes") {
		problems = append(problems, Wrong("no-injection-protection", fault.ConfirmationRequired, "",
			"--no-injection-protection without a terminal needs --yes as well"))
	}
	if c.format() == "id" && !c.Command.identifies() {
		problems = append(problems, Wrong("output", fault.ArgError, "id", "--output id: the result of %s has no id",
			c.title()))
	}
	if step := c.String("resume-from"); step != "" && !slices.Contains(c.Command.Steps, step) {
		problems = append(problems, Wrong("resume-from", fault.ArgError, step, "--resume-from takes one of %s",
			strings.Join(c.Command.Steps, ", ")))
	}
	return problems
}

// invalid returns the fault that lists all problems. The code of a single problem may be the code of the fault, because
// programs look for it there.
func (c *Call) invalid(problems ...fault.Problem) *fault.Fault {
	if f := problems[0].Fault; f != nil && len(problems) == 1 {
		f.Phase, f.Problems = fault.Validation, problems
		return f
	}
	slices.SortStableFunc(problems, func(a, b fault.Problem) int { return strings.Compare(a.Param, b.Param) })
	code, message := fault.Invalid, problems[0].Message
	alone := []fault.Code{
		fault.InvalidAgentInput, fault.InvalidJSON, fault.SecretOnCommandLine, fault.UnknownCommand,
		fault.StdinEmpty, fault.InvalidCursor, fault.SchemaVersion, fault.ConfirmationRequired, fault.FieldTooLarge,
		fault.ConfigKeyUnknown, fault.StreamingNotSupported,
	}
	if len(problems) == 1 && slices.Contains(alone, problems[0].Code) {
		code = problems[0].Code
	} else if n := len(problems) - 1; n > 0 {
		message = fmt.Sprintf("%s (and %d more: %s)", message, n, strings.Join(namesOf(problems[1:]), ", "))
	}
	f := fault.New(code, "%s", message)
	f.Phase, f.Problems = fault.Validation, problems
	f.Fix = "correct " + strings.Join(namesOf(problems), ", ")
	first, help := problems[0], strings.TrimSpace(c.Program.Name+" "+c.Command.Path)+" --help"
	f.With("input_value", redact.String(first.Value))
	if first.Pattern != "" {
		f.With("rejected_pattern", first.Pattern)
	}
	if missing := missingOf(problems); len(missing) > 0 {
		f.With("missing_args", missing)
	}
	if first.Corrected != "" {
		f.With("corrected_input", first.Corrected)
		if first.Code == fault.UnknownFlag {
			f.Ways = []string{help + " lists the flags"}
		}
		return f.Hint("%s", c.corrected(first))
	}
	return f.Hint("%s", help)
}

// corrected returns the whole call with the one value corrected, or the value if it does not occur in what was typed.
func (c *Call) corrected(p fault.Problem) string {
	words, found := []string{c.Program.Name}, false
	for _, w := range c.masked() {
		switch {
		case found || p.Value == "":
		case w == p.Value:
			w, found = p.Corrected, true
		case strings.HasSuffix(w, "="+p.Value), strings.HasPrefix(w, p.Value+"="):
			w, found = strings.Replace(w, p.Value, p.Corrected, 1), true
		}
		words = append(words, w)
	}
	if !found || strings.TrimSpace(p.Corrected) == "" {
		return "use " + p.Corrected
	}
	return text.Shell(words...)
}

func namesOf(problems []fault.Problem) []string {
	names := []string{}
	for _, p := range problems {
		if !slices.Contains(names, p.Param) {
			names = append(names, p.Param)
		}
	}
	return names
}

func missingOf(problems []fault.Problem) []string {
	var names []string
	for _, p := range problems {
		if p.Code == fault.MissingArgument {
			names = append(names, p.Param)
		}
	}
	return names
}
