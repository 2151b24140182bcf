package tool

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// routeNamed returns a maker of a route, for the calls of a desk.
func routeNamed(name string) func(*Env) Tool {
	return func(env *Env) Tool {
		for _, t := range Routes(env, Ours().In(env)) {
			if t.Name == name || t.Name == Namespace+"."+name {
				return t
			}
		}
		return Tool{}
	}
}

// TestRoutesReplace: the routes come first, in place of the tools that do the same, and only of those that are there.
func TestRoutesReplace(t *testing.T) {
	t.Parallel()
	names := func(all []Tool) (names []string) {
		for _, one := range all {
			names = append(names, one.Name)
		}
		return names
	}
	d := newDesk(t)
	all := Ours().In(d.env)
	want := "SysBuiltIn.read_file SysBuiltIn.write_file SysBuiltIn.edit_text SysBuiltIn.todo_write NotebookEdit " +
		"Glob Grep " +
		"LS tool_call"
	if got := strings.Join(names(Routes(d.env, all)), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	all = slices.DeleteFunc(all, func(t Tool) bool { return t.Name != "Read" && t.Name != "Glob" })
	if got := strings.Join(names(Routes(d.env, all)), " "); got != "SysBuiltIn.read_file Glob tool_call" {
		t.Error(got)
	}
	if got := Routes(d.env, nil); got != nil {
		t.Errorf("%v", names(got))
	}
	for name, want := range map[string]string{"MultiEdit": "SysBuiltIn.edit_text", "Glob": "Glob"} {
		if got := RouteOf(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, want := range map[string]string{"bash": "SysBuiltIn.bash", "Bash": "SysBuiltIn.bash", "glob": ""} {
		if got := RouteNamed(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestFileRoutes: what they answer, and that nothing outside of the workspace can be named.
func TestFileRoutes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	write, read, edit := routeNamed("write_file"), routeNamed("read_file"), routeNamed("edit_text")
	r := d.says(write, object{"path": "a/b.txt", "content": "one\ntwo\n"}, "wrote 8 bytes (overwrite)")
	if r.Change == nil || r.Change.Old != nil || r.Change.New != "one\ntwo\n" {
		t.Errorf("%+v", r.Change)
	}
	d.says(write, object{"path": "a/b.txt", "content": "é", "mode": "append"}, "wrote 2 bytes (append)")
	d.holds("a/b.txt", "one\ntwo\né")
	if r := d.says(read, object{"path": "a/b.txt", "startLine": 2, "endLine": 2}); r.Text != "two" {
		t.Errorf("%q", r.Text)
	}
	d.says(read, object{"file_path": "a/b.txt", "start_line": "1"}, "one\ntwo\né")
	if r := d.says(edit, object{
		"path": "a/b.txt", "action": "replace", "find": "two",
		"replace": "$&",
	}); r.Text != "replace" {
		t.Errorf("%q", r.Text)
	}
	d.says(edit, object{"path": "a/b.txt", "action": "insert", "insertAfter": -1, "newText": "zero"}, "insert")
	d.says(edit, object{"path": "a/b.txt", "action": "delete_range", "range": []int{1, 2}}, "delete_range")
	d.holds("a/b.txt", "zero\n$&\né")
	d.fails(edit, object{"path": "a/b.txt", "action": "replace", "find": "none", "replace": "x"}, "nothing was changed")
	d.fails(edit, object{"path": "a/b.txt", "action": "delete_range", "range": []int{2, 1}}, "Invalid delete range")
	d.fails(edit, object{"path": "a/b.txt", "action": "delete_range", "range": []int{2}}, "two numbers")
	d.fails(edit, object{"path": "a/b.txt", "action": "move"}, "insert, replace or delete_range")
	d.fails(edit, object{"path": "a/b.txt", "action": "insert", "newText": "x"}, `"insertAfter" is missing`)
	d.fails(write, object{"path": "x", "content": "y", "mode": "move"}, "overwrite or append")
	for _, make := range []func(*Env) Tool{write, read, edit} {
		for path, says := range map[string]string{
			"../x": "Path escapes workspace", "/etc/passwd": "Path escapes workspace", " ": "Path is required",
		} {
			d.fails(make, object{
				"path": path, "content": "x", "action": "replace", "find": "x", "replace": "y",
			}, says)
		}
	}
	d.fails(read, object{"path": "none"}, "File not found (none)")
	d.fails(read, object{"path": "a/b.txt", "startLine": "x"}, "a whole number")
	d.put("long", strings.Repeat("0123456789\n", largestPage/10))
	d.says(read, object{"path": "long"}, "Read on with startLine")
	d.says(read, object{"path": "long", "maxBytes": 4}, "0123")
}

// TestTodoRoute: seed 2's vectors, of which the one without activeForm gets an error of ours.
func TestTodoRoute(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Items  json.RawMessage
		Result *struct {
			Items []Todo
			Stats TodoStats
		}
		Error *struct{ Name, Message string }
	}
	data, err := os.ReadFile("testdata/todo_update.json")
	check(t, err)
	check(t, json.Unmarshal(data, &cases))
	for _, c := range cases {
		d := newDesk(t)
		r := d.call(routeNamed("todo_write"), object{"items": c.Items})
		if c.Error != nil {
			if !r.Failed || c.Error.Name == "Error" && !strings.Contains(r.Text, c.Error.Message) {
				t.Errorf("%s: %+v, want %s", c.Items, r, c.Error.Message)
			}
			continue
		}
		stats, _ := json.Marshal(c.Result.Stats)
		if r.Failed || r.Text != string(stats) || !r.Listed || !slices.Equal(d.env.Todos.Get(), c.Result.Items) {
			t.Errorf("%s: %+v, %v", c.Items, r, d.env.Todos.Get())
		}
	}
}

// TestRejected: what cannot become a call is answered with the reason, and never runs.
func TestRejected(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.fails(routeNamed(RejectedName), object{"problem": "the block is not closed"}, "the block is not closed")
	d.fails(routeNamed(RejectedName), object{}, "cannot become a call")
}
