package acp

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/core/event"
)

// TestPreview: what an edit would make of a file is only told where it is sure.
func TestPreview(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("one two two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "outside"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"old_string":"one","new_string":"1"}`: "one two " +
			"two\n>1 two two\n",
		`{"oldString":"two","newString":"2","replaceAll":true}`: "one two " +
			"two\n>one 2 2\n",
		`{"old_string":"two","new_string":"2"}`:       "part two>2",
		`{"old_string":"three","new_string":"3"}`:     "part three>3",
		`{"old_string":"two","new_string":"two two"}`: "part two>two two",
		`{"edits":[{"old_string":"one","new_string":"1"},{"old_string":"1 two","new_string":"x"}]}`: "one two " +
			"two\n>x two\n",
		`{"content":"new"}`:                    "one two two\n>new",
		`{"content":"one two two\n"}`:          "",
		`{"file_path":"none","content":"new"}`: "nothing>new",
		`{"file_path":"` + filepath.ToSlash(filepath.Join(filepath.Dir(dir), "outside")) + `","content":"x"}`: "",
		`{"file_path":"../outside","old_string":"secret","new_string":"x"}`:                                   "part secret>x",
		`{}`: "", `17`: "",
	} {
		n := newNarrator("m", dir, nil)
		path := cmp.Or(event.Texts(json.RawMessage(in), "file_path")["file_path"], "a")
		got := ""
		for _, c := range n.preview(&event.Call{Kind: event.Write, Path: path, Input: json.RawMessage(in)}) {
			if c.Diff.Part {
				got += "part "
			}
			old := "nothing"
			if c.Diff.Old != nil {
				old = *c.Diff.Old
			}
			got += old + ">" + c.Diff.New
		}
		if got != want {
			t.Errorf("%s: %q instead of %q", in, got, want)
		}
	}
}
