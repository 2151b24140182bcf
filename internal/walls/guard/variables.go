package guard

import (
	"regexp"
	"strings"
)

// sets records that a piece sets a variable. Programs run the values of many variables, so while a rule forbids a
// command, a value has to be plain words that do not name it, unless nothing runs the variable. exports says that other
// programs see the value.
func (p *piece) sets(name string, value word, exports bool) {
	name, _, _ = strings.Cut(strings.TrimSuffix(name, "+"), "[")
	upper := strings.ToUpper(name)
	switch {
	case regexp.MustCompile(`^(BASH_|GIT_CONFIG|PERL5|PS[0-4]$)|` +
		`^(IFS|ENV|SHELLOPTS|BASHOPTS|GLOBIGNORE|MAKEFILES|PROMPT_COMMAND|RUBYOPT|VIMINIT|EXINIT)$`).MatchString(upper):
		p.runsUnknown = true
	case isData(name):
	case value.known && plainWords().MatchString(value.text):
		p.values = append(p.values, value.text)
	default:
		p.runsUnknown = p.runsUnknown || exports || runs(upper)
	}
}

// isData reports whether nothing runs the value of a variable. Only npm uses variables with lower-case names.
func isData(name string) bool {
	small := strings.ToLower(name) == name && !strings.HasPrefix(name, "npm_")
	return small || strings.HasPrefix(name, "LC_") || does(ofPlain, name, nil)
}

// runs reports whether bash, or a program that was started before, may run the value of a variable.
func runs(upper string) bool {
	return redirectsPrograms(upper) || regexp.MustCompile(
		`^(S?RANDOM|SECONDS|OPTIND|OPTERR|HIST\w+|LINENO|EPOCH\w+|TMOUT|COLUMNS|LINES)$|`+
			`(PAGER|EDITOR|VISUAL|SHELL|BROWSER|COMMAND|ASKPASS|OPTIONS|FLAGS|OPTS|RSH|SSH|DIFF)$`).MatchString(upper)
}

// setByWords records the variables that the words of a wrapper such as env, or of a builtin, set.
func (p *piece) setByWords(name string, argv []word) {
	switch {
	case wrapperOf(name).is("assigns"):
		for _, a := range argv[1:] { // those of the program after it are recorded too, which is stricter
			if set, value, found := strings.Cut(a.text, "="); found && set != "" && !strings.HasPrefix(set, "-") {
				a.text = value
				p.sets(set, a, true)
			}
		}
	case does(ofSetting, name, nil) && name != "unset":
		for i, a := range argv[1:] {
			if name == "printf" && argv[i].text != "-v" && !strings.HasPrefix(a.text, "-v") {
				continue
			}
			p.sets(strings.TrimPrefix(a.text, "-v"), word{}, false)
		}
	}
}
