package tool

import (
	"path/filepath"
	"testing"

	"omniagent/internal/core/event"
)

// TestChange: a tool that changes a file reports the old and the new content, but only of text.
func TestChange(t *testing.T) {
	d := newDesk(t)
	old := func(c *event.Change) string {
		switch {
		case c == nil:
			return "nothing"
		case c.Old == nil:
			return "no file"
		}
		return *c.Old
	}
	path := filepath.Join(d.env.Files.Path(), "a.txt")
	for _, step := range []struct {
		tool func(*Env) Tool
		in   object
		old  string
		new  string
	}{
		{Write, object{"file_path": "a.txt", "content": "one\n"}, "no file", "one\n"},
		{Write, object{"file_path": "a.txt", "content": "two\n"}, "one\n", "two\n"},
		{Edit, object{"file_path": "a.txt", "old_string": "two", "new_string": "two two"}, "two\n", "two two\n"},
		{MultiEdit, object{"file_path": "a.txt", "edits": []object{
			{"old_string": "two two", "new_string": "3"}, {"old_string": "3", "new_string": "4"},
		}}, "two two\n", "4\n"},
	} {
		r := d.says(step.tool, step.in)
		if r.Change == nil || old(r.Change) != step.old || r.Change.New != step.new || r.Change.Path != path {
			t.Errorf("%v: %+v, %q", step.in, r.Change, old(r.Change))
		}
	}
	d.put("b.bin", "\xff\xfe\xff")
	if r := d.says(Write, object{"file_path": "b.bin", "content": "x"}); r.Change != nil {
		t.Errorf("of a binary file: %+v", r.Change)
	}
	if r := d.fails(Edit, object{"file_path": "a.txt", "old_string": "not there", "new_string": "x"}); r.Change != nil {
		t.Errorf("of a failure: %+v", r.Change)
	}
}
