package contract

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

// alwaysThere are the flags of every envelope command.
func alwaysThere() []string {
	return strings.Fields(`help output json fields stable-output unmask no-injection-protection binary-mode token-limit token-offset token-count width quiet verbose
		debug warnings-as-errors validate-only schema output-schema schema-version show-requirements timeout cwd config no-config context
		instance-id session-id yes non-interactive no-update-check`)
}

// flagsOf are the flags of a command as its schema tells them.
func flagsOf(t *testing.T, w *world, p *Program, path string) []string {
	t.Helper()
	a := w.inside(t, p, append(strings.Fields(path), "--schema"))
	a.succeeded(t)
	flags, _ := a.at(t, "data.flags").(map[string]any)
	return slices.Sorted(maps.Keys(flags))
}

func TestSharedFlags(t *testing.T) {
	t.Parallel()
	t.Run("accepted", testSharedAccepted)
	t.Run("applies_to", func(t *testing.T) {
		t.Parallel()
		for _, row := range []struct {
			flags string // those that come beside alwaysThere
			field func(*Command)
		}{
			{"", func(*Command) {}},
			{"limit cursor", func(c *Command) {
				c.Output, c.List = TypeOf[itemData](), &List{Key: "items", ID: "name", Order: "name"}
			}},
			{"limit cursor stream no-stream", func(c *Command) {
				c.Class, c.Output = Listing, TypeOf[itemData]()
				c.List = &List{Key: "items", ID: "name", Order: "name"}
			}},
			{"idempotency-key raw-payload", func(c *Command) { c.Danger = Mutating }},
			{"idempotency-key raw-payload dry-run", func(c *Command) { c.Danger, c.DryRun = Mutating, true }},
			{
				"idempotency-key raw-payload dry-run live",
				func(c *Command) { c.Danger, c.DryRun, c.SafeDefault = Mutating, true, true },
			},
			{
				"idempotency-key raw-payload dry-run confirm-destructive",
				func(c *Command) { c.Danger, c.DryRun = Destructive, true },
			},
			{"input-file", func(c *Command) { c.Stdin = &Stdin{Format: "text"} }},
			{"heartbeat-ms heartbeat-interval", func(c *Command) { c.LongRunning = true }},
			{"resume-from", func(c *Command) { c.Steps = []string{"a"} }},
			{
				"connect-timeout proxy no-proxy retries retry-delay",
				func(c *Command) { c.Network = &Network{Timeout: 1, Connect: 1} },
			},
			{"max-depth no-follow-symlinks", func(c *Command) { c.Recursive = true }},
			{"headless token-env-var", func(c *Command) {
				c.Auth, c.Interactive = &Auth{HeadlessSupported: true},
					true
			}},
		} {
			c := quick(Command{Path: "base"})
			row.field(c)
			p, err := New(App{Name: "oatest", Version: "1.0.0", Commands: made(c)})
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			want := append(strings.Fields(row.flags), alwaysThere()...)
			slices.Sort(want)
			same(t, "with "+row.flags+": the flags", flagsOf(t, w, p, "base"), want)
			for _, s := range sharedParams() {
				if slices.Contains(want, s.Name) {
					c.Params = []Param{{Name: s.Name, Kind: s.Kind, Enum: s.Enum, Help: "its own"}}
					if err := registered(c); err == nil ||
						!strings.Contains(err.Error(), "the flag --"+s.Name+" is declared twice") {
						t.Errorf("with %s: a --%s of its own is not refused: %v", row.flags, s.Name, err)
					}
					c.Params = nil
				} else {
					code := map[string]fault.Code{"stream": fault.StreamingNotSupported}[s.Name]
					if code == "" {
						code = fault.Invalid
					}
					w.inside(t, p, []string{"base", "--" + s.Name + "=1"}).refused(t, code)
				}
			}
		}
	})
}

// testSharedAccepted gives every command each flag that its schema names, with a good value.
func testSharedAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.dir, "c.toml"), []byte("[context.work]\noutput = \"json\"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{
		"output": "json", "fields": "values", "binary-mode": "hex", "token-limit": "100000", "token-offset": "0",
		"width": "40", "schema-version": "1",
		"timeout": "9s", "cwd": ".", "config": "c.toml", "context": "work", "instance-id": "a", "session-id": "s",
		"limit": "5", "cursor": "",
		"idempotency-key": "k", "raw-payload": `{"id":"a","text":"t"}`, "input-file": "c.toml", "heartbeat-ms": "0",
		"heartbeat-interval": "5", "resume-from": "two",
		"connect-timeout": "1s", "proxy": "http://127.0.0.1:1", "retries": "1", "retry-delay": "1s", "max-depth": "3",
		"token-env-var": "TOKEN_NAME",
	}
	seen := map[string]bool{}
	for _, c := range misbehavingArguments() {
		for _, param := range sharedFor(c) {
			seen[param.Name] = true
			args := strings.Fields(c.Path)
			if param.Kind == Bool {
				args = append(args, "--"+param.Name)
			} else {
				value, known := values[param.Name]
				if !known {
					t.Fatalf("--%s has no value in this test", param.Name)
				}
				args = append(args, "--"+param.Name+"="+value)
			}
			args = append(args, map[string][]string{
				"context":                 {"--config=c.toml"},
				"no-injection-protection": {"--yes"},
			}[param.Name]...)
			if param.Name != "raw-payload" {
				args = append(args, requiredOf(c)...)
			} else if _, named := c.param("name"); named {
				args[len(args)-1] = `--raw-payload={"name":"x"}`
			}
			// its Validate refuses everything
			if c.Path == "checked" {
				continue
			}
			a := w.inside(t, nil, append(args, "--validate-only"))
			if a.code != 0 {
				t.Errorf("%s: exit %d: %s", args, a.code, a.stdout)
			}
		}
	}
	for _, s := range sharedParams() {
		if !seen[s.Name] {
			t.Errorf("no command of this test has --%s", s.Name)
		}
	}
}

// requiredOf are the arguments that the command cannot do without.
func requiredOf(c *Command) []string {
	args := []string{}
	for _, p := range c.Params {
		if p.Required {
			args = append(args, "--"+p.Name+"=x")
		}
	}
	return args
}

func TestFlagPlacement(t *testing.T) {
	t.Parallel()
	t.Run("interspersed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		first := w.run(t, "echo", "--stable-output", "--on", "--count", "5", "a", "b.txt")
		first.succeeded(t)
		same(t, "count", first.value(t, "count"), "5")
		same(t, "file", first.value(t, "file"), "b.txt")
		for _, args := range [][]string{
			{"echo", "a", "--on", "b.txt", "--count", "5", "--stable-output"},
			{"echo", "a", "b.txt", "--count=5", "--on", "--stable-output"},
			{"echo", "a", "-o", "-n", "5", "b.txt", "--stable-output"},
			{"echo", "-on5", "a", "--stable-output", "b.txt"},
			{"echo", "-n=5", "--on=true", "--stable-output", "--", "a", "b.txt"},
			{"echo", "--file", "b.txt", "a", "--stable-output", "-n5", "-o"},
			{"echo", "--id=a", "b.txt", "--stable-output", "-on", "5"},
		} {
			a := w.inside(t, nil, args)
			same(t, strings.Join(args, " "), []any{a.code, a.stdout}, []any{first.code, first.stdout})
		}
		nested := w.inside(t, nil, []string{"group", "--count", "5", "echo", "a"})
		nested.succeeded(t)
		same(t, "nested count", nested.value(t, "count"), "5")
		same(t, "nested id", nested.value(t, "id"), "a")
		dashed := w.inside(t, nil, []string{"echo", "a", "--", "--on"})
		dashed.succeeded(t)
		same(t, "file after --", dashed.value(t, "file"), "--on")
	})
	t.Run("before_command", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for _, args := range [][]string{
			{"--count", "5", "echo", "a"}, {"--output", "json", "echo", "a", "--count", "5"}, {
				"--on", "group", "echo",
				"a", "-n5",
			}, {"--timeout=5s", "echo", "a b; c", "-n", "5"},
		} {
			a := w.run(t, args...)
			a.refused(t, fault.UnknownCommand)
			same(t, "input_value", a.at(t, "error.input_value"), args[0])
			corrected, _ := a.at(t, "error.corrected_input").(string)
			words := shellWords(t, corrected)
			if len(words) != len(args)+1 || words[0] != "oatest" {
				t.Fatalf("corrected_input is %q", corrected)
			}
			again := w.inside(t, nil, words[1:])
			if strings.Contains(args[2], " ") || strings.Contains(corrected, "'") {
				again.refused(t, fault.InvalidAgentInput) // the id is odd, but it stayed one word
				continue
			}
			again.succeeded(t)
			same(t, corrected, again.value(t, "id"), "a")
		}
	})
}

// shellWords splits a command line as a shell would. It knows only the quotes that quoted writes.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	words, word, quoting := []string{}, strings.Builder{}, false
	for i, r := range line + " " {
		switch {
		case r == '\'':
			quoting = !quoting
		case r == ' ' && !quoting:
			words = append(words, word.String())
			word.Reset()
		case !quoting && strings.ContainsRune(shellCharacters+"\"\\*?~#!", r):
			t.Fatalf("character %d of %q is not quoted", i, line)
		default:
			word.WriteRune(r)
		}
	}
	return words
}

func TestJSONArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("tolerant", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{
			`{"a": 1, "b": [1, 2]}`, `{"a":1,"b":[1,2,],}`, "{a: 1, b: [1, 2] // tail\n}",
			`{/* head */ 'a': 1, b: [1, 2]}`, "{\n  a: 1,\n  b: [\n    1, 2,\n  ],\n}",
		} {
			a := w.inside(t, nil, []string{"echo", "--settings", text})
			a.succeeded(t)
			// A command gets a JSON parameter as it was typed, so only a payload shows how it is read.
			payload := w.inside(t, nil, []string{
				"put", "--dry-run", "--raw-payload",
				strings.NewReplacer("a: 1", "name: 'n', level: 'low'", `"a": 1`, `"name": "n", "level": "low"`,
					`"a":1`, `"name":"n","level":"low"`, `'a': 1`, `'name': "n", level: "low"`, "b:", "tags:", `"b"`,
					`"tags"`).Replace(text),
			})
			payload.succeeded(t)
			same(t, text, []any{payload.value(t, "name"), payload.value(t, "level"), payload.value(t, "tags")},
				[]any{"n", "low", []any{"1", "2"}})
		}
	})
	t.Run("corrected", func(t *testing.T) {
		t.Parallel()
		for text, repairable := range map[string]bool{
			`{"a": 1`: true, `{"a": 1 "b": 2}`: true, `{"a": "x}`: true, `{"a": [1, 2}`: true, `{"a": }`: false,
			`a`: false, ``: false, `[1]`: false, `"x"`: false,
		} {
			a := w.inside(t, nil, []string{"echo", "--settings", text})
			a.refused(t, fault.InvalidJSON)
			same(t, text, a.problems(t)["settings"]["code"], "INVALID_JSON")
			corrected, given := a.envelope["error"].(map[string]any)["corrected_input"].(string)
			if given != repairable {
				t.Errorf("%s: corrected_input is %q", text, corrected)
			}
			if given {
				if !json.Valid([]byte(corrected)) {
					t.Errorf("%s: corrected_input %s is not JSON", text, corrected)
				}
				w.inside(t, nil, []string{"echo", "--settings", corrected}).succeeded(t)
			}
		}
	})
}

func TestRawPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("same", func(t *testing.T) {
		t.Parallel()
		for payload, args := range map[string][]string{
			`{"name":"n"}`: {"n"},
			`{"name":"n","text":"a b","count":7,"on":true,"level":"low","tags":["x","y"],"wait":"5s"}`: {
				"n", "--text",
				"a b", "--count", "7", "--on", "--level", "low", "--tags", "x,y", "--wait", "5s",
			},
			`{"name":"n","on":false}`:                {"n", "--on=false"},
			`{"name":"n","settings":{"a":[1,"b"]}}`:  {"n", "--settings", `{"a":[1,"b"]}`},
			`{"name":"n","text":"<b> & \"q\" ü\n"}`:  {"n", "--text", "<b> & \"q\" ü\n"},
			`{"name":"n","count":null,"text":"-"}`:   {"n", "--text=-"},
			`{"name":"123","text":"1e3","count":9}`:  {"123", "--text", "1e3", "--count", "9"},
			`{name:'n',/*why*/text:"true",tags:[],}`: {"n", "--text", "true"},
		} {
			flags := w.inside(t, nil, append([]string{"put", "--dry-run"}, args...))
			flags.succeeded(t)
			raw := w.run(t, "put", "--dry-run", "--raw-payload", payload)
			raw.succeeded(t)
			same(t, payload, raw.envelope["data"], flags.envelope["data"])
		}
	})
	t.Run("mixed", func(t *testing.T) {
		t.Parallel()
		a := w.run(t, "put", "n", "--count", "5", "--on", "--raw-payload", `{"name":"m"}`)
		a.refused(t, fault.Invalid)
		same(t, "problems", slices.Sorted(maps.Keys(a.problems(t))), []string{"count", "name", "on"})
		// Shared flags are not arguments of the command.
		w.inside(t, nil, []string{"put", "--quiet", "--dry-run", "--raw-payload", `{"name":"m"}`}).succeeded(t)
	})
	t.Run("problems", func(t *testing.T) {
		t.Parallel()
		a := w.inside(t, nil, []string{"put", "--raw-payload", `{"count":99,"level":"odd","nothing":1,"settings":"x"}`})
		a.refused(t, fault.Invalid)
		same(t, "problems", slices.Sorted(maps.Keys(a.problems(t))), []string{
			"count", "level", "name", "nothing",
			"settings",
		})
		same(t, "missing", a.at(t, "error.missing_args"), []any{"name"})
		w.inside(t, nil, []string{"put", "--raw-payload", `[]`}).refused(t, fault.InvalidJSON)
		// Shared flags are not members of a payload.
		w.inside(t, nil, []string{"put", "--raw-payload", `{"name":"n","dry-run":true}`}).refused(t, fault.Invalid)
		for _, member := range []string{"key", "password"} {
			secret := w.inside(t, nil, []string{"everything", "--raw-payload", `{"` + member + `":"hunter2-and-more"}`})
			if strings.Contains(secret.stdout, "hunter2") || secret.code == 0 {
				t.Errorf("a secret in the payload: %s", secret.stdout)
			}
		}
		w.inside(t, nil, []string{"echo", "--raw-payload", `{}`}).refused(t, fault.Invalid)
		schema := w.inside(t, nil, []string{"put", "--schema"})
		var want []string
		p, _ := tested()
		put, _ := p.Find("put")
		for _, param := range put.Params {
			want = append(want, param.Name)
		}
		slices.Sort(want)
		properties := schema.at(t, "data.raw_payload_schema.properties").(map[string]any)
		same(t, "properties", slices.Sorted(maps.Keys(properties)), want)
		same(t, "required", schema.at(t, "data.raw_payload_schema.required"), []any{"name"})
		same(t, "further members", schema.at(t, "data.raw_payload_schema.additionalProperties"), false)
		accepts := schemaFrom(t, schema.at(t, "data.raw_payload_schema"))
		for payload, well := range map[string]bool{`{"name":"n","settings":{"a":1},"count":3,"on":true,"tags":["x"],"level":"low"}`: true, `{}`: false, `{"name":"n","x":1}`: false, `{"name":"n","level":"odd"}`: false} {
			var v any
			if err := json.Unmarshal([]byte(payload), &v); err != nil {
				t.Fatal(err)
			}
			if err := accepts.Validate(v); well != (err == nil) {
				t.Errorf("raw_payload_schema on %s: %v", payload, err)
			}
		}
	})
}

// FuzzParse gives any arguments to the registry: whatever they are, the answer has the declared form and exit code.
func FuzzParse(f *testing.F) {
	for _, args := range [][]string{
		{"echo", "a", "--count", "5"},
		{"--count", "5", "echo"},
		{"group"},
		{"group", "echo", "-on5", "--", "x"},
		{"put", "--raw-payload", `{"name":"n"}`},
		{"put", "--raw-payload", `{"name":[[1]],"name":{"a":null}}`},
		{"pick", "-"},
		{"echo", "--settings={"},
		{"echo", "\x00", "\xff"},
		{"-"},
		{"--"},
		{""},
		{"=", "--=", "-="},
		{"echo", "--"},
		{"echo", "-n"},
		{"echo", "--output"},
		{"__complete", "echo", ""},
		{"wipe", "x"},
		{"listed", "--cursor", "c1.MTow"},
		{"echo", "--id", "<id>"},
		{"secretive", "--token", "abc"},
		{"echo", "--token-offset", "9", "a"},
		{"echo", "--fields", "values", "--stable-output"},
	} {
		f.Add(strings.Join(args, "\x01"))
	}
	p, err := New(App{
		Name: "oatest", Version: "1.0.0", Summary: "a program",
		Groups: map[string]string{"group": "a group"}, Commands: made(misbehavingArguments()...),
	})
	if err != nil {
		f.Fatal(err)
	}
	w := &world{home: f.TempDir(), dir: f.TempDir()}
	w.env = []string{"HOME=" + w.home}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x01")
		if strings.HasPrefix(args[0], "__complete") ||
			slices.ContainsFunc(args, func(a string) bool {
				return strings.HasPrefix(a, "--cwd") ||
					strings.HasPrefix(a, "--config")
			}) {
			return // the shell's own protocol; and no walks through the machine
		}
		a := w.inside(t, p, append(args, "--output=json"))
		words, _ := p.split(args)
		exits := p.rootCommand().exits()
		if c, known := p.Find(strings.Join(words, " ")); known {
			exits = c.exits()
		}
		exits["4"] = exitEntry{} // of the surroundings: no terminal, no input
		if _, declared := exits[strconv.Itoa(a.code)]; !declared {
			t.Errorf("%q ended with %d", args, a.code)
		}
		if a.stdout == "1.0.0\n" || slices.Contains(args, "--") ||
			slices.ContainsFunc(args, func(a string) bool {
				return strings.HasPrefix(a, "--output") ||
					strings.HasPrefix(a, "--stream")
			}) {
			return // the last --output may have lost its meaning
		}
		if err := envelopeError(a.stdout); err != nil {
			t.Errorf("%q: %v: %s", args, err, a.stdout)
		}
	})
}
