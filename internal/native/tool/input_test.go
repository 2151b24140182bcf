package tool

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"omniagent/internal/core/event"
)

func TestInputIsKeptForHosts(t *testing.T) {
	d := newDesk(t)
	for given, want := range map[string]string{
		`{"path": "a", "limit": "5"}`:                      `{"file_path":"a","limit":5}`,
		`{"x": {"b": 1, "a": [ 2 ]}, "filePath": "a<b"}`:   `{"x":{"b":1,"a":[2]},"file_path":"a<b"}`,
		`{"file_path": "a", "path": "b"}`:                  `{"file_path":"a","path":"b"}`,
		`{"file_path": "a", "file_path": "b"}`:             `{"file_path":"b"}`,
		`"{\"file_path\": \"a\", \"offset\": \" 2 \"}"`:    `{"file_path":"a","offset":2}`,
		"{\"file_path\": \"a\xff\"}":                       "{\"file_path\":\"a\ufffd\"}",
		`{"file_path": "a", "offset": 2.0, "limit": null}`: `{"file_path":"a","offset":2.0,"limit":null}`,
	} {
		action, err := Read(d.env).Plan(json.RawMessage(given))
		if err != nil || string(action.Input) != want {
			t.Errorf("%s: got %s, %v, want %s", given, action.Input, err, want)
		}
	}
}

func TestInputThatIsWrongIsExplained(t *testing.T) {
	d := newDesk(t)
	for given, parts := range map[string][]string{
		`{}`: {
			`Read cannot be called like this: "file_path" is missing: it must be a string. A right input: {"file_path": "src/main.go"`,
		},
		`{"file_path": 5, "limit": "x"}`: {
			`"file_path" must be a string, but came the number 5; "limit" must be a whole number from 0 on, but came the string "x"`,
		},
		`{"file_path": ["a"]}`:              {`came a list`},
		`{"file_path": {"a": 1}}`:           {`came an object`},
		`{"file_path": true}`:               {`came true`},
		`{"file_path": "a", "limit": 1.5}`:  {`came the number 1.5`},
		`{"file_path": "a", "limit": 1e99}`: {`but came 1e99`},
		`[1]`:                               {"the input must be a JSON object, but came a list"},
		`{"a": `:                            {"not valid JSON"},
		`"hello"`:                           {"must be a JSON object"},
		`5`:                                 {"came the number 5"},
	} {
		_, err := Read(d.env).Plan(json.RawMessage(given))
		if err == nil {
			t.Errorf("%s: no error", given)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, without %s", given, err, part)
			}
		}
	}
}

// ours are the tools of these files.
func ours() []func(*Env) Tool {
	return []func(*Env) Tool{Read, Write, Edit, MultiEdit, NotebookEdit, LS, TodoWrite}
}

func TestToolsSayWhatTheyWouldDo(t *testing.T) {
	d := newDesk(t)
	inputs := map[string]string{
		"Read": `{"file_path": "./a//b"}`, "Write": `{"file_path": "a/b", "content": ""}`,
		"Edit":         example("Edit"),
		"MultiEdit":    example("MultiEdit"),
		"NotebookEdit": example("NotebookEdit"), "LS": example("LS"),
		"TodoWrite": example("TodoWrite"),
	}
	for _, make := range ours() {
		tool := make(d.env)
		action, err := tool.Plan(json.RawMessage(inputs[tool.Name]))
		check(t, err)
		changes := tool.Name == "Write" || strings.HasSuffix(tool.Name, "Edit")
		if action.Changes != changes || (action.Kind == event.Write) != changes || action.Title == "" ||
			action.Run == nil || action.Kind != tool.Kind || action.Changes != tool.Changes {
			t.Errorf("%s: got %+v", tool.Name, action)
		}
		if len(action.Paths) != 1 && tool.Name != "TodoWrite" || len(action.Paths) == 1 &&
			strings.Contains(action.Paths[0], "//") {
			t.Errorf("%s: got the paths %q", tool.Name, action.Paths)
		}
		var schema struct {
			Type       string
			Properties map[string]any
			Required   []string
		}
		check(t, json.Unmarshal(tool.Input, &schema))
		if schema.Type != "object" || tool.Description == "" {
			t.Errorf("%s: the schema is %s", tool.Name, tool.Input)
		}
		for _, name := range schema.Required {
			if schema.Properties[name] == nil {
				t.Errorf("%s: %s is required and not there", tool.Name, name)
			}
		}
	}
}

// FuzzPlan gives any input to every tool, and runs what comes of it in an empty workspace.
func FuzzPlan(f *testing.F) {
	d := newDesk(f)
	for _, seed := range []string{
		"", "null", "{}", "[]", `"x"`, "\xff", `{"file_path": "a\u0000b"}`,
		`{"file_path": "\ud800", "content": "\udfff"}`,
		example("Read"), example("Write"), example("Edit"), example("MultiEdit"),
		example("NotebookEdit"), example("LS"), example("TodoWrite"),
		`{"path": "x", "edits": "[{}]", "todos": [null, 5, {"id": []}], "ignore": ["[", 1], "offset": -9e99, "limit": "NaN"}`,
		`{"file_path": "../../x", "old_string": "", "new_string": "\r\n"}`,
		`{"notebook_path": "a.ipynb", "cell_id": [], "edit_mode": 5}`,
		`"{\"file_path\": \"~\"}"`, `{"file_path": "` + strings.Repeat("a/", 3000) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, make := range ours() {
			tool := make(d.env)
			action, err := tool.Plan(raw)
			if err != nil {
				if message := failed(err).Text; message == "" || !utf8.ValidString(message) ||
					len(message) > 20_000+2*len(raw) {
					t.Fatalf("%s says %q", tool.Name, message)
				}
				continue
			}
			if !json.Valid(action.Input) || !utf8.Valid(action.Input) {
				t.Fatalf("%s: the input became %q", tool.Name, action.Input)
			}
			if action.Changes && tool.Name != "NotebookEdit" {
				continue // the workspace of the fuzzer stays empty
			}
			if r := action.Run(t.Context()); !utf8.ValidString(r.Text) {
				t.Fatalf("%s says %q", tool.Name, r.Text)
			}
		}
	})
}

// example is an input of a tool that is right.
func example(name string) string { return specOf(event.ToolSpec{Name: name}).example }
