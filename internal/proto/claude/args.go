package claude

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// takes says which arguments follow a flag.
type takes uint8

const (
	nothing takes = iota
	one           // a value
	maybe         // an optional value: after an equals sign, or the next argument if it is not a flag
	several       // every argument up to the next flag
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
	Names []string // as they are typed, with dashes
	Fate  Fate
	Note  string // how it is handled, for the docs and for warnings

	takes takes
	to    string              // our flag with the same meaning; empty if we have no such flag
	value func(string) string // converts the value for that flag; may be nil
}

// Flags returns the table. A flag that is neither in it nor one of ours is refused, because it may be a limit.
//
// Long because it is a table.
func Flags() []Flag {
	list := func(fate Fate, t takes, note string, names ...string) (all []Flag) {
		for _, n := range names {
			all = append(all, Flag{Names: []string{n}, Fate: fate, Note: note, takes: t})
		}
		return all
	}
	honoured := func(t takes, to, note string, names ...string) Flag {
		return Flag{Names: names, Fate: Honoured, Note: note, takes: t, to: to}
	}
	constant := func(f Flag, value string) Flag {
		f.value = func(string) string { return value }
		return f
	}
	all := []Flag{
		honoured(nothing, "", "a program's calls never have another form", "-p", "--print"),
		honoured(nothing, "", "the stream is always whole", "--verbose"),
		honoured(one, "output-format", "`text` unless told otherwise, as with Claude Code", "--output-format"),
		honoured(one, "input-format", "`text` unless told otherwise", "--input-format"),
		honoured(one, "max-turns", "", "--max-turns"),
		honoured(one, "max-budget-usd", "", "--max-budget-usd"),
		honoured(one, "model", "a full name; what it is called with goes to the model's API", "--model"),
		honoured(one, "permission-mode", "see the modes", "--permission-mode"),
		constant(honoured(nothing, "permission-mode", "as `bypassPermissions`", "--dangerously-skip-permissions"),
			"auto"),
		honoured(nothing, "allow-bypass", "`set_permission_mode` may say `bypassPermissions`",
			"--allow-dangerously-skip-permissions"),
		constant(honoured(one, "questions", "`stdio` only", "--permission-prompt-tool"), "host"),
		honoured(one, "questions", "`host` or `none`", "--permission-prompts"),
		honoured(several, "allowed-tools",
			"rules, separated by commas or spaces; a name of a tool that is not here allows nothing", "--allowedTools",
			"--allowed-tools"),
		honoured(several, "disallowed-tools", "rules, separated by commas or spaces", "--disallowedTools",
			"--disallowed-tools"),
		honoured(several, "tools", "`default` is all, an empty value none", "--tools"),
		honoured(maybe, "resume", "an id", "--resume", "-r"),
		honoured(nothing, "continue", "", "--continue", "-c"),
		honoured(nothing, "fork-session", "", "--fork-session"),
		honoured(one, "session-id", "a UUID", "--session-id"),
		honoured(one, "system-prompt", "", "--system-prompt"),
		honoured(one, "append-system-prompt", "", "--append-system-prompt"),
		honoured(one, "system-prompt-file", "", "--system-prompt-file"),
		honoured(one, "append-system-prompt-file", "", "--append-system-prompt-file"),
		honoured(several, "mcp-config", "JSON, or a file with it", "--mcp-config"),
		honoured(nothing, "strict-mcp-config", "", "--strict-mcp-config"),
		honoured(several, "add-dir", "", "--add-dir"),
		honoured(one, "json-schema", "", "--json-schema"),
		honoured(nothing, "include-partial-messages", "", "--include-partial-messages"),
		honoured(nothing, "replay-user-messages", "", "--replay-user-messages"),
		honoured(nothing, "no-session-persistence", "", "--no-session-persistence"),
		honoured(one, "agents", "JSON, or a file with it", "--agents"),
		honoured(one, "settings",
			"JSON, or a file with it: its permissions, sandbox and model; what else limits is refused", "--settings"),
		honoured(one, "setting-sources",
			"of the files of `user`, `project` and `local` what they deny and ask about, and nothing that they allow",
			"--setting-sources"),
		honoured(nothing, "", "`initialize` is always waited for", "--await-initialize"),
		honoured(one, "", "what stands there is read where it stands", "--initialize-fields"),
	}
	all = append(all, list(Ignored, one, "", "--effort", "--fallback-model", "--thinking", "--thinking-display",
		"--max-thinking-tokens", "--debug-file", "--name", "-n", "--system-prompt-snapshot", "--autocompact")...)
	all = append(all, list(Ignored, maybe, "", "--debug", "-d", "--prompt-suggestions")...)
	all = append(all, list(Ignored, several, "", "--betas")...)
	all = append(all, list(Ignored, nothing, "", "--debug-to-stderr", "--include-hook-events",
		"--forward-subagent-text", "--session-mirror", "--ax-screen-reader", "--disable-slash-commands", "--no-chrome",
		"--exclude-dynamic-system-prompt-sections", "--brief")...)
	all = append(all, list(Refused, one, "it limits what the turn may use, by something that is not counted here",
		"--task-budget")...)
	all = append(all, list(Refused, one, "a conversation cannot be resumed at a message", "--resume-session-at",
		"--resume-drops-turn")...)
	all = append(all, list(Refused, one, "what an organisation sets would not be kept", "--managed-settings")...)
	all = append(all, list(Refused, nothing, "what it limits would not be kept", "--managed-settings-in-initialize",
		"--restricted", "--safe-mode", "--bare")...)
	all = append(all, list(Refused, one, "there are no plugins here, and what one forbids would not be kept",
		"--plugin-dir", "--plugin-dir-no-mcp", "--plugin-url")...)
	all = append(all, list(Refused, one, "there is nothing like it here", "--project-config-root", "--channels",
		"--sdk-url", "--environment", "--file")...)
	return append(all, list(Refused, maybe, "there is nothing like it here", "--worktree", "-w", "--tmux", "--teleport",
		"--from-pr", "--cloud", "--remote-control", "--bg", "--background", "--ide", "--chrome", "--desktop")...)
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
		for _, n := range f.Names {
			t.flags[n] = f
		}
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
				return fmt.Errorf("%s is refused: it is unknown here, and may be a limit", clipped(name))
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
		return nil, fmt.Errorf("%s takes no value", f.Names[0])
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
			return nil, fmt.Errorf("%s needs a value", f.Names[0])
		}
		return rest[:n], nil
	case len(rest) == 0 || flag(rest[0]) && f.takes == maybe:
		if f.takes == maybe {
			return nil, nil
		}
		return nil, fmt.Errorf("%s needs a value", f.Names[0])
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
		return fmt.Errorf("%s is refused: %s", name, f.Note)
	case f.to == "":
		return nil
	case f.takes == nothing && f.value == nil:
		t.set(f.to, "true")
		return nil
	case f.takes == nothing: // a named mode takes precedence
		t.set("allow-bypass", "true")
		if t.given[f.to] == "" {
			t.set(f.to, f.value(""))
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
