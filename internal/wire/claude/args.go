package claude

import (
	_ "embed" // the table of flags
	"fmt"
	"maps"
	"slices"
	"strings"
)

// takes says which arguments follow a flag.
type takes string

const (
	nothing takes = "nothing"
	one     takes = "one"     // a value
	maybe   takes = "maybe"   // an optional value: after an equals sign, or the next argument if it is not a flag
	several takes = "several" // every argument up to the next flag
)

// Fate is how a flag of Claude Code is handled.
type Fate string

// The fates.
const (
	Honoured Fate = "honoured"
	Refused  Fate = "refused"
	Ignored  Fate = "ignored"
)

// Flag is one of Claude Code's flags.
type Flag struct {
	Name   string // as it is typed, with dashes
	Fate   Fate
	Reason string // why it is refused

	takes takes
	to    string // our flag with the same meaning; empty if we have no such flag
	value string // what that flag gets, if it is always the same
}

//go:embed flags.txt
var flags string

// Flags returns the table. A flag that is neither in it nor one of ours is refused, because it may be a limit.
func Flags() (all []Flag) {
	for line := range strings.Lines(flags) {
		head, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if head[0] == '#' {
			continue
		}
		names, reason, _ := strings.Cut(rest, ": ")
		words := strings.Fields(head)
		to, value, _ := strings.Cut(words[2], "=")
		for name := range strings.FieldsSeq(names) {
			f := Flag{name, Fate(words[0]), reason, takes(words[1]), to, value}
			switch to {
			case "same":
				f.to = strings.TrimPrefix(name, "--")
			case "-":
				f.to = ""
			}
			all = append(all, f)
		}
	}
	return all
}

// Speaks reports whether a command line is in this dialect.
func Speaks(argv []string) bool {
	for i, arg := range argv {
		if arg == "--" {
			return false
		}
		if arg == "--dialect=claude" || arg == "--dialect" && i+1 < len(argv) && argv[i+1] == "claude" {
			return true
		}
	}
	return false
}

// Args translates Claude Code's command line to ours. knows reports whether the command has another flag, and whether a
// value follows it. Ignored flags have no effect here. The error names the refused flag and the reason.
func Args(argv []string, knows func(flag string) (known, value bool)) (args, ignored []string, err error) {
	t := translation{flags: map[string]Flag{}, knows: knows}
	for _, f := range Flags() {
		t.flags[f.Name] = f
	}
	if err := t.read(argv); err != nil {
		return nil, nil, err
	}
	return t.finish()
}

type translation struct {
	flags  map[string]Flag
	knows  func(flag string) (known, value bool)
	out    []string
	given  map[string]string // our flags, with their last values
	prompt []string
	agents int
	passed []string // ignored
}

func (t *translation) read(argv []string) error {
	t.given = map[string]string{}
	for i := 0; i < len(argv); i++ {
		arg := argv[i]
		if arg == "--" {
			t.prompt = append(t.prompt, argv[i+1:]...)
			return nil
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			t.prompt = append(t.prompt, arg)
			continue
		}
		name, value, joined := strings.Cut(arg, "=")
		if !strings.HasPrefix(arg, "--") && len(arg) > 2 { // -rID
			name, value, joined = arg[:2], arg[2:], true
		}
		next := func() (string, bool) {
			if joined || i+1 >= len(argv) {
				return value, joined
			}
			i++
			return argv[i], true
		}
		if name == "--agent" {
			v, ok := next()
			if err := t.agent(v, ok); err != nil {
				return err
			}
			continue
		}
		f, known := t.flags[name]
		if !known {
			ours, value := t.knows(name)
			if !ours {
				return fmt.Errorf("%s is refused: neither Claude Code nor start has it, and it may be a limit",
					clipped(name))
			}
			t.out = append(t.out, arg)
			if value && !joined && i+1 < len(argv) {
				i++
				t.out = append(t.out, argv[i])
			}
			continue
		}
		values, err := f.values(joined, value, argv[i+1:])
		if err != nil {
			return err
		}
		if !joined {
			i += len(values)
		}
		if err := t.take(name, f, values); err != nil {
			return err
		}
	}
	return nil
}

// values returns the values of a flag.
func (f Flag) values(joined bool, value string, rest []string) ([]string, error) {
	flag := func(s string) bool { return strings.HasPrefix(s, "-") && s != "-" }
	switch {
	case f.takes == nothing && joined:
		return nil, fmt.Errorf("%s takes no value", f.Name)
	case f.takes == nothing:
		return nil, nil
	case joined:
		return []string{value}, nil
	case f.takes == several:
		n := slices.IndexFunc(rest, flag)
		if n < 0 {
			n = len(rest)
		}
		if n == 0 {
			return nil, fmt.Errorf("%s needs a value", f.Name)
		}
		return rest[:n], nil
	case len(rest) == 0 || flag(rest[0]) && f.takes == maybe:
		if f.takes == maybe {
			return nil, nil
		}
		return nil, fmt.Errorf("%s needs a value", f.Name)
	}
	return rest[:1], nil
}

// agent distinguishes our flag --agent from Claude Code's. Ours chooses the agent, and takes precedence.
func (t *translation) agent(value string, given bool) error {
	if !given {
		return fmt.Errorf("--agent needs a value")
	}
	if t.agents++; t.agents > 1 {
		return fmt.Errorf(
			"--agent %s is refused: the conversation itself has no other agent here, and what that one may not do "+
				"would not be kept", value)
	}
	t.out = append(t.out, "--agent="+value)
	return nil
}

// take translates one flag.
func (t *translation) take(name string, f Flag, values []string) error {
	switch {
	case f.Fate == Ignored:
		t.passed = append(t.passed, name)
		return nil
	case f.Fate == Refused:
		return fmt.Errorf("%s is refused: %s", name, f.Reason)
	case f.to == "":
		return nil
	case f.takes == nothing && f.value == "":
		t.set(f.to, "true")
		return nil
	case f.takes == nothing: // a named mode takes precedence
		t.set("allow-bypass", "true")
		if t.given[f.to] == "" {
			t.set(f.to, f.value)
		}
		return nil
	case f.takes == maybe && (len(values) == 0 || values[0] == ""):
		return fmt.Errorf("%s needs the id of a session", name)
	}
	return t.named(name, f, values)
}

// named translates a flag with values.
func (t *translation) named(name string, f Flag, values []string) error {
	switch f.to {
	case "permission-mode":
		m, why := ModeOf(values[0])
		if why != "" {
			return fmt.Errorf("%s %s is refused: %s", name, clipped(values[0]), why)
		}
		t.set(f.to, m.Flag)
	case "questions":
		if name == "--permission-prompt-tool" {
			if values[0] != "stdio" {
				return fmt.Errorf("%s %s is refused: only stdio is supported here", name, clipped(values[0]))
			}
			if t.given[f.to] != "none" { // if questions are turned off, they stay off
				t.set(f.to, "host")
			}
			return nil
		}
		if values[0] != "host" && values[0] != "none" {
			return fmt.Errorf("%s must be host or none", name)
		}
		if values[0] == "none" {
			t.set(f.to, "none")
		}
	case "allowed-tools", "disallowed-tools", "tools":
		if f.to == "tools" && len(values) == 1 {
			switch values[0] {
			case "":
				t.out = append(t.out, "--tools=")
				return nil
			case "default":
				return nil
			}
		}
		for _, v := range values {
			for _, rule := range splitRules(v) {
				t.out = append(t.out, "--"+f.to+"="+rule)
			}
		}
	case "mcp-config", "add-dir":
		for _, v := range values {
			t.out = append(t.out, "--"+f.to+"="+v)
		}
	case "append-system-prompt", "system-prompt": // an empty one counts as missing
		if values[0] != "" {
			t.set(f.to, values[0])
		}
	case "setting-sources":
		for source := range strings.SplitSeq(values[0], ",") {
			if source = strings.TrimSpace(source); source != "" {
				t.out = append(t.out, "--setting-sources="+source)
			}
		}
	case "max-turns", "max-budget-usd", "settings", "json-schema":
		return t.once(name, f, values[0])
	default:
		t.set(f.to, values[0])
	}
	return nil
}

// once sets a limit. It refuses a second one, because one of them would be lost.
func (t *translation) once(name string, f Flag, value string) error {
	if before, given := t.given[f.to]; given && before != value {
		return fmt.Errorf("%s is refused: it is given twice, and only one would be kept", name)
	}
	if strings.HasPrefix(f.to, "max-") && strings.Trim(value, "0.") == "" {
		return fmt.Errorf("%s %s is refused: nothing would be left to run", name, clipped(value))
	}
	t.set(f.to, value)
	return nil
}

// set sets a flag. The last value counts.
func (t *translation) set(name, value string) { t.given[name] = value }

func (t *translation) finish() (args, ignored []string, err error) {
	if _, given := t.given["output-format"]; !given {
		t.set("output-format", "text")
	}
	if _, given := t.given["input-format"]; !given {
		t.set("input-format", "text")
	}
	if t.given["questions"] == "" {
		t.set("questions", "none")
	}
	if t.given["permission-mode"] == "auto" {
		t.set("allow-bypass", "true")
	}
	if t.given["input-format"] == "stream-json" && len(t.prompt) > 0 {
		return nil, nil,
			fmt.Errorf("with --input-format stream-json the messages come on standard input, and %q is one too many",
				clipped(t.prompt[0]))
	}
	if len(t.prompt) > 1 {
		return nil, nil, fmt.Errorf("%q is one argument too many: the message is a single one", clipped(t.prompt[1]))
	}
	for _, name := range slices.Sorted(maps.Keys(t.given)) {
		t.out = append(t.out, "--"+name+"="+t.given[name])
	}
	if len(t.prompt) == 1 {
		t.out = append(t.out, "--prompt="+t.prompt[0])
	}
	return t.out, t.passed, nil
}

// splitRules splits a list of rules at commas and spaces outside brackets.
func splitRules(list string) (rules []string) {
	depth, begin := 0, 0
	cut := func(end int) {
		if rule := strings.TrimSpace(list[begin:end]); rule != "" {
			rules = append(rules, rule)
		}
		begin = end + 1
	}
	for i := range len(list) {
		switch c := list[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth = max(depth-1, 0)
		case depth == 0 && (c == ',' || c == ' '):
			cut(i)
		}
	}
	cut(len(list))
	return rules
}
