package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// special returns the judge of a command whose arguments are a language of their own.
func special(name string) func(*invocation) string {
	switch name {
	case "echo", ":", "true", "false":
		return (*invocation).echo
	case "printf":
		return (*invocation).printf
	case "test", "[":
		return (*invocation).test
	case "sleep":
		return (*invocation).sleep
	case "command":
		return (*invocation).lookup
	case "cd":
		return (*invocation).cd
	case "date":
		return (*invocation).date
	case "find":
		return (*invocation).find
	case "sed":
		return (*invocation).sed
	case "jq":
		return (*invocation).jq
	}
	return nil
}

// exactly approves the argument lists of the grammar only, written with single spaces.
func (in *invocation) exactly(g tableEntry) string {
	texts := make([]string, len(in.args))
	for i, a := range in.args {
		if !a.literal() || strings.ContainsAny(a.text, " \t\n") || a.text == "" {
			return plainText(a, false) + in.name + " is not approved with these arguments"
		}
		texts[i] = a.text
	}
	if g.is("nothing") && len(texts) == 0 || slices.Contains(g.lines, strings.Join(texts, " ")) {
		return ""
	}
	return fmt.Sprintf("%s is not approved with these arguments", in.name)
}

// echo prints: the values of its arguments do not matter, if expanding them has no effect and reveals no secret.
func (in *invocation) echo() string {
	for _, a := range in.args {
		if !a.known && !a.data {
			return "an argument is not known before it runs: " + a.why
		}
		if a.pattern {
			if _, why, _ := in.walker.reading(a, in.at); why != "" {
				return why
			}
		}
	}
	return ""
}

// printf needs a known format: -v and %n assign, and an assignment can run what is in a subscript.
func (in *invocation) printf() string {
	args := in.args
	if len(args) > 0 && args[0].literal() && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || !args[0].literal() {
		return "the format of printf is not known before it runs"
	}
	format := args[0].text
	if strings.HasPrefix(format, "-") {
		return "printf is not approved with flags"
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		i++
		for i < len(format) && strings.IndexByte("-+ #0123456789.", format[i]) >= 0 {
			i++
		}
		if i == len(format) || strings.IndexByte("%sdiuxXocqfeEgGb", format[i]) < 0 {
			return "the format of printf has a part that is not approved"
		}
	}
	in.args = args[1:]
	return in.echo()
}

// test compares. -v and -R look names up, and bash evaluates a subscript in a name.
func (in *invocation) test() string {
	args := in.args
	if in.name == "[" {
		if len(args) == 0 || args[len(args)-1].text != "]" {
			return "[ without ]"
		}
		args = args[:len(args)-1]
	}
	for i, a := range args {
		if !a.literal() {
			return "an argument is not known before it runs: " + cmp.Or(a.why, "a pattern becomes the names of files")
		}
		switch a.text {
		case "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-nt", "-ot", "-ef":
			for _, near := range []int{i - 1, i + 1} {
				if near < 0 || near >= len(args) || near < i && len(a.text) == 2 {
					continue
				}
				if why := in.file(args[near], false); why != "" {
					return why
				}
			}
		case "-z", "-n", "=", "==", "!=", "<", ">", "!", "-a", "-o", "(", ")", "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
		default:
			if strings.HasPrefix(a.text, "-") && strings.Trim(a.text[1:], "0123456789") != "" {
				return in.name + " " + a.text + " is not approved"
			}
		}
	}
	return ""
}

func (in *invocation) sleep() string {
	if len(in.args) != 1 || !in.args[0].literal() || !seconds(in.args[0].text) {
		return "sleep is approved with one number"
	}
	return ""
}

// lookup says what a name is.
func (in *invocation) lookup() string {
	if len(in.args) == 0 || in.args[0].text != "-v" && in.args[0].text != "-V" {
		return "command is approved with -v, or in front of a command that is approved"
	}
	return in.fits(grammarOf(in.name))
}

func (in *invocation) cd() string {
	args := in.args
	if len(args) > 0 && args[0].literal() && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) != 1 || !args[0].literal() || args[0].text == "" || strings.HasPrefix(args[0].text, "-") {
		return "cd is approved with the name of one directory"
	}
	return in.file(args[0], false)
}

// date prints the time; an operand without + would set the clock.
func (in *invocation) date() string {
	if why := in.fits(grammarOf("date")); why != "" {
		return why
	}
	for _, o := range in.operands {
		if !strings.HasPrefix(o.text, "+") {
			return "date with such an operand sets the clock"
		}
	}
	return ""
}

// find is approved with tests and with actions that print.
func (in *invocation) find() string {
	args := in.args
	start := 0
	for start < len(args) && args[start].literal() && args[start].text == "-P" {
		start++
	}
	first := start
	for ; start < len(args); start++ {
		a := args[start]
		if a.known && !a.wild && (strings.HasPrefix(a.text, "-") && len(a.text) > 1 || a.text == "(" || a.text == "!" ||
			a.text == ")" || a.text == ",") {
			break
		}
		if a.pattern && a.wild {
			return fmt.Sprintf("%s may become an expression, if a file is named so: write ./%s", a.text, a.text)
		}
		if why := in.file(a, true); why != "" {
			return why
		}
	}
	if start == first {
		if why := in.file(word{text: ".", known: true}, true); why != "" {
			return why
		}
	}
	return in.findExpression(args[start:])
}

func (in *invocation) findExpression(args []word) string {
	known := grammarOf("find expression").kinds()
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !a.literal() {
			return "an argument is not known before it runs: " +
				cmp.Or(a.why, "a pattern becomes the names of files; quote it")
		}
		kind, ok := known[a.text]
		if !ok || kind != 0 && i+1 == len(args) {
			return "find " + a.text + " is not among the expressions that are approved"
		}
		if kind != 0 {
			i++
			if why := in.value(args[i], kind); why != "" {
				return why
			}
		}
	}
	return ""
}

// sed is approved with -n and scripts that print lines by number or by a plain expression.
func (in *invocation) sed() string {
	if why := in.split(grammarOf(in.name)); why != "" {
		return why
	}
	if !slices.ContainsFunc(in.flags, func(f string) bool { return f == "-n" || f == "--quiet" || f == "--silent" }) {
		return "sed is approved with -n and a script that prints lines, such as 10,20p"
	}
	scripts, read := in.values, in.operands // all values here are scripts
	if len(scripts) == 0 {
		if len(read) == 0 || !read[0].literal() {
			return "sed without a script"
		}
		scripts, read = []string{read[0].text}, read[1:]
	}
	for _, s := range scripts {
		if !printsOnly(s) {
			return "sed is approved with -n and a script that prints lines, such as 10,20p"
		}
	}
	for _, o := range read {
		if why := in.file(o, false); why != "" {
			return why
		}
	}
	return ""
}

// printsOnly reports whether a sed script has only addresses and p, = and q. Any other script may write or execute.
func printsOnly(script string) bool {
	for command := range strings.SplitSeq(script, ";") {
		rest, ok := address(strings.TrimSpace(command))
		if !ok {
			return false
		}
		if after, found := strings.CutPrefix(rest, ","); found {
			if rest, ok = address(after); !ok || rest == after {
				return false
			}
		}
		rest = strings.TrimPrefix(rest, "!")
		if rest != "p" && rest != "=" && rest != "q" {
			return false
		}
	}
	return true
}

// address reads a line number, $ or a plain expression.
func address(s string) (rest string, ok bool) {
	if after, found := strings.CutPrefix(s, "$"); found {
		return after, true
	}
	if after, found := strings.CutPrefix(s, "/"); found {
		expression, rest, closed := strings.Cut(after, "/")
		return rest, closed && expression != "" && !strings.ContainsAny(expression, "\\[]\n;")
	}
	if len(s) > 1 && (s[0] == '+' || s[0] == '~') && s[1] >= '0' && s[1] <= '9' {
		s = s[1:]
	}
	return strings.TrimLeft(s, "0123456789"), true
}

// jq is approved with filters that name neither the environment nor other files.
func (in *invocation) jq() string {
	var args []word
	for i := 0; i < len(in.args); i++ { // --arg takes two values: remove them
		a := in.args[i]
		if a.text == "--" {
			return "jq is not approved with --"
		}
		if a.literal() && (a.text == "--arg" || a.text == "--argjson") && i+2 < len(in.args) {
			for _, v := range in.args[i+1 : i+3] {
				if why := plainText(v, false); why != "" {
					return why
				}
			}
			i += 2
			continue
		}
		args = append(args, in.args[i])
	}
	in.args = args
	if why := in.fits(grammarOf(in.name)); why != "" {
		return why
	}
	for name := range strings.FieldsFuncSeq(in.operands[0].text, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		switch name {
		case "env", "ENV", "import", "include", "modulemeta", "input_filename", "get_search_list", "__prog_args":
			return "a filter with " + name + " reads more than its input"
		}
	}
	return ""
}
