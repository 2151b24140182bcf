package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
)

// Kind is the type of a parameter. It decides what is checked before anything runs.
type Kind string

const (
	Text Kind = "text" // any text: prompts, values
	Name Kind = "name" // a name that others chose: of a model, an agent, a host
	// letters, digits, dots, dashes, underscores: never a path or a URL
	ID       Kind = "id"
	File     Kind = "path" // relative to --cwd
	URL      Kind = "url"
	Int      Kind = "int"
	Bool     Kind = "bool"
	Enum     Kind = "enum"
	Duration Kind = "duration" // with a unit: 90s, 5m
	Names    Kind = "names"    // a,b,c
	JSON     Kind = "json"     // an object, parsed leniently
)

// Param declares one parameter. Every parameter is a flag; one with a Position may also be a positional argument.
type Param struct {
	Name      string
	Short     string
	Kind      Kind
	Value     string // what the help calls its value; empty: the name of the kind
	Help      string
	Default   string
	Enum      []string
	Also      setting.Synonyms // of an Enum: words that other programs have for the values
	As        string           // another spelling of the name
	Required  bool
	Position  int    // 1 is the first
	Variadic  bool   // takes all further positional arguments; may be repeated as a flag
	Pattern   string // anchored regular expression; kind ID has its own
	Example   string // an example that matches, for people
	MaxLen    int    // in bytes; zero: 64 KiB
	Min, Max  int64  // of an Int; both zero: no bounds
	Secret    bool   // never on the command line: becomes --NAME-from-env and --NAME-from-file
	Sensitive bool   // reveals what is hidden by default
	Stdin     bool   // "-" reads it from standard input
	Global    bool   // shared by the commands it applies to; once in the manifest
	Repeat    bool   // may be given several times
	Optional  bool   // its value may be left out, at the end or before another flag; then it is empty
	BoolHint  string // of a Bool: added to the message about any other value
	Common    bool   // often used: the help of the program names it
}

const (
	idPattern  = `^[A-Za-z0-9][A-Za-z0-9._-]*$`
	maxTextLen = 64 << 10
)

func (p Param) pattern() string {
	switch {
	case p.Pattern != "":
		return p.Pattern
	case p.Kind == ID:
		return idPattern
	}
	return ""
}

// shown returns the parameter as the help writes it.
func (p Param) shown() string {
	if p.Position > 0 {
		return strings.ToUpper(p.Name)
	}
	return "--" + p.Name
}

// free reports whether a value may have any form.
func (p Param) free() bool { return p.Kind == Text || p.Kind == Name }

// patternType returns the name of the pattern for programs.
func (p Param) patternType() string {
	switch p.Kind {
	case ID:
		return "alphanumeric_id"
	case File:
		return "filepath"
	case URL:
		return "url"
	}
	return ""
}

func (p Param) maxLen() int {
	if p.MaxLen > 0 {
		return p.MaxLen
	}
	return maxTextLen
}

// wireType returns the parameter's type in the manifest.
func (p Param) wireType() string {
	switch {
	case p.Variadic || p.Repeat || p.Kind == Names:
		return "array"
	case p.Kind == Int:
		return "integer"
	case p.Kind == Bool:
		return "boolean"
	case p.Kind == Enum:
		return "enum"
	}
	return "string"
}

// expand turns a secret into the two flags that name where it is.
func (p Param) expand() []Param {
	if !p.Secret {
		return []Param{p}
	}
	return []Param{
		{
			Name: p.Name + "-from-env", Kind: Text, Pattern: `^[A-Za-z_][A-Za-z0-9_]*$`,
			Help: p.Help + ": name of the environment variable that holds it",
		},
		{Name: p.Name + "-from-file", Kind: File, Help: p.Help + ": file that holds it"},
	}
}

// check returns all problems of one value.
func (p Param) check(value string) []fault.Problem {
	bad := func(code fault.Code, corrected, format string, args ...any) []fault.Problem {
		problem := fault.Problem{
			Param: p.Name, Code: code, Message: fmt.Sprintf(format, args...),
			Value: redact.String(value), Corrected: redact.String(corrected),
		}
		if code != fault.FieldTooLarge {
			problem.Pattern = p.pattern()
		}
		return []fault.Problem{problem}
	}
	if len(value) > p.maxLen() {
		return bad(fault.FieldTooLarge, "", "%s takes at most %d bytes, got %d", p.shown(), p.maxLen(), len(value))
	}
	if kind, secret := redact.LooksSecret(value); secret && !p.free() {
		return bad(fault.SecretOnCommandLine, "", "%s holds a secret (%s); every process could read it here", p.shown(),
			kind)
	}
	if problem, fixed := suspicious(p.Kind, value); problem != "" {
		if again, _ := suspicious(p.Kind, fixed); again != "" || !p.matches(fixed) {
			fixed = "" // do not suggest what would be refused again
		}
		return bad(fault.InvalidAgentInput, fixed, "%s %s", p.shown(), problem)
	}
	switch p.Kind {
	case Int:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return bad(fault.ArgError, "", "%s takes a whole number", p.shown())
		}
		if p.Max >= 1<<40 && n < p.Min { // a maximum that says nothing
			return bad(fault.ArgError, "", "%s takes a number of at least %d", p.shown(), p.Min)
		}
		if (p.Min != 0 || p.Max != 0) && (n < p.Min || n > p.Max) {
			return bad(fault.ArgError, "", "%s takes a number from %d to %d", p.shown(), p.Min, p.Max)
		}
	case Bool:
		if _, err := strconv.ParseBool(value); err != nil {
			return bad(fault.ArgError, "", "%s takes true or false%s", p.shown(), p.BoolHint)
		}
	case Duration:
		if _, ok := text.Duration(value); !ok {
			return bad(fault.ArgError, "", "%s takes a duration with a unit, such as 90s or 5m", p.shown())
		}
	case Enum:
		if !slices.Contains(p.Enum, value) {
			if words := p.Also.Refusal(value); words != "" {
				return bad(fault.ArgError, "", "%s has no value %s: elsewhere it means that %s",
					p.shown(), value, words)
			}
			near := text.Nearest(value, p.Enum)
			return bad(fault.ArgError, near, "%s takes one of %s%s%s", p.shown(), strings.Join(p.Enum, ", "),
				p.Also.Listed(), didYouMean(near))
		}
	case URL:
		if !strings.HasPrefix(value, "http://") && !strings.HasPrefix(value, "https://") {
			return bad(fault.ArgError, "", "%s takes an http or https address", p.shown())
		}
	case JSON:
		return p.checkJSON(value, bad)
	}
	if !p.matches(value) && p.Example != "" {
		return bad(fault.ArgError, "", "%s takes a value such as %s", p.shown(), p.Example)
	}
	if !p.matches(value) {
		return bad(fault.ArgError, "", "%s must match %s", p.shown(), p.pattern())
	}
	return nil
}

func (p Param) matches(value string) bool {
	pattern := p.pattern()
	return pattern == "" || value == "" || regexp.MustCompile(pattern).MatchString(value)
}

func (p Param) checkJSON(value string, bad func(fault.Code, string, string, ...any) []fault.Problem) []fault.Problem {
	v, err := literal.ParseJSON5([]byte(value))
	if err != nil {
		fixed, _ := literal.Repair([]byte(value))
		return bad(fault.InvalidJSON, fixed, "%s is not JSON: %v", p.shown(), err)
	}
	if _, object := v.Any().(map[string]any); !object {
		return bad(fault.InvalidJSON, "", "%s must be a JSON object", p.shown())
	}
	return nil
}

func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return "; did you mean " + word + "?"
}
