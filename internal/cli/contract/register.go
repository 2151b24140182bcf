package contract

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"omniagent/internal/sys/redact"
)

// New checks every declaration and returns the program, or an error that lists all mistakes.
func New(app App) (*Program, error) {
	p := Open(app)
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p, nil
}

// Open returns a program that checks each command before it runs. A start then pays for one command and not for all
// (0.7 ms for twenty, with warm caches), and a wrong declaration still cannot run.
func Open(app App) *Program {
	return &Program{App: app, keys: append(Keys(), app.Keys...), made: make([]*Command, len(app.Commands))}
}

// Check finds every mistake in the declarations.
func (p *Program) Check() error {
	r := &registrar{program: p, bools: map[string]bool{}}
	seen := map[string]bool{}
	for i, c := range p.All() {
		if seen[c.Path] {
			r.bad(c, "is declared twice")
		}
		r.need(c, c.Path == p.Commands[i].Path, "is registered as %s", p.Commands[i].Path)
		seen[c.Path] = true
		r.command(c)
	}
	return r.result()
}

// checkCommand checks one command.
func (p *Program) checkCommand(c *Command) error {
	r := &registrar{program: p, bools: map[string]bool{}}
	r.command(c)
	return r.result()
}

func (r *registrar) result() error {
	if len(r.mistakes) == 0 {
		return nil
	}
	return fmt.Errorf("the declarations do not hold:\n  %s", strings.Join(r.mistakes, "\n  "))
}

type registrar struct {
	program  *Program
	mistakes []string
	// whether a flag takes no value, by its name: the same in every command, so that the arguments can be split before
	// the command is known
	bools map[string]bool
}

func (r *registrar) bad(c *Command, format string, args ...any) {
	r.mistakes = append(r.mistakes, c.Path+": "+fmt.Sprintf(format, args...))
}

func (r *registrar) need(c *Command, holds bool, format string, args ...any) {
	if !holds {
		r.bad(c, format, args...)
	}
}

func (r *registrar) command(c *Command) {
	r.words(c)
	r.params(c)
	r.exits(c)
	r.output(c)
	r.danger(c)
	r.resources(c)
	r.modes(c)
	r.lifetime(c)
}

// isWord reports whether s begins with a lower-case letter and has only such letters, digits and hyphens. Every call
// checks each of its flags with it, so it uses no regular expression.
func isWord(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && s != "" && 'a' <= s[0] && s[0] <= 'z'
}

func (r *registrar) words(c *Command) {
	r.need(c, !slices.ContainsFunc(strings.Split(c.Path, " "), func(word string) bool { return !isWord(word) }),
		"the path must be lower-case words")
	r.need(c, c.Summary != "" && len(c.Summary) <= 100 && !strings.HasSuffix(c.Summary, "."),
		"the summary must be one line of at most 100 characters without a final period")
	r.need(c, c.Class.wire() != "", "the class %q is unknown", c.Class)
	r.need(c, slices.Contains([]Danger{Safe, Mutating, Destructive}, c.Danger), "the danger %q is unknown", c.Danger)
	r.need(c, (c.Run != nil) == c.Class.enveloped() && (c.Serve != nil) != (c.Run != nil),
		"there is no run function, or one that its class does not have")
	r.need(c, len(c.Examples) > 0, "there is no example")
	for _, e := range c.Examples {
		r.need(c, strings.HasPrefix(e.Command, r.program.Name+" "+c.Path) ||
			strings.Contains(e.Command, "| "+r.program.Name+" "+c.Path), "the example %q does not call it", e.Command)
	}
}

func (r *registrar) params(c *Command) {
	names := map[string]bool{}
	for _, p := range sharedFor(c) {
		names[p.Name] = true
		r.arity(c, p)
	}
	var optional string
	for _, p := range c.positionals() {
		r.need(c, !p.Required || optional == "", "the required argument %s follows the optional %s", p.Name, optional)
		if !p.Required {
			optional = p.Name
		}
	}
	for i, p := range c.positionals() {
		r.need(c, !p.Variadic || i == len(c.positionals())-1, "%s takes all arguments but is not the last", p.Name)
	}
	for _, p := range c.Params {
		r.need(c, !names[p.Name], "the flag --%s is declared twice", p.Name)
		names[p.Name] = true
		r.param(c, p)
	}
	for _, rule := range c.Rules {
		for _, name := range slices.Concat([]string{rule.If}, rule.Then, rule.Not) {
			r.need(c, names[name], "a rule speaks of --%s, which does not exist", name)
		}
	}
}

func (r *registrar) param(c *Command, p Param) {
	r.need(c, isWord(p.Name), "the flag name %q must be lower-case words", p.Name)
	r.need(c, p.Help != "", "--%s has no help", p.Name)
	r.need(c, slices.Contains([]Kind{Text, Name, ID, File, URL, Int, Bool, Enum, Duration, Names, JSON}, p.Kind),
		"--%s has no kind", p.Name)
	r.need(c, p.Secret || !redact.Name(p.Name), "--%s would take a secret on the command line; declare it Secret",
		p.Name)
	r.need(c, (p.Kind == Enum) == (len(p.Enum) > 0), "--%s: an enum and its values go together", p.Name)
	r.need(c, len(p.Short) <= 1, "--%s: a short form is one character", p.Name)
	r.need(c, p.Pattern == "" || strings.HasPrefix(p.Pattern, "^") && strings.HasSuffix(p.Pattern, "$"),
		"--%s: the pattern is not anchored", p.Name)
	r.need(c, !p.Secret || p.Position == 0 && p.Default == "", "--%s: a secret has no place and no default", p.Name)
	r.need(c, p.Kind != Bool || p.Position == 0, "--%s: a switch has no place", p.Name)
	if p.Default != "" {
		r.need(c, len(p.check(p.Default)) == 0, "--%s: the default %q is not allowed", p.Name, p.Default)
	}
	for _, e := range p.expand() {
		r.arity(c, e)
	}
}

func (r *registrar) arity(c *Command, p Param) {
	takesNone, known := r.bools[p.Name]
	r.need(c, !known || takesNone == (p.Kind == Bool), "--%s takes a value in one command and none in another", p.Name)
	r.bools[p.Name] = p.Kind == Bool
}

func (r *registrar) exits(c *Command) {
	r.need(c, len(c.Exits) > 0, "there are no exit codes")
	seen, success := map[Code]bool{}, false
	for _, e := range c.Exits {
		success = success || e.Code == Success
		r.need(c, !seen[e.Code], "the exit code %s is declared twice", e.Code)
		seen[e.Code] = true
		r.need(c, e.When != "" && len(e.When) <= 120 && !strings.HasSuffix(e.When, "."),
			"%s: say when, in at most 120 characters without a final period", e.Code)
		if _, known := c.number(e.Code); !known {
			r.bad(c, "the exit code %s is not in the table; Specific declares one from 79 to 125", e.Code)
		}
		r.need(c, e.number == 0 || e.number >= 79 && e.number <= 125 || e.number == blockedNumber &&
			!c.Class.enveloped(), "%s: codes of a command's own are 79 to 125, not %d", e.Code, e.number)
		extent := e.entry(c).SideEffects
		r.need(c, !e.Retryable || extent == None, "%s: what may be repeated must not have changed anything", e.Code)
		r.need(c, !e.Retryable || e.Code != PartialFailure, "a partial failure is never to be repeated")
		r.need(c, extent != Complete || e.Code == Success, "%s: only success may be complete", e.Code)
		r.need(c, e.Code != ArgError || extent == None, "a wrong argument changes nothing")
	}
	r.need(c, success, "SUCCESS is not declared")
}

func (r *registrar) output(c *Command) {
	if !c.Class.enveloped() {
		return
	}
	r.need(c, c.Output != nil, "the type of its data is not declared")
	r.need(c, regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(c.Version),
		"the version of its output must be MAJOR.MINOR.PATCH")
	if c.Output == nil {
		return
	}
	schema := schemaOf(c.Output)
	for _, path := range c.Volatile {
		r.need(c, hasField(schema, path), "the volatile field %s is not in the data", path)
	}
	if c.List != nil {
		r.need(c, hasField(schema, c.List.Key), "its rows' key %q is not in the data", c.List.Key)
		for _, field := range append([]string{c.List.ID, c.List.Order}, c.List.Columns...) {
			r.need(c, field == "given" || hasField(schema, c.List.Key+"."+field), "its rows have no %q", field)
		}
	}
}

// hasField follows a dotted path through a schema; a list stands for its items.
func hasField(schema object, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		if items, ok := schema.get("items"); ok {
			schema = items.(object)
		}
		properties, ok := schema.get("properties")
		if !ok {
			return false
		}
		next, ok := properties.(object).get(name)
		if !ok {
			return false
		}
		schema = next.(object)
	}
	return true
}

func (r *registrar) danger(c *Command) {
	r.need(c, c.Danger != Destructive || c.DryRun, "what destroys must have a dry run")
	r.need(c, !c.SafeDefault || c.DryRun && c.Danger != Safe, "a safe default needs a dry run to fall back on")
	r.need(c, c.Danger != Safe || !c.DryRun, "a safe command has nothing to try out")
	r.need(c, c.Danger == Safe || !c.Quiet, "what changes something must leave a trace")
	r.need(c, c.Scopes != nil, "the scopes must be declared, even if there are none")
	r.need(c, slices.Contains([]string{"", "local", "global", "session"}, c.ConfigScope),
		"the configuration scope %q is unknown", c.ConfigScope)
	r.need(c, c.ConfigScope == "" || c.Danger != Safe, "a safe command writes no configuration")
	for _, f := range c.Files {
		r.need(c, slices.Contains([]string{"cache", "log", "temp", "credential", "config", "state"}, f.Type),
			"the file effect %s has no type", f.Path)
	}
}

// resources checks what the command declares that it uses.
func (r *registrar) resources(c *Command) {
	if n := c.Network; n != nil {
		r.need(c, n.Timeout > 0 && n.Connect > 0, "a connection without a time limit is not allowed")
		r.need(c, n.Connect <= n.Timeout, "Network.Connect is longer than Network.Timeout")
	}
	for _, s := range c.Children {
		r.need(c, s.Binary != "" && !strings.ContainsAny(s.Binary, " |;&$"), "the child %q is not a program name",
			s.Binary)
		for _, name := range s.CallerArgs {
			_, known := c.param(name)
			r.need(c, known, "the child %s takes --%s, which does not exist", s.Binary, name)
		}
	}
	if b := c.Background; b != nil {
		r.need(c, b.CleanupCommand != "" && b.MaxLifetime > 0,
			"what stays behind needs a command that ends it and a longest life")
	}
	if j := c.Job; j != nil {
		var schema object
		if j.Descriptor != nil {
			schema = schemaOf(j.Descriptor)
		}
		for _, field := range []string{
			"job_id", "status", "terminal", "status_command", "cancel_command",
			"poll_interval_ms", "timeout_ms",
		} {
			r.need(c, hasField(schema, field), "the job descriptor has no %s", field)
		}
	}
	if a := c.Auth; a != nil {
		r.need(c, a.HeadlessSupported || len(a.TokenEnv) > 0, "a login without a screen needs a variable for the token")
	}
}

func (r *registrar) modes(c *Command) {
	for i, step := range c.Steps {
		r.need(c, regexp.MustCompile(idPattern).MatchString(step) && slices.Index(c.Steps, step) == i,
			"the step %q is not a name, or occurs twice", step)
	}
	r.need(c, c.Class != Listing || c.List != nil, "there are no rows to stream")
	schema := schemaOf(c.Output)
	r.need(c, c.Job != nil || !hasField(schema, "job_id"), "its data has a job_id: declare the Job")
	r.need(c, c.Background != nil || !hasField(schema, "background_pid"),
		"its data has a background_pid: declare the Background")
	r.need(c, !c.Batch || c.Output == nil || c.Output.Kind() == reflect.Struct &&
		hasField(schema, "results") && hasField(schema, "summary"),
		"a batch reports summary and results")
}

func (r *registrar) lifetime(c *Command) {
	r.need(c, c.Timeout >= 0, "the time limit is negative")
	r.need(c, c.Clock == nil || c.LongRunning, "only a long-running command keeps a clock of its own")
	r.need(c, !c.Class.enveloped() || c.Timeout <= defaultTimeout || c.LongRunning,
		"a limit of more than %s is for long-running commands", defaultTimeout)
}

const defaultTimeout = 30 * time.Second
