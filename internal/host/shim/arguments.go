package shim

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
)

// Arguments are a parsed command line.
type Arguments struct {
	Shared      setting.Shared // only what was given; the rest are defaults
	Prompt      *string        // nil: --prompt was not given
	Agent       string
	AgentsDir   *string
	Dir         string         // --cwd
	Timeout     *time.Duration // nil: as configured
	Strict      *bool
	Declined    []setting.Approval // by --yolo=false and the like: not used even if configured
	Report      string
	WithStdin   bool
	Continue    bool
	Resume      string
	Provider    string
	Base        string  // --api-base
	Events      bool    // --output events
	Trace       string  // "", "run" or "only"
	Schema      *string // --output-schema as given
	Retries     *int
	Rehearse    *string // the script's file; empty: the built-in one
	Workspace   bool    // --allow-workspace-agent
	Undo        string  // "", "on" or "off"
	Walls       bool    // run the agent behind our walls
	Help        bool
	Version     bool
	Delimited   bool // there was a "--"
	Passthrough []string
	Given       []string // the arguments before "--", unchanged

	outputFlag   string   // --output as typed, for messages
	approvalFlag string   // --approval as typed
	conflict     []string // two flags for the approval that contradict each other
}

// Parse reads everything up to the first "--"; what follows is for the agent. It stops at the first error.
func Parse(args []string) (Arguments, error) {
	a := Arguments{Shared: setting.Defaults(), Given: args}
	if i := slices.Index(args, "--"); i >= 0 { // as the value of --prompt it must be written --prompt=--
		a.Delimited, a.Passthrough, a.Given = true, args[i+1:], args[:i]
	}
	flags := Flags()
	rest := a.Given
	for len(rest) > 0 {
		used, err := a.one(flags, rest)
		if err != nil {
			return a, err
		}
		rest = rest[used:]
	}
	return a, nil
}

// one parses the flag at the beginning of rest and returns the number of words that it used.
func (a *Arguments) one(flags []Flag, rest []string) (used int, err error) {
	flag, value, attached, err := split(flags, rest[0])
	if err != nil {
		return 0, a.unknown(flags, err)
	}
	if flag == nil {
		return 0, a.positional(rest)
	}
	used = 1
	switch {
	case attached:
	case flag.takes == maybe && len(rest) > 1 && !strings.HasPrefix(rest[1], "-"):
		value, used = rest[1], 2
	case flag.takes == aValue:
		if value, err = next(flags, flag, rest); err != nil {
			return 0, err
		}
		used = 2
	default:
		return used, a.set(flag, "", false)
	}
	return used, a.set(flag, value, true)
}

// next returns the word after a flag that needs a value. After --prompt it may begin with a dash, unless it is exactly
// one of our flags.
func next(flags []Flag, flag *Flag, rest []string) (string, error) {
	written := "--" + flag.Name
	if len(rest) == 1 {
		f := fault.New(fault.MissingArgument, "%s needs a value", written)
		if flag.Name == "prompt" {
			return "", f.Hint(`omniagent -p "what is to be done"`)
		}
		return "", f.Hint("%s", flag.example())
	}
	word := rest[1]
	if !strings.HasPrefix(word, "-") || word == "-" {
		return word, nil
	}
	if flag.Name == "prompt" && !exactly(flags, word) {
		return word, nil
	}
	f := fault.New(fault.MissingArgument, "%s needs a value, and %s begins with a dash", written, printable(word))
	// Their values never begin with a dash: an agent would see a flag.
	names := flag.Name == "resume" || flag.Name == "model"
	if flag.free && !names && !exactly(flags, word) || flag.Name == "prompt" {
		return "", f.Hint("%s=%s, if that is the value", written, printable(word))
	}
	return "", f.Hint("%s", flag.example())
}

// example returns the flag with a valid value.
func (f *Flag) example() string {
	if len(f.Allowed) > 0 {
		return "--" + f.Name + "=" + strings.Join(f.Allowed, ", or --"+f.Name+"=")
	}
	return "--" + f.Name + "=" + f.Value
}

func exactly(flags []Flag, word string) bool {
	return slices.ContainsFunc(flags, func(f Flag) bool {
		return word == "--"+f.Name || f.as != "" && word == "--"+f.as || f.Short != "" &&
			word == "-"+f.Short
	})
}

// split finds the flag that a word begins with. flag is nil for another word. The error is an unknown flag as typed.
func split(flags []Flag, word string) (flag *Flag, value string, attached bool, err error) {
	if word == "-" || !strings.HasPrefix(word, "-") {
		return nil, "", false, nil
	}
	if long, ok := strings.CutPrefix(word, "--"); ok {
		name, value, attached := strings.Cut(long, "=")
		i := slices.IndexFunc(flags, func(f Flag) bool { return f.Name == name || f.as != "" && f.as == name })
		if i < 0 && strings.EqualFold(name, "agents-dir") { // accepted like all the others
			i = slices.IndexFunc(flags, func(f Flag) bool { return f.Name == "agentsDir" })
		}
		if i < 0 {
			return nil, "", false, fault.New(fault.UnknownFlag, "--%s", name)
		}
		return &flags[i], value, attached, nil
	}
	i := slices.IndexFunc(flags, func(f Flag) bool { return f.Short != "" && strings.HasPrefix(word[1:], f.Short) })
	if i < 0 {
		return nil, "", false, fault.New(fault.UnknownFlag, "%s", word)
	}
	value = word[2:]
	if value == "" {
		return &flags[i], "", false, nil
	}
	if flags[i].takes == nothing {
		return nil, "", false, fault.New(fault.UnknownFlag, "%s", word)
	}
	return &flags[i], strings.TrimPrefix(value, "="), true, nil
}

// unknown returns the error for a flag that does not exist. The message of typed is the flag as typed.
func (a *Arguments) unknown(flags []Flag, typed error) error {
	word := typed.Error()
	names := make([]string, 0, len(flags))
	for _, f := range flags {
		names = append(names, "--"+f.Name)
	}
	f := fault.New(fault.UnknownFlag, "there is no flag %s", printable(word)).With("flag", strings.TrimLeft(word, "-"))
	if near := text.Nearest(word, names); near != "" {
		f.Message += "; did you mean " + near + "?"
	}
	f.Ways = []string{"omniagent --help lists the flags"}
	return f.Hint("flags of the agent itself go behind --: omniagent --agent %s -- %s", a.agentTyped(), printable(word))
}

// agentTyped returns the agent that a command line names anywhere, or a word for it.
func (a *Arguments) agentTyped() string {
	for i, arg := range a.Given {
		if name, is := strings.CutPrefix(arg, "--agent="); is {
			return printable(name)
		}
		if arg == "--agent" && i+1 < len(a.Given) {
			return printable(a.Given[i+1])
		}
	}
	return "NAME"
}

// positional returns the error for a word that is not a flag.
func (a *Arguments) positional(rest []string) error {
	word := printable(rest[0])
	f := fault.New(fault.ArgError, "there is no place for %q: a prompt goes behind -p", word).With("word", rest[0])
	before := a.Given[:len(a.Given)-len(rest)]
	_, notSwitch := strconv.ParseBool(rest[0])
	joins := func(flag Flag) bool { // its value must follow an equals sign
		return len(before) > 0 && before[len(before)-1] == "--"+flag.Name &&
			(flag.Optional() || flag.takes != aValue && notSwitch == nil)
	}
	if i := slices.IndexFunc(Flags(), joins); i >= 0 {
		return f.Hint("--%s=%s", Flags()[i].Name, word)
	}
	if a.Prompt != nil {
		return f.Hint("a prompt of several words stands in quotes: -p %q", printable(*a.Prompt)+" "+word)
	}
	line := append([]string{"omniagent"}, before...)
	return f.Hint("%s -p %q", printable(strings.Join(line, " ")), word)
}

func printable(s string) string {
	clean, _ := text.Clean(s)
	if runes := []rune(clean); len(runes) > 80 {
		return string(runes[:40]) + "…" + string(runes[len(runes)-39:]) // the end of a long path says most
	}
	return clean
}

// set sets a flag's value. given is false for a flag without a value.
//
// Long because it is a table.
func (a *Arguments) set(flag *Flag, value string, given bool) error {
	sh := &a.Shared
	var err error
	value = flag.also.Read(value)
	switch flag.Name {
	case "prompt":
		a.Prompt = &value
	case "agent":
		a.Agent = strings.ToLower(strings.TrimSpace(value))
		if a.Agent == "" {
			return fault.New(fault.ArgError, "--agent needs a name").Hint("omniagent agents list")
		}
	case "approval", "permission-mode":
		v, ok := setting.ParseApproval(value)
		if !ok {
			return bad(flag, value, text.Words(setting.Approvals()))
		}
		a.approve(v, "--"+flag.Name+" "+string(v))
	case "auto-edit", "yolo", "read-only":
		v := map[string]setting.Approval{
			"auto-edit": setting.AutoEdit, "yolo": setting.Yolo, "read-only": setting.Plan,
		}[flag.Name]
		err = a.toggle(flag, value, given, func() { a.approves(flag, v) }, func() { a.declines(v) })
	case "sandbox":
		sh.Sandbox, err = choose(flag, value, setting.Sandboxes())
	case "output":
		a.outputFlag, a.Events = "--output", strings.EqualFold(strings.TrimSpace(value), events)
		if a.Events {
			sh.Output = setting.AsTyped(setting.StreamJSON)
			break
		}
		if sh.Output, err = choose(flag, value, setting.Outputs()); err != nil {
			return bad(flag, value, flag.Allowed)
		}
	case "json", "stream-json":
		v := map[string]setting.Output{"json": setting.JSON, "stream-json": setting.StreamJSON}[flag.Name]
		err = a.toggle(flag, value, given,
			func() { a.prints(v, "--"+flag.Name) }, func() { a.prints(setting.Text, "") })
	case "continue", "with-stdin", "walls", "allow-workspace-agent", "help", "version":
		to := map[string]*bool{
			"continue": &a.Continue, "with-stdin": &a.WithStdin, "walls": &a.Walls,
			"allow-workspace-agent": &a.Workspace, "help": &a.Help, "version": &a.Version,
		}[flag.Name]
		err = a.toggle(flag, value, given, func() { *to = true }, func() { *to = false })
	case "resume", "provider", "api-base":
		if value = strings.TrimSpace(value); value == "" {
			return fault.New(fault.ArgError, "--%s is empty", flag.Name).Hint("%s", flag.example())
		}
		*map[string]*string{"resume": &a.Resume, "provider": &a.Provider, "api-base": &a.Base}[flag.Name] = value
	case "model":
		if value == "" {
			return fault.New(fault.ArgError, "--model needs a name").Hint("leave it out for the agent's own choice")
		}
		sh.Model = setting.AsTyped(value)
	case "web":
		on, ok := true, true
		if given {
			on, ok = setting.ParseWeb(value)
		}
		if !ok {
			return bad(flag, value, []string{"on", "off", "true", "false", "1", "0"})
		}
		sh.Web = setting.AsTyped(on)
	case "output-schema":
		a.Schema = &value
	case "output-schema-retries":
		n, e := strconv.Atoi(value)
		if e != nil || n < 0 || n > 10 {
			return fault.New(fault.ArgError, "--output-schema-retries is %q, and must be a whole number from 0 to 10",
				printable(value)).Hint("--output-schema-retries=2")
		}
		a.Retries = &n
	case "cwd":
		a.Dir = value
		if value == "" {
			return fault.New(fault.ArgError, "--cwd needs a directory").Hint("leave it out for the current one")
		}
	case "timeout":
		err = a.timeout(value)
	case "agentsDir":
		a.AgentsDir = &value
	case "strict":
		err = a.toggle(flag, value, given, func() { a.Strict = new(true) }, func() { a.Strict = new(false) })
	case "report":
		a.Report = value
		if value == "" {
			return fault.New(fault.ArgError, "--report needs a file").Hint("--report=run.json")
		}
	case "trace-translate":
		err = a.trace(flag, value, given)
	case "rehearse":
		if given && value == "" {
			return fault.New(fault.ArgError, "--rehearse= needs a file").
				Hint("--rehearse alone answers every prompt with ok")
		}
		a.Rehearse = &value
	case "undo":
		word, ok := setting.Parse(value, flag.Allowed)
		if !ok {
			return bad(flag, value, flag.Allowed)
		}
		a.Undo = word
	}
	return err
}

func choose[T ~string](flag *Flag, value string, allowed []T) (setting.Chosen[T], error) {
	v, ok := setting.Parse(value, allowed)
	if !ok {
		return setting.Chosen[T]{}, bad(flag, value, text.Words(allowed))
	}
	return setting.AsTyped(v), nil
}

func bad(flag *Flag, value string, allowed []string) error {
	if words := flag.also.Refusal(value); words != "" {
		return fault.New(fault.ArgError, "--%s has no value %s: elsewhere it means that %s",
			flag.Name, printable(value), words).Hint("its values are %s", strings.Join(allowed, ", "))
	}
	f := fault.New(fault.ArgError, "--%s is %q, and must be one of %s%s", flag.Name, printable(value),
		strings.Join(allowed, ", "), flag.also.Listed())
	if near := text.Nearest(strings.ToLower(value), allowed); near != "" {
		return f.Hint("--%s=%s", flag.Name, near)
	}
	return f.Hint("--%s=%s", flag.Name, cmp.Or(flag.Default, allowed[0]))
}

// approves handles --yolo, --auto-edit or --read-only.
func (a *Arguments) approves(flag *Flag, v setting.Approval) {
	a.approve(v, "--"+flag.Name)
	a.Declined = slices.DeleteFunc(a.Declined, func(d setting.Approval) bool { return d == v })
}

// approve sets an approval. It records contradicting flags for compatible, unless the first was declined.
func (a *Arguments) approve(v setting.Approval, flag string) {
	if now := a.Shared.Approval; now.Typed() && now.Value != v && a.conflict == nil {
		a.conflict = []string{a.approvalFlag, flag}
	}
	a.Shared.Approval, a.approvalFlag = setting.AsTyped(v), flag
}

// declines handles --yolo=false or --auto-edit=false, which override earlier flags and the configuration.
func (a *Arguments) declines(v setting.Approval) {
	if a.Shared.Approval.Value == v {
		a.Shared.Approval = setting.Defaults().Approval
	}
	a.Declined = append(a.Declined, v)
}

func (a *Arguments) prints(v setting.Output, flag string) {
	a.Shared.Output, a.outputFlag, a.Events = setting.AsTyped(v), flag, false
}

// toggle handles a switch that may be set to false.
func (a *Arguments) toggle(flag *Flag, value string, given bool, do, undo func()) error {
	on := true
	if given {
		var ok bool
		if on, ok = setting.ParseWeb(value); !ok {
			return bad(flag, value, []string{"true", "false"})
		}
	}
	if on {
		do()
	} else {
		undo()
	}
	return nil
}

func (a *Arguments) trace(flag *Flag, value string, given bool) error {
	if given && strings.EqualFold(value, "only") {
		a.Trace = "only"
		return nil
	}
	if _, ok := setting.ParseWeb(value); given && !ok {
		return bad(flag, value, []string{"only", "true", "false"})
	}
	return a.toggle(flag, value, given, func() { a.Trace = "run" }, func() { a.Trace = "" })
}

func (a *Arguments) timeout(value string) error {
	d, ok := text.Duration(value)
	if !ok || d < 0 {
		return fault.New(fault.ArgError, "--timeout is %q, and must be a duration with its unit", printable(value)).
			Hint("--timeout=90s, --timeout=15m; 0s for none")
	}
	a.Timeout = &d
	return nil
}

// compatible returns an error for flags that exclude each other.
func (a Arguments) compatible(mode setting.Mode) error {
	switch {
	case a.Delimited && a.Agent == "":
		return fault.New(fault.ArgError, "-- needs --agent: what follows is in one agent's own words").
			Hint("omniagent --agent NAME -- %s",
				printable(strings.Join(a.Passthrough, " ")))
	case a.conflict != nil:
		return fault.New(fault.ArgError, "%s and %s cannot be combined", a.conflict[0], a.conflict[1]).
			Hint("leave one of them out")
	case a.Continue && a.Resume != "":
		return fault.New(fault.ArgError, "--continue and --resume cannot be combined").Hint("leave one of them out")
	case a.WithStdin && a.Prompt == nil:
		return fault.New(fault.ArgError, "--with-stdin needs -p: without it the pipe is the prompt").
			Hint(`omniagent -p "review this" --with-stdin`)
	case a.Events && mode != setting.OneShot:
		return fault.New(fault.ArgError, "--output events needs a prompt").Hint(`omniagent -p "…" --output events`)
	case a.Schema != nil && a.outputFlag != "":
		return fault.New(fault.ArgError,
			"--output-schema and %s exclude each other: the schema decides what is printed",
			a.outputFlag).Hint("leave %s out", a.outputFlag)
	case a.Schema == nil && a.Retries != nil:
		return fault.New(fault.ArgError, "--output-schema-retries needs --output-schema").Hint("--output-schema=FILE")
	case a.Schema != nil && mode != setting.OneShot:
		return fault.New(fault.ArgError, "--output-schema needs a prompt: it is for one answer").
			Hint(`omniagent -p "…" --output-schema FILE`)
	}
	return nil
}
