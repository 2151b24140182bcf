//go:build unix

package walk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// described is the program as it tells of itself with --schema.
type described struct {
	Data struct {
		Commands map[string]*command `json:"commands"`
	} `json:"data"`
	Meta struct {
		Ext         map[string]extension `json:"command_ext"`
		Environment []struct {
			Name string `json:"name"`
		} `json:"environment"`
	} `json:"meta"`
}

// command is what the program says of one of its commands.
type command struct {
	key     string // as in the manifest, "config.set"
	ext     extension
	Summary string          `json:"description"`
	Danger  string          `json:"danger_level"`
	Flags   map[string]flag `json:"flags"`
	Exits   map[string]struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Retryable   bool   `json:"retryable"`
	} `json:"exit_codes"`
	Output   json.RawMessage `json:"output_schema"`
	Examples []struct {
		Command string `json:"command"`
	} `json:"examples"`
}

type flag struct {
	Type     string `json:"type"`
	Required bool   `json:"required"`
	Short    string `json:"short"`

	Description string `json:"description"`
}

type extension struct {
	Parameters map[string]struct {
		Position int    `json:"position"`
		Nargs    string `json:"nargs"`
		Pattern  string `json:"pattern_type"`
		Stdin    bool   `json:"stdin_fallback"`
	} `json:"parameters"`
	Class       string   `json:"output_class"`
	Network     bool     `json:"has_network_io"`
	Volatile    []string `json:"volatile_fields"`
	SafeDefault bool     `json:"safe_default"`
	Prints      bool     `json:"prints"`
	Stdin       *struct {
		Required bool `json:"required"`
	} `json:"stdin_input"`
	Children []struct {
		Args []string `json:"user_controlled_args"`
	} `json:"subprocess"`
}

// describe asks the program once for everything that it says of itself.
var describe = sync.OnceValues(func() (*described, error) {
	home, err := os.MkdirTemp(filepath.Dir(program), "describe-")
	if err != nil {
		return nil, err
	}
	cmd := execProgram("--schema")
	cmd.Env = []string{"HOME=" + home}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("omniagent --schema: %w", err)
	}
	d := &described{}
	if err := json.Unmarshal(out, d); err != nil {
		return nil, err
	}
	for key, c := range d.Data.Commands {
		c.key, c.ext = key, d.Meta.Ext[key]
	}
	return d, nil
})

// commands are all that can be called, by name. Words that only hold commands are left out.
func commands(t *testing.T) []*command {
	t.Helper()
	d, err := describe()
	must(t, err)
	list := []*command{}
	for key := range d.Meta.Ext {
		list = append(list, d.Data.Commands[key])
	}
	if len(list) < 20 {
		t.Fatalf("the program tells of %d commands only", len(list))
	}
	slices.SortFunc(list, func(a, b *command) int { return strings.Compare(a.key, b.key) })
	return list
}

// of are the commands of one class: what stands on standard output, an envelope, a protocol of its own ("stream"), or a
// conversation with a person ("terminal").
func of(t *testing.T, class string) []*command {
	t.Helper()
	list := slices.DeleteFunc(commands(t), func(c *command) bool { return c.ext.Class != class })
	if len(list) == 0 {
		t.Fatalf("no command is of class %s", class)
	}
	return list
}

// runs reports whether a command of class terminal is there for another program, which it starts with the words of the
// caller and hands its streams to. The others are conversations.
func (c *command) runs() bool {
	for _, child := range c.ext.Children {
		for _, name := range child.Args {
			if p, ok := c.ext.Parameters[name]; ok && p.Nargs == "+" {
				return c.ext.Class == "terminal"
			}
		}
	}
	return false
}

// ofTerminal are the conversations, or those that run a program.
func ofTerminal(t *testing.T, runs bool) []*command {
	t.Helper()
	list := slices.DeleteFunc(of(t, "terminal"), func(c *command) bool { return c.runs() != runs })
	if len(list) == 0 {
		t.Fatalf("no command of class terminal has runs %t", runs)
	}
	return list
}

// enveloped are the commands that answer with an envelope: all but those that talk to a model, which have rules of
// their own.
func enveloped(t *testing.T) []*command {
	t.Helper()
	return of(t, "envelope")
}

func (c *command) words() []string { return strings.Split(c.key, ".") }
func (c *command) safe() bool      { return c.Danger == "safe" }

// reads reports whether the command cannot do without standard input.
func (c *command) reads() bool { return c.ext.Stdin != nil && c.ext.Stdin.Required }

// namesOne reports whether the call is about one conversation or run, which has to be there.
func (c *command) namesOne() bool {
	id, ok := c.ext.Parameters["id"]
	return ok && id.Position > 0
}

// plain is a call that works: the first example that ends without a question. It stands in the manual too.
func (c *command) plain(t *testing.T, more ...string) call {
	t.Helper()
	if c.reads() {
		lines := map[string]string{
			"exec":      `{"_cmd":"version"}` + "\n" + `{"_cmd":"config.get","key":"grace"}` + "\n",
			"xnl.check": "<a>", "xnl.format": "<a { b = 1 }>", "xnl.parse": "<a [ 1 <b> ]>",
		}
		if lines[c.key] == "" {
			t.Fatalf("%s reads standard input: put here what it may read", c.key)
		}
		return call{args: append(c.words(), more...), stdin: lines[c.key]}
	}
	if len(c.Examples) == 0 {
		t.Fatalf("%s has no example", c.key)
	}
	example := c.Examples[0].Command
	if c.key == "run" { // whose first is a rehearsal with a question, which test/manual answers
		example = c.Examples[1].Command
	}
	words := shellWords(example)
	if words[0] != "omniagent" || strings.ContainsAny(example, `"|$`) {
		t.Fatalf("the first example of %s is not a plain call: %s", c.key, example)
	}
	if i := slices.Index(words, "--output"); i > 0 { // the form of the result is the walk's to choose
		words = slices.Delete(words, i, i+2)
	}
	if c.key == "completion" { // a script otherwise, in a pipe as well
		more = append(more, "--json")
	}
	return call{args: placed(words[1:], more...)}
}

// placed puts more words at the end of a call, but in front of --: what stands behind it belongs to another program.
func placed(words []string, more ...string) []string {
	i := slices.Index(words, "--")
	if i < 0 {
		i = len(words)
	}
	return slices.Concat(words[:i], more, words[i:])
}

// shellWords are the words of a line as a shell sees them, where nothing but single quotes is special.
func shellWords(line string) []string {
	words, joined := []string{}, false
	add := func(word string) {
		if joined && len(words) > 0 {
			words[len(words)-1] += word
			return
		}
		words = append(words, word)
	}
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			add(part)
			joined = true
			continue
		}
		for n, word := range strings.Fields(part) {
			joined = joined && n == 0 && !strings.HasPrefix(part, " ")
			add(word)
		}
		joined = part != "" && !strings.HasSuffix(part, " ")
	}
	return words
}

// envelope is one answer.
type envelope struct {
	OK       bool           `json:"ok"`
	Data     any            `json:"data"`
	Error    map[string]any `json:"error"`
	Warnings []string       `json:"warnings"`
	Meta     map[string]any `json:"meta"`
}

// judge holds an outcome against all that is promised of every answer, and returns the answer (the first of a batch).
func (c *command) judge(t *testing.T, o outcome) envelope {
	t.Helper()
	list := judgeLines(t, o)
	if len(list) != 1 && !(c.key == "exec" && len(list) > 0) {
		t.Fatalf("%d answers instead of one\n%s", len(list), o)
	}
	if _, declared := c.Exits[strconv.Itoa(o.code)]; !declared {
		t.Errorf("%s ended with %d, which its --schema does not declare\n%s", c.key, o.code, o)
	}
	good := !slices.ContainsFunc(list, func(e envelope) bool { return !e.OK })
	if good != (o.code == 0) {
		t.Errorf("ok is %t and the exit status %d\n%s", good, o.code, o)
	}
	if e := list[0]; e.OK && c.key != "exec" && e.Data != nil && e.Meta["help"] == nil &&
		!slices.Contains(o.args, "--schema") {
		c.judgeData(t, e, o)
	}
	return list[0]
}

// judgeLines checks what holds for every line of standard output.
func judgeLines(t *testing.T, o outcome) []envelope {
	t.Helper()
	clean(t, o)
	if !strings.HasSuffix(o.stdout, "\n") {
		t.Fatalf("standard output does not end with a line\n%s", o)
	}
	list := []envelope{}
	for line := range strings.Lines(o.stdout) {
		e := envelope{}
		decoder := json.NewDecoder(strings.NewReader(line))
		if err := decoder.Decode(&e); err != nil || decoder.More() {
			t.Fatalf("a line is not one JSON object: %v\n%s", err, o)
		}
		valid(t, "response-envelope.json", []byte(line), o)
		if e.OK == (e.Error != nil) {
			t.Errorf("ok is %t beside the error %v\n%s", e.OK, e.Error, o)
		}
		if e.OK != (e.Meta["exit_code"] == 0.0) {
			t.Errorf("ok is %t and meta.exit_code %v\n%s", e.OK, e.Meta["exit_code"], o)
		}
		if !e.OK && (!slices.Contains(errorCodes(t), fmt.Sprint(e.Error["code"])) || e.Error["message"] == "" ||
			e.Error["suggestion"] == nil) {
			t.Errorf("the error has no known code, no message or no next step\n%s", o)
		}
		list = append(list, e)
	}
	return list
}

// clean looks for what neither stream may ever carry.
func clean(t *testing.T, o outcome) {
	t.Helper()
	for _, bad := range []string{"\x1b", "\r", "\x00", "goroutine ", "panic:", "runtime error", "%!"} {
		if strings.Contains(o.stdout+o.stderr, bad) {
			t.Errorf("the output contains %q\n%s", bad, o)
		}
	}
}

// judgeData holds the data against the command's own schema.
func (c *command) judgeData(t *testing.T, e envelope, o outcome) {
	t.Helper()
	var schema jsonschema.Schema
	must(t, json.Unmarshal(c.Output, &schema))
	resolved, err := schema.Resolve(nil)
	must(t, err)
	if err := resolved.Validate(e.Data); err != nil {
		t.Errorf("the data does not match the output schema: %v\n%s", err, o)
	}
}

// schemas reads the published schemas once.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	load := func(name string) (*jsonschema.Schema, error) {
		text, err := os.ReadFile(filepath.Join("testdata", "schemas", name))
		if err != nil {
			return nil, err
		}
		s := &jsonschema.Schema{}
		return s, json.Unmarshal(text, s)
	}
	all := map[string]*jsonschema.Resolved{}
	for _, name := range []string{"response-envelope.json", "manifest-response.json", "dispatch-request.json"} {
		s, err := load(name)
		if err != nil {
			return nil, err
		}
		all[name], err = s.Resolve(&jsonschema.ResolveOptions{
			BaseURI: "https://schemas.invalid/",
			Loader:  func(uri *url.URL) (*jsonschema.Schema, error) { return load(filepath.Base(uri.Path)) },
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
})

// valid holds a JSON text against a published schema.
func valid(t *testing.T, schema string, text []byte, o outcome) {
	t.Helper()
	all, err := schemas()
	must(t, err)
	var v any
	must(t, json.NewDecoder(bytes.NewReader(text)).Decode(&v))
	if err := all[schema].Validate(v); err != nil {
		t.Errorf("not valid by %s: %v\n%s", schema, err, o)
	}
}

// readCodes asks once for the catalogue of errors.
var readCodes = sync.OnceValues(func() ([]string, error) {
	cmd := execProgram("errors", "list", "--limit", "0", "--output", "id", "--no-config")
	cmd.Env = []string{}
	out, err := cmd.Output()
	return strings.Fields(string(out)), err
})

func errorCodes(t *testing.T) []string {
	t.Helper()
	codes, err := readCodes()
	must(t, err)
	return codes
}

// members walks all members of a JSON value.
func members(v any, path string, visit func(path, name string, value any)) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			visit(path+"."+name, name, value)
			members(value, path+"."+name, visit)
		}
	case []any:
		for _, item := range v {
			members(item, path, visit)
		}
	}
}

// steady is the data without the members that are declared to vary.
func (c *command) steady(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if inner := strings.TrimPrefix(path+"."+name, "."); !slices.Contains(c.ext.Volatile, inner) {
				out[name] = c.steady(value, inner)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, c.steady(item, path))
		}
		return out
	}
	return v
}
