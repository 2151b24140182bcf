package contract

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"reflect"
	"strings"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
)

// broken is a wrong declaration: edit makes a good one wrong in one way, and the complaint must name that.
type broken struct {
	name, complaint string
	edit            func(*Command)
}

type withJobID struct {
	JobID string `json:"job_id"`
}

type withPID struct {
	BackgroundPID int `json:"background_pid"`
}

type onlyResults struct {
	Results []string `json:"results"`
}

type onlySummary struct {
	Summary string `json:"summary"`
}

func exit(e Exit) func(*Command) {
	return func(c *Command) { c.Exits = append(c.Exits, e) }
}

func param(p Param) func(*Command) {
	return func(c *Command) {
		if p.Help == "" {
			p.Help = "a parameter"
		}
		if p.Kind == "" {
			p.Kind = Text
		}
		c.Params = []Param{p}
	}
}

func brokenDeclarations() []broken {
	mutating := func(f func(*Command)) func(*Command) {
		return func(c *Command) { c.Danger = Mutating; f(c) }
	}
	return []broken{
		{"auth_without_headless", "needs a variable for the token", func(c *Command) { c.Auth = &Auth{} }},
		{"background_pid_without_background", "background", func(c *Command) { c.Output = TypeOf[withPID]() }},
		{
			"background_without_cleanup", "a command that ends it",
			func(c *Command) { c.Background = &Background{MaxLifetime: time.Hour} },
		},
		{
			"background_without_cleanup", "a longest life",
			func(c *Command) { c.Background = &Background{CleanupCommand: "x"} },
		},
		{"batch_without_results", "summary and results", func(c *Command) { c.Batch = true }},
		{"batch_without_results", "summary and results", func(c *Command) {
			c.Batch, c.Output = true,
				TypeOf[onlyResults]()
		}},
		{"batch_without_results", "summary and results", func(c *Command) {
			c.Batch, c.Output = true,
				TypeOf[onlySummary]()
		}},
		{
			"child_argument", "takes --nothing, which does not exist",
			func(c *Command) { c.Children = []Subprocess{{Binary: "git", CallerArgs: []string{"nothing"}}} },
		},
		{
			"child_argument", "is not a program name",
			func(c *Command) { c.Children = []Subprocess{{Binary: "git log"}} },
		},
		{"child_argument", "is not a program name", func(c *Command) { c.Children = []Subprocess{{Binary: ""}} }},
		{"child_argument", "is not a program name", func(c *Command) { c.Children = []Subprocess{{Binary: "a;b"}} }},
		{
			"config_scope", `the configuration scope "world" is unknown`,
			mutating(func(c *Command) { c.ConfigScope = "world" }),
		},
		{"config_scope", "a safe command writes no configuration", func(c *Command) { c.ConfigScope = "local" }},
		{"destructive_without_dry_run", "must have a dry run", func(c *Command) { c.Danger = Destructive }},
		{"file_effect", "has no type", func(c *Command) { c.Files = []FileEffect{{Path: "x"}} }},
		{"file_effect", "has no type", func(c *Command) { c.Files = []FileEffect{{Path: "x", Type: "odd"}} }},
		{"job_id_without_job", "job", func(c *Command) { c.Output = TypeOf[withJobID]() }},
		{"job_without_descriptor", "has no job_id", func(c *Command) { c.Job = &Job{} }},
		{"list_without_order", `its rows have no "age"`, func(c *Command) {
			c.Output, c.List = TypeOf[itemData](),
				&List{Key: "items", ID: "name", Order: "age"}
		}},
		{"list_without_order", `its rows have no ""`, func(c *Command) {
			c.Output, c.List = TypeOf[itemData](),
				&List{Key: "items", ID: "name"}
		}},
		{
			"network_without_limits", "without a time limit",
			func(c *Command) { c.Network = &Network{Connect: time.Second} },
		},
		{
			"network_without_limits", "without a time limit",
			func(c *Command) { c.Network = &Network{Timeout: time.Second} },
		},
		{"no_danger", `the danger "" is unknown`, func(c *Command) { c.Danger = "" }},
		{"no_danger", `the danger "mild" is unknown`, func(c *Command) { c.Danger = "mild" }},
		{"no_output", "the type of its data is not declared", func(c *Command) { c.Output = nil }},
		{"no_scopes", "the scopes must be declared", func(c *Command) { c.Scopes = nil }},
		{
			"no_success", "SUCCESS is not declared",
			func(c *Command) { c.Exits = []Exit{{Code: NotFound, When: "always"}} },
		},
		{"no_success", "there are no exit codes", func(c *Command) { c.Exits = nil }},
		{"pattern_not_anchored", "the pattern is not anchored", param(Param{Name: "x", Pattern: "^[a-z]+"})},
		{"pattern_not_anchored", "the pattern is not anchored", param(Param{Name: "x", Pattern: "[a-z]+$"})},
		{
			"retryable_with_effects", "must not have changed anything",
			mutating(exit(Exit{Code: Unavailable, When: "it is down", Retryable: true, Changed: Some})),
		},
		{
			"retryable_with_effects", "must not have changed anything",
			mutating(exit(Exit{Code: TimedOut, When: "it is late", Retryable: true})),
		},
		{"safe_default_without_dry_run", "needs a dry run", mutating(func(c *Command) { c.SafeDefault = true })},
		{"secret_flag", "declare it Secret", param(Param{Name: "token"})},
		{"secret_flag", "declare it Secret", param(Param{Name: "password"})},
		{"secret_flag", "declare it Secret", param(Param{Name: "api-key"})},
		{"secret_flag", "a secret has no place and no default", param(Param{Name: "token", Secret: true, Position: 1})},
		{"stream_without_rows", "there are no rows to stream", func(c *Command) { c.Class = Listing }},
		{"unknown_exit_code", "ODD is not in the table", exit(Exit{Code: "ODD", When: "it is odd"})},
		{"unknown_exit_code", "79 to 125, not 78", exit(Specific(78, "MINE", "it is mine"))},
		{"unknown_exit_code", "79 to 125, not 126", exit(Specific(126, "MINE", "it is mine"))},
		{
			"volatile_not_in_data", "the volatile field age is not in the data",
			func(c *Command) { c.Volatile = []string{"age"} },
		},
	}
}

// moreBroken are rules that have no line of their own in the table of requirements.
func moreBroken() []broken {
	return []broken{
		{"path", "lower-case words", func(c *Command) { c.Path = "Odd" }},
		{"summary", "one line of at most 100 characters", func(c *Command) { c.Summary = "it ends with a period." }},
		{"summary", "one line of at most 100 characters", func(c *Command) { c.Summary = "" }},
		{"class", `the class "odd" is unknown`, func(c *Command) { c.Class = "odd" }},
		{"run", "there is no run function", func(c *Command) { c.Run = nil }},
		{"example", "there is no example", func(c *Command) { c.Examples = nil }},
		{"example", "does not call it", func(c *Command) { c.Examples = []Example{{"Other", "oatest other"}} }},
		{"version", "MAJOR.MINOR.PATCH", func(c *Command) { c.Version = "1" }},
		{"safe_dry_run", "nothing to try out", func(c *Command) { c.DryRun = true }},
		{"quiet", "must leave a trace", func(c *Command) { c.Danger, c.Quiet = Mutating, true }},
		{"step", "is not a name, or occurs twice", func(c *Command) { c.Steps = []string{"a", "a"} }},
		{
			"rule", "a rule speaks of --nothing",
			func(c *Command) { c.Rules = []Rule{{If: "output", Then: []string{"nothing"}}} },
		},
		{"limit", "for long-running commands", func(c *Command) { c.Timeout = time.Hour }},
		{"limit", "the time limit is negative", func(c *Command) { c.Timeout = -1 }},
		{"when", "say when", exit(Exit{Code: NotFound, When: "it ends with a period."})},
		{"when", "say when", exit(Exit{Code: NotFound, When: strings.Repeat("x", 121)})},
		{"twice", "is declared twice", exit(Exit{Code: Success, When: "again"})},
		{
			"partial", "never to be repeated",
			exit(Exit{Code: PartialFailure, When: "half", Retryable: true, Changed: None}),
		},
		{"complete", "only success may be complete", exit(Exit{Code: NotFound, When: "it is not", Changed: Complete})},
		{
			"argument", "a wrong argument changes nothing",
			exit(Exit{Code: ArgError, When: "it is wrong", Changed: Some}),
		},
		{"flag_name", "must be lower-case words", param(Param{Name: "Odd"})},
		{"flag_help", "has no help", func(c *Command) { c.Params = []Param{{Name: "x", Kind: Text}} }},
		{"flag_kind", "has no kind", param(Param{Name: "x", Kind: "odd"})},
		{"flag_enum", "an enum and its values go together", param(Param{Name: "x", Kind: Enum})},
		{"flag_short", "a short form is one character", param(Param{Name: "x", Short: "xx"})},
		{
			"flag_default", `the default "0" is not allowed`,
			param(Param{Name: "x", Kind: Int, Min: 1, Max: 2, Default: "0"}),
		},
		{"flag_arity", "takes a value in one command and none in another", param(Param{Name: "on", Kind: Text})},
		{"switch", "a switch has no place", param(Param{Name: "x", Kind: Bool, Position: 1})},
		{"order", "follows the optional", func(c *Command) {
			c.Params = []Param{
				{Name: "a", Kind: Text, Help: "a", Position: 1},
				{Name: "b", Kind: Text, Help: "b", Position: 2, Required: true},
			}
		}},
		{"variadic", "is not the last", func(c *Command) {
			c.Params = []Param{
				{Name: "a", Kind: Text, Help: "a", Position: 1, Variadic: true},
				{Name: "b", Kind: Text, Help: "b", Position: 2},
			}
		}},
	}
}

func registered(c *Command) error {
	switched := quick(Command{Path: "switched", Params: []Param{{Name: "on", Kind: Bool, Help: "a switch"}}})
	_, err := New(App{Name: "oatest", Version: "1.0.0", Commands: made(switched, c)})
	return err
}

func TestRegistrationRefuses(t *testing.T) {
	t.Parallel()
	rows := append(brokenDeclarations(), moreBroken()...)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := quick(Command{Path: "base"})
			if err := registered(c); err != nil {
				t.Fatalf("the base itself is refused: %v", err)
			}
			row.edit(c)
			err := registered(c)
			if err == nil {
				t.Fatalf("accepted; the complaint should be: %s", row.complaint)
			}
			if got := strings.Count(err.Error(), row.complaint); got == 0 {
				t.Errorf("the complaint is %v, not %q", err, row.complaint)
			}
		})
	}
	t.Run("job_without_descriptor", func(t *testing.T) { // each of the seven members
		t.Parallel()
		whole := TypeOf[jobData]()
		for i := range whole.NumField() {
			var kept []reflect.StructField
			for j := range whole.NumField() {
				if i != j {
					kept = append(kept, whole.Field(j))
				}
			}
			missing := strings.Split(whole.Field(i).Tag.Get("json"), ",")[0]
			err := registered(quick(Command{Path: "base", Job: &Job{Descriptor: reflect.StructOf(kept)}}))
			if err == nil || !strings.Contains(err.Error(), "has no "+missing) ||
				strings.Count(err.Error(), "the job descriptor has no") != 1 {
				t.Errorf("without %s: %v", missing, err)
			}
		}
		if err := registered(quick(Command{Path: "base", Job: &Job{Descriptor: whole}})); err != nil {
			t.Error(err)
		}
	})
}

// All mistakes are told at once, and no command runs that was not checked.
func TestRegistrationTellsAll(t *testing.T) {
	t.Parallel()
	c := quick(Command{Path: "base"})
	c.Danger, c.Scopes, c.Run = "", nil, nil
	app := App{Name: "oatest", Version: "1.0.0", Commands: made(
		c, quick(Command{Path: "well"}),
		quick(Command{Path: "well"}),
	)}
	p, err := New(app)
	if p != nil || err == nil {
		t.Fatal("accepted")
	}
	for _, complaint := range []string{
		"base: the danger", "base: the scopes", "base: there is no run",
		"well: is declared twice",
	} {
		if !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q is not in %v", complaint, err)
		}
	}
	ran := false
	c.Run = func(context.Context, *Call) (Result, error) { ran = true; return Result{}, nil }
	w := newWorld(t)
	a := w.inside(t, Open(app), []string{"base"})
	validEnvelope(t, a.stdout)
	if ran || a.code != 1 || a.at(t, "error.code") != string(fault.Internal) {
		t.Errorf("ran %v, exit %d: %s", ran, a.code, a.stdout)
	}
	w.inside(t, Open(app), []string{"well"}).succeeded(t)
}

// A bare number cannot be an exit code: the compiler refuses it. The real declarations are checked together with a use
// of them; what they import is not there, so only complaints about the use count.
func TestNumberIsNoExitCode(t *testing.T) {
	t.Parallel()
	for expression, well := range map[string]bool{
		`Exit{Code: Success}`: true, `Result{Exit: Success}`: true, `Exit{Code: "OWN"}`: true,
		`Specific(80, "OWN", "")`: true,
		`Exit{Code: 3}`:           false, `Result{Exit: 3}`: false, `Code(3.0)`: false, `Exit{Code: len("abc")}`: false,
		`Specific(80, 80, "")`: false,
	} {
		complaints := compile(t, "package contract\n\nvar _ = "+expression+"\n")
		if well != (len(complaints) == 0) {
			t.Errorf("%s: %q", expression, complaints)
		}
		if !well && !strings.Contains(strings.Join(complaints, " "), "cannot ") {
			t.Errorf("%s is refused for another reason: %q", expression, complaints)
		}
	}
}

// compile type-checks a use of the declarations and returns what is wrong with it.
func compile(t *testing.T, use string) []string {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for name, source := range map[string]any{"code.go": nil, "command.go": nil, "use.go": use} {
		file, err := parser.ParseFile(set, name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	var complaints []string
	config := types.Config{Error: func(err error) {
		var typed types.Error
		if errors.As(err, &typed) && set.Position(typed.Pos).Filename == "use.go" {
			complaints = append(complaints, typed.Msg)
		}
	}}
	_, _ = config.Check("contract", set, files, nil)
	return complaints
}
