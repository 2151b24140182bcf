package contract

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	t.Run("command", testSchemaOfCommand)
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		first := w.run(t, "listed", "--output-schema")
		first.succeeded(t)
		again := w.run(t, "listed", "--output-schema")
		same(t, "the second time", again.at(t, "data"), first.at(t, "data"))
		judge := schemaFrom(t, first.at(t, "data"))
		for data, well := range map[string]bool{
			`{"items":[{"name":"a","size":1}]}`: true, `{"items":[]}`: true,
			`{"items":[{"name":"a"}]}`: false, `{"items":[{"name":1,"size":1}]}`: false, `{}`: false,
		} {
			var v any
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatal(err)
			}
			if err := judge.Validate(v); well != (err == nil) {
				t.Errorf("%s: %v", data, err)
			}
		}
	})
	t.Run("output_matches", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.stdin = "x"
		w.env = append(w.env, "OMNIAGENT_TEST_TOKEN=x")
		for _, c := range misbehavingArguments() {
			if c.Path == "checked" { // it accepts nothing
				continue
			}
			a := w.inside(t, nil, append(append(strings.Fields(c.Path), requiredOf(c)...), "--output=json"))
			if c.Danger == Destructive {
				a = w.inside(t, nil, append(append(strings.Fields(c.Path), requiredOf(c)...), "--confirm-destructive"))
			}
			a.succeeded(t)
			schema := w.inside(t, nil, append(strings.Fields(c.Path), "--output-schema"))
			if err := schemaFrom(t, schema.at(t, "data")).Validate(a.at(t, "data")); err != nil {
				t.Errorf("%s: %v: %s", c.Path, err, a.stdout)
			}
		}
	})
	t.Run("tree", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "--schema")
		a.succeeded(t)
		validManifest(t, a.at(t, "data"))
		p, _ := tested()
		for _, c := range p.All() {
			entry, _ := a.at(t, "data.commands").(map[string]any)[c.Key()].(map[string]any)
			if entry == nil {
				t.Fatalf("%s is not in the tree", c.Path)
			}
			asked := w.inside(t, nil, append(strings.Fields(c.Path), "--schema"))
			asked.succeeded(t)
			one := asked.at(t, "data").(map[string]any)
			for _, name := range []string{
				"flags", "exit_codes", "output_schema", "examples", "danger_level",
				"description",
			} {
				same(t, c.Path+": "+name, entry[name], one[name])
			}
			further, _ := a.at(t, "meta.command_ext").(map[string]any)[c.Key()].(map[string]any)
			same(t, c.Path+": required_scopes", further["required_scopes"], one["required_scopes"])
			same(t, c.Path+": parameters", further["parameters"], one["parameters"])
		}
	})
	t.Run("alias", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		schema, alias := w.run(t, "--schema", "--stable-output"), w.run(t, "--print-schema", "--stable-output")
		schema.succeeded(t)
		same(t, "--print-schema", alias.stdout, schema.stdout)
	})
	t.Run("version", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.run(t, "ok", "--schema-version", "1").succeeded(t)
		for _, version := range []string{"0", "2", "-1", "01"} {
			a := w.inside(t, nil, []string{"ok", "--schema-version=" + version})
			a.refused(t, fault.SchemaVersion)
			same(t, "corrected_input", a.at(t, "error.corrected_input"), "1")
		}
		w.inside(t, nil, []string{"ok", "--schema-version", "one"}).refused(t, fault.Invalid)
	})
}

func testSchemaOfCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run(t, "everything", "--schema")
	a.succeeded(t)
	for path, want := range map[string]any{
		"description": "a command of the tests", "danger_level": "destructive", "option_placement": "any",
		"required_scopes": []any{"repo:read"}, "requires_auth": true,
		"output_class": "envelope", "read_only": false, "reversible": true, "interactive": true,
		"requires_interactive": false, "requires_editor": false,
		"gui_operations": []any{}, "has_network_io": true, "network_timeout_ms": 5000.0,
		"connect_timeout_ms": 1000.0, "async": true,
		"spawns_background_process": true, "cleanup_command": "oatest wipe", "max_lifetime_seconds": 3600.0,
		"timeout_ms": 60000.0, "safe_default": true,
		"requires_confirmation": true, "steps": []any{"one", "two"}, "resumable": true,
		"config_write_scope": "local", "headless_supported": false,
		"token_env_vars": []any{"OMNIAGENT_TEST_TOKEN"}, "platform": []any{"darwin", "linux", "windows"},
		"supports_streaming": false, "volatile_fields": []any{"values"},
		"contract_version": "1.0.0", "stdin_input.format": "text", "stdin_input.required": false,
		"stdin_input.file_flag": "--input-file",
		"filesystem_side_effects": []any{map[string]any{
			"path": "~/.cache/oatest", "type": "cache", "ttl_seconds": 60.0,
			"clearable_with": "oatest wipe",
		}},
		"subprocess": []any{map[string]any{
			"binary": "git", "user_controlled_args": []any{"id"},
			"hardcoded_args": []any{"log"}, "preserve_locale": true,
		}},
		"requires": []any{map[string]any{
			"if_flag": "level", "if_value": "high",
			"then_required": []any{"text"},
		}},
		"raw_payload_schema.type":                      "object",
		"job_descriptor_schema.properties.job_id.type": "string",
		"output_schema.properties.values.description":  "by parameter",
		"parameters.id.pattern":                        idPattern, "parameters.id.position": 1.0,
		"parameters.id.nargs":        "?",
		"parameters.id.pattern_type": "alphanumeric_id", "parameters.file.pattern_type": "filepath",
		"parameters.text.max_length": 1000.0, "parameters.count.default": 3.0, "parameters.count.type": "integer",
		"parameters.level.enum_values": []any{"low", "high"},
		"parameters.key-from-env.type": "string", "parameters.key-from-file.pattern_type": "filepath",
		"parameters.key": nil, "flags.count.short": "n",
		"exit_codes.0.side_effects": "complete", "exit_codes.2.side_effects": "none",
		"exit_codes.0.description": "it is done",
	} {
		same(t, path, a.at(t, "data."+path), want)
	}
	small := w.inside(t, nil, []string{"ok", "--schema"})
	for path, want := range map[string]any{
		"danger_level": "safe", "required_scopes": []any{}, "requires_auth": false, "option_placement": "any",
		"read_only": true, "async": false, "has_network_io": false,
		"raw_payload_schema": nil, "steps": nil, "stdin_input": nil, "platform": []any{
			"darwin", "linux",
			"windows",
		}, "required_tools": map[string]any{}, "timeout_ms": 30000.0,
	} {
		same(t, "ok: "+path, small.at(t, "data."+path), want)
	}
	exits, _ := a.at(t, "data.exit_codes").(map[string]any)
	same(t, "exit codes", slices.Sorted(maps.Keys(exits)),
		[]string{"0", "1", "10", "129", "130", "131", "143", "2", "4", "8"})
	for code, entry := range exits {
		raw, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate("exit-code-entry.json", raw); err != nil {
			t.Errorf("exit %s: %v", code, err)
		}
		if entry.(map[string]any)["name"] == nil {
			t.Errorf("exit %s has no name", code)
		}
	}
}

// isPath reports whether a key of the manifest is made of a command's words.
var isPath = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*$`)

// manifestOf decodes the manifest of a program, and gives each entry what the groups have of it.
func manifestOf(t *testing.T, p *Program) (raw []byte, m map[string]any) {
	t.Helper()
	data, meta, _ := p.Manifest()
	raw = appendJSON(nil, data)
	var groups []struct {
		Commands []string       `json:"commands"`
		Flags    map[string]any `json:"flags"`
		Exits    map[string]any `json:"exit_codes"`
	}
	err := errors.Join(json.Unmarshal(raw, &m), json.Unmarshal(appendJSON(nil, meta["groups"]), &groups))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if len(g.Commands) < 2 {
			t.Errorf("a group has only %v", g.Commands)
		}
		for _, key := range g.Commands {
			entry := m["commands"].(map[string]any)[key].(map[string]any)
			maps.Copy(entry["flags"].(map[string]any), g.Flags)
			maps.Copy(entry["exit_codes"].(map[string]any), g.Exits)
		}
	}
	return raw, m
}

// TestAlike: what several entries have in the same form is taken out of them, but for what the shortest call needs.
func TestAlike(t *testing.T) {
	t.Parallel()
	flag := func(name string, required bool) member {
		return member{name, object{{"type", "string"}, {"required", required}}}
	}
	entry := func(name string, flags object, number, when string) member {
		return member{name, object{
			{"flags", flags},
			{"exit_codes", object{{"0", object{{"description", "done"}}}, {number, object{{"description", when}}}}},
		}}
	}
	entries := object{
		entry("one", object{flag("id", true), flag("same", false), flag("own", false)}, "4", "no home"),
		entry("two", object{flag("id", true), flag("same", false)}, "5", "no home"),
		entry("three", object{flag("other", false)}, "4", "no home"),
	}
	groups := takeAlike(entries)
	same(t, "the groups", string(appendJSON(nil, groups)), `[{"commands":["one","two"],"flags":`+
		`{"same":{"type":"string","required":false}}},{"commands":["one","three"],"exit_codes":`+
		`{"4":{"description":"no home"}}}]`)
	same(t, "the first entry", string(appendJSON(nil, entries[0].value)), `{"flags":`+
		`{"id":{"type":"string","required":true},"own":{"type":"string","required":false}},`+
		`"exit_codes":{"0":{"description":"done"}}}`)
	same(t, "the second entry", string(appendJSON(nil, entries[1].value)), `{"flags":`+
		`{"id":{"type":"string","required":true}},"exit_codes":{"0":{"description":"done"},`+
		`"5":{"description":"no home"}}}`)
	same(t, "groups of what differs", len(takeAlike(entries[2:])), 0)
}

func TestManifest(t *testing.T) {
	t.Parallel()
	p := wholeProgram(t)
	raw, m := manifestOf(t, p)
	commands := m["commands"].(map[string]any)
	t.Run("schema", func(t *testing.T) {
		t.Parallel()
		mine, err := tested()
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range []*Program{p, mine} {
			raw, m := manifestOf(t, program)
			validManifest(t, raw)
			commands := m["commands"].(map[string]any)
			for key := range commands {
				if !isPath.MatchString(key) {
					t.Errorf("the key %q is not a dotted path", key)
				}
			}
			for _, c := range program.All() {
				if _, there := commands[c.Key()]; !there {
					t.Errorf("%s is missing", c.Path)
				}
			}
			same(t, "number of entries", len(commands), len(program.Commands)+len(program.Groups)+1)
			for key, entry := range commands {
				below, _ := entry.(map[string]any)["subcommands"].([]any)
				for _, child := range below {
					if _, there := commands[child.(string)]; !there {
						t.Errorf("%s names %s, which is not there", key, child)
					}
				}
			}
		}
	})
	t.Run("entries", func(t *testing.T) {
		t.Parallel()
		for key, value := range commands {
			entry := value.(map[string]any)
			if entry["danger_level"] == nil || entry["description"] == "" {
				t.Errorf("%s: %v", key, entry)
			}
			exits, _ := entry["exit_codes"].(map[string]any)
			if exits["0"] == nil {
				t.Errorf("%s never succeeds: %v", key, exits)
			}
			for name, flag := range entry["flags"].(map[string]any) {
				if f := flag.(map[string]any); f["type"] == nil || f["description"] == "" {
					t.Errorf("%s --%s: %v", key, name, f)
				}
			}
			c, known := p.Find(strings.ReplaceAll(key, ".", " "))
			if known && (c.Stdin != nil || slices.ContainsFunc(c.Params, func(p Param) bool { return p.Required })) &&
				entry["examples"] == nil {
				t.Errorf("%s needs something, and no example shows it", key)
			}
		}
	})
	t.Run("size", func(t *testing.T) {
		t.Parallel()
		// An agent pays for every byte: 8 KiB for what is shared, 650 bytes a command and 110 a flag of its own, and 80
		// KB in all.
		flags := 0
		for _, c := range p.All() {
			flags += len(c.Params)
		}
		var printed strings.Builder
		p.Run(t.Context(), Host{
			Args: []string{"manifest"}, Lookup: func(string) (string, bool) { return "", false }, Dir: t.TempDir(),
			Stdin: strings.NewReader(""), Stdout: &printed, Stderr: io.Discard,
		}, nil)
		limit := min(80_000, 8<<10+650*len(p.Commands)+110*flags)
		if n := printed.Len(); n > limit || n < len(raw) {
			t.Errorf("the manifest is printed in %d bytes for %d commands with %d flags, more than %d", n,
				len(p.Commands), flags, limit)
		}
		shared := commands[p.Name].(map[string]any)
		for _, name := range []string{"help", "output", "dry-run", "confirm-destructive"} {
			if shared["flags"].(map[string]any)[name] == nil {
				t.Errorf("--%s is not among the shared flags", name)
			}
		}
		for key, value := range commands {
			for name, flag := range value.(map[string]any)["flags"].(map[string]any) {
				// A flag of the command itself may have the name.
				if key != p.Name && reflect.DeepEqual(flag, shared["flags"].(map[string]any)[name]) {
					t.Errorf("%s repeats --%s", key, name)
				}
			}
			for _, code := range []string{"129", "130", "131", "143"} {
				if (value.(map[string]any)["exit_codes"].(map[string]any)[code] != nil) != (key == p.Name) {
					t.Errorf("exit %s in %s", code, key)
				}
			}
		}
	})
	t.Run("truth", func(t *testing.T) {
		t.Parallel()
		for _, c := range p.All() {
			entry := commands[c.Key()].(map[string]any)
			for n, exit := range c.exits() {
				told, _ := entry["exit_codes"].(map[string]any)[n].(map[string]any)
				if told == nil {
					told, _ = commands[p.Name].(map[string]any)["exit_codes"].(map[string]any)[n].(map[string]any)
				}
				if n == "10" && told != nil && c.Danger == Safe { // the shared entry is for the other commands
					continue
				}
				if told == nil || told["retryable"] != exit.Retryable {
					t.Errorf("%s, exit %s: the manifest says %v, the command %+v", c.Path, n, told, exit)
				}
			}
			if c.Output == nil {
				continue
			}
			always, _ := schemaOf(c.Output).get("required")
			list, _ := always.([]any)
			told, _ := entry["output_schema"].(map[string]any)["required"].([]any)
			if len(list) != len(told) || len(list) > 0 && !reflect.DeepEqual(list, told) {
				t.Errorf("%s always has %v, in the manifest %v", c.Path, list, told)
			}
		}
	})
	t.Run("etag", func(t *testing.T) { testManifestEtag(t, p) })
	t.Run("enough", func(t *testing.T) { testManifestIsEnough(t, p, commands) })
}

func testManifestEtag(t *testing.T, p *Program) {
	t.Parallel()
	w := newWorld(t)
	first := w.inside(t, p, []string{"manifest"})
	first.succeeded(t)
	validManifest(t, first.at(t, "data"))
	etag, _ := first.at(t, "data.etag").(string)
	same(t, "the second etag", w.inside(t, p, []string{"manifest", "--stable-output"}).at(t, "data.etag"), etag)
	current := w.inside(t, p, []string{"manifest", "--etag", etag})
	current.succeeded(t)
	same(t, "data", current.at(t, "data"), nil)
	same(t, "meta.not_modified", current.at(t, "meta.not_modified"), true)
	old := w.inside(t, p, []string{"manifest", "--etag", "sha256:0123"})
	same(t, "with an old etag", old.at(t, "data.etag"), etag)
	app := p.App
	app.Commands = append(slices.Clone(app.Commands),
		made(quick(Command{Path: "more", Examples: []Example{{"More", "omniagent more"}}}))...)
	if _, _, other := Open(app).Manifest(); other == etag {
		t.Error("another tree has the same etag")
	}
}

// testManifestIsEnough parses every example with the manifest alone.
func testManifestIsEnough(t *testing.T, p *Program, commands map[string]any) {
	t.Parallel()
	shared := commands[p.Name].(map[string]any)["flags"].(map[string]any)
	place := regexp.MustCompile(`argument ([0-9]+)`)
	examples := 0
	for _, c := range p.All() {
		for _, e := range c.Examples {
			_, line, piped := strings.Cut(e.Command, "| ")
			if !piped {
				line = e.Command
			}
			line, _, _ = strings.Cut(line, " < ")
			words := strings.Fields(line)
			path, rest := words[1], words[2:]
			for len(rest) > 0 && commands[path+"."+rest[0]] != nil {
				path, rest = path+"."+rest[0], rest[1:]
			}
			entry, _ := commands[path].(map[string]any)
			if entry == nil {
				t.Errorf("%q: no entry %s", e.Command, path)
				continue
			}
			places, arguments, many := 0, 0, false
			for _, flag := range entry["flags"].(map[string]any) {
				f := flag.(map[string]any)
				if m := place.FindStringSubmatch(f["description"].(string)); m != nil {
					n, _ := strconv.Atoi(m[1])
					places, many = max(places, n), many || f["type"] == "array"
				}
			}
			for i := 0; i < len(rest); i++ {
				if rest[i] == "--" { // no flags follow
					arguments += len(rest) - i - 1
					break
				}
				for long, flag := range entry["flags"].(map[string]any) {
					if short := flag.(map[string]any)["short"]; short != nil && rest[i] == "-"+short.(string) {
						rest[i] = "--" + long
					}
				}
				name, isFlag := strings.CutPrefix(rest[i], "--")
				name, _, attached := strings.Cut(name, "=")
				if !isFlag {
					arguments++
					continue
				}
				flag, _ := entry["flags"].(map[string]any)[name].(map[string]any)
				if flag == nil {
					flag, _ = shared[name].(map[string]any)
				}
				if flag == nil {
					t.Errorf("%q: the manifest has no --%s", e.Command, name)
				} else if flag["type"] != "boolean" && !attached {
					i++
				}
			}
			if arguments > places && !many && !strings.ContainsAny(line, `'"`) {
				t.Errorf("%q has %d arguments, the manifest %d places", e.Command, arguments, places)
			}
			examples++
		}
	}
	if examples < len(p.Commands) {
		t.Errorf("only %d examples", examples)
	}
}
