package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A program can read the description of a command without running it. The manifest is short, because models pay for
// every byte of it; --schema is complete.

// describe answers --schema, --output-schema and --show-requirements.
func (c *Call) describe() (answer, bool) {
	switch {
	case c.Bool("schema"):
		entry := c.Program.entry(c.Command, true)
		return answer{pure: true, data: append(entry, c.Program.extension(c.Command)...)}, true
	case c.Bool("output-schema"):
		return answer{pure: true, data: schemaOf(c.Command.Output)}, true
	case c.Bool("show-requirements"):
		return answer{pure: true, data: c.Program.requirements(c.Command)}, true
	}
	return answer{}, false
}

// describes reports whether the answer is about the command: then it has no rows and does not stream.
func (c *Call) describes() bool {
	return c.Bool("help") || c.Bool("schema") || c.Bool("output-schema") || c.Bool("show-requirements") ||
		c.Bool("validate-only")
}

// Manifest returns the whole command tree, and the members of meta that belong to it. Flags and exit codes that all
// commands share occur once, in the entry of the program; those that some share, in meta. The etag counts them too.
func (p *Program) Manifest() (data any, meta map[string]any, etag string) {
	whole, etag := p.manifest(false)
	commands, _ := whole.get("commands")
	meta = p.manifestMeta()
	meta["groups"] = takeAlike(commands.(object)[1:])
	return whole, meta, etag
}

func (p *Program) manifest(whole bool) (object, string) {
	commands := object{{p.Name, p.rootEntry(whole)}}
	for _, c := range p.All() {
		commands = append(commands, member{c.Key(), p.entry(c, whole)})
	}
	for _, group := range slices.Sorted(maps.Keys(p.Groups)) {
		commands = append(commands, member{strings.ReplaceAll(group, " ", "."), p.groupEntry(group)})
	}
	slices.SortStableFunc(commands[1:], func(a, b member) int { return strings.Compare(a.name, b.name) })
	sum := sha256.Sum256(appendJSON(nil, commands))
	etag := "sha256:" + hex.EncodeToString(sum[:8])
	return object{{"schema_version", "1.0"}, {"framework_version", p.Version}, {"etag", etag}, {"commands", commands}},
		etag
}

// manifestMeta returns what belongs to the manifest but has no place in its schema. It leaves out the variables that
// set keys of App.Keys; the member keys names the command that lists those.
func (p *Program) manifestMeta() map[string]any {
	ours := slices.DeleteFunc(p.variables(), func(v Variable) bool {
		return v.own || !strings.HasPrefix(v.Name, prefix)
	})
	return map[string]any{"shared": p.Name, "environment": ours, "keys": p.Name + " help environment"}
}

func (p *Program) wholeSchema() answer {
	data, _ := p.manifest(true)
	ext := object{}
	for _, c := range p.All() {
		ext = append(ext, member{c.Key(), p.extension(c)})
	}
	return answer{pure: true, data: data, meta: object{
		{"environment", (&walker{unmask: true}).tree(p.variables())},
		{"command_ext", ext},
	}}
}

func (p *Program) rootEntry(whole bool) object {
	root := p.rootCommand()
	flags := p.directFlags()
	for _, param := range slices.Concat(root.Params, p.sharedUsed()) {
		if known, ok := flags.get(param.Name); ok { // it has one meaning without a command and one with it
			flags.set(param.Name, merged(known.(object), param))
			continue
		}
		flags = append(flags, member{param.Name, param.entry()})
	}
	children := []any{}
	for _, c := range p.All() {
		first, _, _ := strings.Cut(c.Path, " ")
		if !slices.Contains(children, any(first)) {
			children = append(children, first)
		}
	}
	danger := Safe
	if p.Direct != nil { // a call without a command starts an agent
		danger = Mutating
	}
	return object{
		{"description", p.Summary},
		{"danger_level", string(danger)},
		{"flags", flags},
		{"exit_codes", p.withDirect(p.exitTree(root, whole))},
		{"subcommands", children},
	}
}

func (p *Program) directFlags() object {
	flags := object{}
	if p.Direct == nil {
		return flags
	}
	for _, param := range p.Direct().Params {
		flags = append(flags, member{param.Name, param.entry()})
	}
	return flags
}

// merged returns a flag that has different meanings with and without a command.
func merged(direct object, shared Param) object {
	own, _ := direct.get("description")
	description := own.(string) + "; a command: " + shared.brief()
	if own == shared.brief() {
		description = shared.brief()
	}
	out := object{{"type", shared.wireType()}, {"required", false}, {"description", description}}
	if was, _ := direct.get("type"); was != shared.wireType() {
		out[0].value = "string"
	} else if values, ok := direct.get("enum_values"); ok {
		all := slices.Clone(values.([]any))
		for _, v := range shared.Enum {
			if !slices.Contains(all, any(v)) {
				all = append(all, v)
			}
		}
		out = append(out, member{"enum_values", all})
	}
	if short, ok := direct.get("short"); ok {
		out = append(out, member{"short", short})
	}
	return out
}

// withDirect adds the exit codes of a call without a command to those that the commands share.
func (p *Program) withDirect(exits object) object {
	if p.Direct == nil {
		return exits
	}
	for _, e := range p.Direct().Exits {
		entry := exitEntry{Name: e.Name, Description: e.When, SideEffects: Extent(e.Effect)}
		if known, ok := exits.get(e.Number); ok {
			description, _ := known.(object).get("description")
			entry.Description = e.When + "; a command: " + description.(string)
			if len(e.Number) == 3 { // signals have the same meaning
				entry.Description = description.(string)
			}
			exits.set(e.Number, (&walker{}).tree(entry))
			continue
		}
		exits = append(exits, member{e.Number, (&walker{}).tree(entry)})
	}
	slices.SortStableFunc(exits, func(a, b member) int { return byNumber(a.name, b.name) })
	return exits
}

func (p *Program) groupEntry(group string) object {
	children := []any{}
	for _, c := range p.All() {
		if strings.HasPrefix(c.Path, group+" ") {
			children = append(children, c.Key())
		}
	}
	return object{
		{"description", p.Groups[group]},
		{"danger_level", string(Safe)},
		{"flags", object{}},
		{
			"exit_codes",
			object{{"0", (&walker{}).tree(exitEntry{Description: "its commands are listed", SideEffects: None})}},
		},
		{"subcommands", children},
	}
}

// entry returns a command's entry in the manifest. The whole entry also has the shared flags and exit codes, the names
// of the codes, the full schema of the data and all examples.
func (p *Program) entry(c *Command, whole bool) object {
	flags := object{}
	for _, param := range c.allParams() {
		flags = flags.when(whole || !param.Global, param.Name, param.entry())
	}
	o := object{
		{"description", c.Summary},
		{"danger_level", string(c.Danger)},
		{"flags", flags},
		{"exit_codes", p.exitTree(c, whole)},
	}
	if c.Output != nil {
		schema := schemaOf(c.Output)
		if !whole {
			schema = outline(schema)
		}
		o = append(o, member{"output_schema", schema})
	}
	examples := c.Examples
	if !whole {
		examples = examples[:1]
		if c.Stdin == nil && !slices.ContainsFunc(c.Params, func(p Param) bool { return p.Required }) {
			return o // the example would say no more than the name
		}
	}
	return append(o, member{"examples", (&walker{unmask: true}).tree(examples)})
}

// exitTree returns the exit codes of a command. The short form leaves out those that are in the entry of the program,
// unless the command declares them itself or differs in whether to retry.
func (p *Program) exitTree(c *Command, whole bool) object {
	all, shared, o := c.exits(), p.rootCommand().exits(), object{}
	for _, n := range exitOrder(all) {
		own := slices.ContainsFunc(c.Exits, func(e Exit) bool { return string(e.Code) == all[n].Name })
		same, found := shared[n]
		clock := all[n].Name == string(TimedOut)
		if whole || own || c.Path == "" || !found || same.Retryable != all[n].Retryable && !clock {
			e := all[n]
			if !whole && c.Path == "" && clock { // for all commands that do not declare it
				e.Description += "; a safe command may be repeated"
				e.Retryable, e.SideEffects = false, Some
			}
			if !whole {
				e.Name = "" // the number is the key
			}
			o = append(o, member{n, (&walker{}).tree(e)})
		}
	}
	return o
}

// outline reduces a schema to the names of its members. --output-schema has the rest.
func outline(schema object) object {
	properties, ok := schema.get("properties")
	if !ok {
		return object{{"type", "object"}}
	}
	always, _ := schema.get("required")
	required, optional := []any{}, object{}
	for _, m := range properties.(object) {
		if list, _ := always.([]any); slices.Contains(list, any(m.name)) {
			required = append(required, m.name)
		} else {
			optional = append(optional, member{m.name, object{}})
		}
	}
	return object{{"required", required}}.when(len(optional) > 0, "properties", optional)
}

func (p Param) entry() object {
	o := object{{"type", p.wireType()}, {"required", p.Required}, {"description", p.brief()}}
	o = o.when(p.Default != "", "default", p.defaultValue())
	o = o.when(p.Kind == Enum, "enum_values", names(p.Enum)) // for a list, the values of each element
	return o.when(p.Short != "", "short", p.Short)
}

func (p Param) brief() string {
	text := p.Help
	if p.Position > 0 {
		text += "; also argument " + itoa(p.Position)
	}
	if p.pattern() != "" && p.Pattern != "" {
		text += "; matches " + p.Pattern
	}
	return text
}

func (p Param) defaultValue() any {
	switch p.Kind {
	case Int:
		return json.Number(p.Default)
	case Bool:
		return p.Default == "true"
	}
	return p.Default
}

// extension returns the members of --schema that the manifest does not have. Most of them are there even if they are
// empty, so that readers need not ask.
func (p *Program) extension(c *Command) object {
	w := &walker{unmask: true}
	limit := c.Timeout
	switch {
	case !c.Class.enveloped(), c.Dispatches: // it has its own time limits, with its own flags
		limit = 0
	case limit == 0:
		limit = defaultTimeout
	}
	o := object{
		{"parameters", p.parameters(c)},
		{"required_scopes", names(c.Scopes)},
		{"requires_auth", c.Auth != nil || len(c.Scopes) > 0},
		{"output_class", c.Class.wire()},
		{"read_only", c.Danger == Safe},
		{"reversible", c.Reversible},
		{"interactive", c.Interactive},
		{"requires_interactive", false},
		{"requires_editor", false},
		{"gui_operations", []any{}},
		{"has_network_io", c.Network != nil},
		{"async", c.Job != nil},
		{"spawns_background_process", c.Background != nil},
		{"cancellable", true},
		{"cancel_signal", "SIGTERM"},
		{"cancel_grace_period_ms", number(handlerGrace.Milliseconds())},
		{"timeout_ms", number(limit.Milliseconds())},
		{"max_output_bytes", json.Number("1048576")},
		{"contract_version", c.Version},
		{"schema_version", "1"},
		{"min_schema_version", "1"},
		{"stability", "stable"},
		{"supports_streaming", c.Class.streams()},
		{"streaming_default", false},
		{"prints", c.Class == Printout},
		{"safe_default", c.SafeDefault},
		{"requires_confirmation", c.confirms()},
		{"option_placement", "any"},
		{"filesystem_side_effects", w.tree(c.Files)},
		{"requires", w.tree(c.Rules)},
		{"arg_groups", argGroups(c)},
		{"volatile_fields", names(c.Volatile)},
		{"subprocess", w.tree(c.Children)},
		{"docs_url", "docs/commands.md#" + strings.ReplaceAll(c.Path, " ", "-")},
	}
	o = o.when(c.Danger != Safe && !c.Dispatches, "raw_payload_schema", payloadSchema(c))
	if len(c.Steps) > 0 {
		o = append(o, object{
			{"steps", names(c.Steps)},
			{"resumable", true},
		}...)
	}
	if c.Stdin != nil {
		o = append(o, member{"stdin_input", object{
			{"format", c.Stdin.Format},
			{"required", c.Stdin.Required},
			{"max_bytes", json.Number("65536")},
			{"file_flag", "--input-file"},
			{"non_tty_behavior", "read"},
		}})
	}
	return append(append(o, p.rareExtension(c)...), p.requirements(c)...)
}

// rareExtension returns declarations that few commands have.
func (p *Program) rareExtension(c *Command) object {
	o := object{}
	o = o.when(c.ConfigScope != "", "config_write_scope", c.ConfigScope)
	if c.Auth != nil {
		o = append(o, member{"headless_supported", c.Auth.HeadlessSupported},
			member{"token_env_vars", names(c.Auth.TokenEnv)})
	}
	if c.Job != nil {
		o = append(o, member{"job_descriptor_schema", schemaOf(c.Job.Descriptor)})
	}
	if b := c.Background; b != nil {
		o = append(o, member{"cleanup_command", b.CleanupCommand},
			member{"max_lifetime_seconds", shortest(b.MaxLifetime.Seconds(), 64)})
	}
	if n := c.Network; n != nil {
		o = append(o, member{"network_timeout_ms", number(n.Timeout.Milliseconds())},
			member{"connect_timeout_ms", number(n.Connect.Milliseconds())})
	}
	return o
}

// requirements returns what the command needs from the machine.
func (p *Program) requirements(c *Command) object {
	return object{
		{"platform", names([]string{"darwin", "linux", "windows"})},
		{"required_tools", (&walker{}).tree(c.Tools)},
		{"runtime", "none: one static binary"},
	}
}

// parameters returns the flags with everything that is checked.
func (p *Program) parameters(c *Command) object {
	o := object{}
	for _, param := range c.allParams() {
		e := param.entry()
		e = e.when(param.pattern() != "", "pattern", param.pattern())
		if param.patternType() != "" {
			e = append(e, member{"pattern_type", param.patternType()}, member{"agent_hardening", true})
		}
		long := !slices.Contains([]Kind{Bool, Enum, Int}, param.Kind)
		e = e.when(long, "max_length", number(param.maxLen()))
		if param.Position > 0 {
			e = append(e, member{"position", number(param.Position)}, member{"nargs", nargs(param)})
		}
		e = e.when(param.Optional, "nargs", "?")
		e = e.when(param.Kind == File, "glob_pattern", false)
		e = e.when(param.Stdin, "stdin_fallback", true)
		e = e.when(param.Sensitive || param.Secret, "sensitive", true)
		o = append(o, member{param.Name, e})
	}
	return o
}

// argGroups returns the groups of flags that depend on each other.
func argGroups(c *Command) []any {
	list := []any{}
	add := func(args []string, condition string) {
		list = append(list, object{{"args", names(args)}, {"condition", condition}})
	}
	all := c.allParams()
	for _, group := range exclusions() {
		names := slices.DeleteFunc(group,
			func(n string) bool { return !slices.ContainsFunc(all, func(p Param) bool { return p.Name == n }) })
		if len(names) > 1 {
			add(names, "at most one")
		}
	}
	for _, rule := range c.Rules {
		if len(rule.Then) > 0 {
			add(append([]string{rule.If}, rule.Then...), "the first needs the others")
		}
		if len(rule.Not) > 0 {
			add(append([]string{rule.If}, rule.Not...), "the first excludes the others")
		}
	}
	return list
}

func nargs(p Param) string {
	switch {
	case p.Variadic && p.Required:
		return "+"
	case p.Variadic:
		return "*"
	case p.Required:
		return "1"
	}
	return "?"
}

// payloadSchema describes --raw-payload.
func payloadSchema(c *Command) object {
	properties, required := object{}, []any{}
	for _, param := range c.allParams() {
		if param.Global {
			continue
		}
		s := object{{"type", param.wireType()}}
		switch param.Kind {
		case Enum:
			s = object{{"type", "string"}, {"enum", names(param.Enum)}}
		case JSON:
			s = object{{"type", "object"}}
		}
		properties = append(properties, member{param.Name, s})
		if param.Required {
			required = append(required, param.Name)
		}
	}
	return object{
		{"type", "object"},
		{"properties", properties},
		{"required", required},
		{"additionalProperties", false},
	}
}
