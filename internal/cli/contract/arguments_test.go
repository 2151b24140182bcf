package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
)

// Commands that take every sort of argument and say what reached them.

// arrived is what a handler saw of its arguments.
type arrived struct {
	Values map[string][]string `json:"values" doc:"by parameter"`
	DryRun bool                `json:"dry_run"`
}

// reached reports every own parameter that has a value.
func reached(c *Call) arrived {
	a := arrived{Values: map[string][]string{}, DryRun: c.DryRun()}
	for _, p := range c.Command.Params {
		if c.Given(p.Name) || p.Default != "" {
			values := c.Strings(p.Name)
			if len(values) == 0 {
				values = []string{c.String(p.Name)}
			}
			a.Values[p.Name] = values
		}
	}
	return a
}

// leave creates a file in the directory of the call. It shows that the handler ran, and not in a dry run.
func leave(c *Call, name string) {
	if !c.DryRun() {
		_ = os.WriteFile(filepath.Join(c.Dir(), name), nil, 0o600)
	}
}

func changing(c Command, effect Effect) Command {
	c.Output = TypeOf[arrived]()
	c.Run = func(_ context.Context, call *Call) (Result, error) {
		leave(call, "ran")
		return Result{Data: reached(call), Effect: effect, Target: map[string]any{"files": []string{"a.txt", "b.txt"}}},
			nil
	}
	return c
}

// kinds has a parameter of each kind.
func kinds() []Param {
	return []Param{
		{Name: "id", Short: "i", Kind: ID, Help: "an id", Position: 1},
		{Name: "file", Kind: File, Help: "a path", Position: 2},
		{Name: "text", Kind: Text, Help: "any text", MaxLen: 1000},
		{Name: "url", Kind: URL, Help: "an address"},
		{Name: "count", Short: "n", Kind: Int, Min: 1, Max: 9, Default: "3", Help: "a number"},
		{Name: "on", Short: "o", Kind: Bool, Help: "a switch"},
		{Name: "level", Kind: Enum, Enum: []string{"low", "high"}, Help: "a level"},
		{Name: "wait", Kind: Duration, Help: "a time"},
		{Name: "tags", Kind: Names, Help: "names"},
		{Name: "settings", Kind: JSON, Help: "an object"},
		{Name: "code", Kind: Text, Pattern: `^[a-z]{3}-[0-9]+$`, Help: "a code"},
	}
}

func misbehavingArguments() []*Command {
	echo := Command{Output: TypeOf[arrived](), Run: func(_ context.Context, c *Call) (Result,
		error,
	) {
		return Result{Data: reached(c)}, nil
	}}
	with := func(path string, edit func(*Command)) *Command {
		c := echo
		c.Path = path
		edit(&c)
		return quick(c)
	}
	named := []Param{{Name: "name", Kind: ID, Help: "the name", Required: true, Position: 1, MaxLen: 32}}
	return []*Command{
		with("echo", func(c *Command) { c.Params = kinds() }),
		with("group echo", func(c *Command) { c.Params = kinds() }),
		quick(changing(Command{Path: "put", Danger: Mutating, DryRun: true, Params: append(named, kinds()[2:]...)},
			Created)),
		quick(changing(Command{Path: "wipe", Danger: Destructive, DryRun: true, Params: named}, Deleted)),
		quick(changing(Command{Path: "careful", Danger: Mutating, DryRun: true, SafeDefault: true, Params: named},
			Updated)),
		with("ruled", func(c *Command) {
			c.Params = []Param{
				{Name: "mode", Kind: Enum, Enum: []string{"local", "remote"}, Help: "where"},
				{Name: "host", Kind: ID, Help: "which machine"},
				{Name: "user", Kind: ID, Help: "who"},
				{Name: "folder", Kind: File, Help: "local folder"},
				{Name: "port", Kind: Int, Help: "which port"},
			}
			c.Rules = []Rule{{
				If: "mode", Is: "remote", Then: []string{"host", "user"}, Not: []string{"folder"},
				Default: map[string]string{"port": "22"},
			}}
		}),
		with("checked", func(c *Command) {
			c.Params = kinds()
			c.Validate = func(call *Call) []fault.Problem {
				var found []fault.Problem
				if call.String("text") == "wrong" {
					found = append(found, fault.Problem{
						Param: "text", Code: fault.ArgError, Value: "wrong", Message: "the command does not like it",
					})
				}
				return append(found, fault.Problem{
					Param: "id", Code: fault.ArgError, Message: "the command dislikes every id",
				})
			}
		}),
		with("pick", func(c *Command) {
			c.Params = []Param{{
				Name: "id", Kind: ID, Help: "which", Required: true, Position: 1, Variadic: true, Stdin: true,
			}}
		}),
		quick(Command{
			Path:   "secretive",
			Params: []Param{{Name: "token", Kind: Text, Secret: true, Help: "the credential"}}, Run: useSecret,
		}),
		quick(Command{
			Path: "drink", Output: TypeOf[drunk](), Stdin: &Stdin{Format: "text", Required: true}, Run: drink,
			Exits: []Exit{
				{Code: Success, When: "it was read"},
				{Code: PreconditionFailed, When: "there is nothing to read"},
				{Code: NotFound, When: "the input file is missing"},
			},
		}),
		with("elsewhere", func(c *Command) {
			c.Tools = map[string]string{"git": "2.20"}
		}),
		with("scoped", func(c *Command) { c.Scopes = []string{"repo:read", "repo:write"} }),
		with("starts", func(c *Command) {
			c.Params = []Param{
				{Name: "id", Kind: ID, Help: "goes to the child"},
				{Name: "file", Kind: File, Help: "goes to the child"},
				{Name: "text", Kind: Text, Help: "goes to the child"},
				{Name: "own-file", Kind: File, Help: "stays here"},
			}
			c.Children = []Subprocess{{
				Binary: "git", FixedArgs: []string{"log"}, CallerArgs: []string{"id", "file", "text"},
			}}
		}),
		with("listed", func(c *Command) {
			c.Class, c.Output = Listing, TypeOf[itemData]()
			c.List = &List{Key: "items", ID: "name", Order: "name"}
			c.Run = func(context.Context, *Call) (Result, error) {
				return Result{Data: itemData{RowsOf([]item{{"a", 1}, {"b", 2}})}}, nil
			}
		}),
		everything(),
	}
}

// useSecret says how long the secret is, and traces it, so that a leak would be seen.
func useSecret(_ context.Context, c *Call) (Result, error) {
	secret, err := c.Secret("token")
	if err != nil {
		return Result{}, err
	}
	c.Debug("the environment has TOKEN=%s", secret)
	return Result{Data: anyData{"of " + itoa(len(secret)) + " bytes"}}, nil
}

type drunk struct {
	Bytes int64 `json:"bytes"`
}

func drink(ctx context.Context, c *Call) (Result, error) {
	r, err := c.Input(ctx)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = r.Close() }()
	n, err := io.Copy(io.Discard, r)
	return Result{Data: drunk{n}}, err
}

type jobData struct {
	JobID          string `json:"job_id"`
	Status         string `json:"status"`
	Terminal       bool   `json:"terminal"`
	StatusCommand  string `json:"status_command"`
	CancelCommand  string `json:"cancel_command"`
	PollIntervalMS int    `json:"poll_interval_ms"`
	TimeoutMS      int    `json:"timeout_ms"`
}

// everything is a command that declares all that can be declared together.
func everything() *Command {
	return quick(changing(Command{
		Path: "everything", Danger: Destructive, DryRun: true, SafeDefault: true, Params: append(kinds(),
			Param{Name: "key", Kind: Text, Secret: true, Help: "the key"}),
		LongRunning: true, Timeout: time.Minute, Steps: []string{"one", "two"}, Recursive: true,
		Stdin: &Stdin{Format: "text"}, Network: &Network{Timeout: 5 * time.Second, Connect: time.Second},
		Children: []Subprocess{{
			Binary: "git", FixedArgs: []string{"log"}, CallerArgs: []string{"id"}, PreserveLocale: true,
		}},
		Background: &Background{CleanupCommand: "oatest wipe", MaxLifetime: time.Hour},
		Job:        &Job{Descriptor: TypeOf[jobData]()},
		Auth:       &Auth{TokenEnv: []string{"OMNIAGENT_TEST_TOKEN"}}, Scopes: []string{"repo:read"},
		Interactive: true, Reversible: true, ConfigScope: "local",
		Files: []FileEffect{{Path: "~/.cache/oatest", Type: "cache", TTLSeconds: 60, ClearableWith: "oatest wipe"}},
		Tools: map[string]string{"git": "2.20"}, Rules: []Rule{{
			If: "level", Is: "high", Then: []string{"text"},
		}},
		Volatile: []string{"values"},
	}, Deleted))
}

// tested is the registry for calls in this process: for tables, where a process a row would take too long.
var tested = sync.OnceValues(func() (*Program, error) { return New(misbehaving()) })

// inside makes the call in this process. edit may change the host.
func (w *world) inside(t *testing.T, p *Program, args []string, edit ...func(*Host)) answered {
	t.Helper()
	if p == nil {
		var err error
		if p, err = tested(); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	h := Host{
		Args: args, Lookup: w.lookup, Stdin: strings.NewReader(w.stdin), Stdout: &stdout, Stderr: &stderr, Dir: w.dir,
	}
	for _, f := range edit {
		f(&h)
	}
	start := time.Now()
	a := answered{code: p.Run(context.Background(), h, nil), took: time.Since(start)}
	a.stdout, a.stderr = stdout.String(), stderr.String()
	if json.Unmarshal(stdout.Bytes(), &a.envelope) != nil {
		a.envelope = nil
	}
	return a
}

// lookup reads the world's environment; the last value counts.
func (w *world) lookup(name string) (string, bool) {
	for i := len(w.env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(w.env[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// left lists the files in the directory and the home, except the audit log.
func (w *world) left(t *testing.T) []string {
	t.Helper()
	found := []string{}
	for _, root := range []string{w.dir, w.home} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.HasPrefix(filepath.Base(path), "audit.jsonl") {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// problems are the entries of error.errors, by parameter.
func (a answered) problems(t *testing.T) map[string]map[string]any {
	t.Helper()
	list, _ := a.at(t, "error.errors").([]any)
	found := map[string]map[string]any{}
	for _, item := range list {
		p := item.(map[string]any)
		found[p["param"].(string)] = p
	}
	return found
}

// refused checks that a call ended in validation with a code, in a valid envelope.
func (a answered) refused(t *testing.T, code fault.Code) {
	t.Helper()
	validEnvelope(t, a.stdout)
	if a.code != 2 || a.at(t, "error.code") != string(code) || a.at(t, "error.phase") != "validation" ||
		a.at(t, "error.retryable") != false || a.at(t, "data") != nil {
		t.Fatalf("exit %d instead of a refusal with %s: %s", a.code, code, a.stdout)
	}
}

// succeeded checks that a call ended well, in a valid envelope.
func (a answered) succeeded(t *testing.T) {
	t.Helper()
	validEnvelope(t, a.stdout)
	if a.code != 0 {
		t.Fatalf("exit %d: %s %s", a.code, a.stdout, a.stderr)
	}
}

// value is what the handler saw of a parameter.
func (a answered) value(t *testing.T, name string) any {
	t.Helper()
	list, _ := a.at(t, "data.values").(map[string]any)[name].([]any)
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is %v, not %v", what, got, want)
	}
}
