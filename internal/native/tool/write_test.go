package tool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	d := newDesk(t)
	r := d.says(Write, object{"file_path": "n/m/new.txt", "content": "héy"})
	if r.Text != "Successfully wrote 3 characters to n/m/new.txt" {
		t.Error(r.Text)
	}
	d.holds("n/m/new.txt", "héy")
	d.says(Write, object{"path": "n/m/new.txt", "content": ""}, "wrote 0 characters")
	d.holds("n/m/new.txt", "")
	d.fails(Write, object{"file_path": "../out/x", "content": "x"}, "lies outside the workspace")
	d.fails(Write, object{"file_path": "n", "content": "x"}, "n is a directory")
	d.fails(Write, object{"file_path": "n/m/new.txt/x", "content": "x"})
	d.fails(Write, object{"file_path": "x"}, `"content" is missing: it must be a string`, `A right input: {"file_path"`)
	if entries, _ := os.ReadDir(filepath.Join(d.top, "out")); len(entries) > 0 {
		t.Errorf("something was written outside: %v", entries)
	}
}

func TestWriteKeepsTheWayAFileIsWritten(t *testing.T) {
	d := newDesk(t)
	for old, want := range map[string]string{
		"\ufeffold":            "\ufeffä\r\n",
		"\xff\xfeo\x00":        "\xff\xfe\xe4\x00\r\x00\n\x00",
		"\xfe\xff\x00o\x00":    "\xfe\xff\x00\xe4\x00\r\x00\n",
		"caf\xe9, plain bytes": "ä\r\n",
	} {
		d.put("a", old)
		d.env.Seen = &Seen{}
		d.says(Write, object{"file_path": "a", "content": "ä\r\n"})
		d.holds("a", want)
	}
	d.env.Seen = &Seen{}
	d.put("a", "\ufeffold")
	d.says(Write, object{"file_path": "a", "content": "\ufeffnew"})
	d.holds("a", "\ufeffnew")
	if runtime.GOOS == "windows" {
		return
	}
	check(t, os.Chmod(filepath.Join(d.in, "a"), 0o750))
	d.says(Write, object{"file_path": "a", "content": "x"})
	info, err := os.Stat(filepath.Join(d.in, "a"))
	check(t, err)
	if info.Mode().Perm() != 0o750 {
		t.Errorf("the mode is %o", info.Mode().Perm())
	}
	check(t, os.Chmod(filepath.Join(d.in, "a"), 0o444))
	d.fails(Write, object{"file_path": "a", "content": "y"}, "a is read-only")
}

// TestChangesOfOthersAreNotLost has somebody change a file between the model's read and its write.
func TestChangesOfOthersAreNotLost(t *testing.T) {
	d := newDesk(t)
	changes := map[string]func(*Env) Tool{
		`{"file_path": "a.ipynb", "content": "x"}`:                                        Write,
		`{"file_path": "a.ipynb", "old_string": "cells", "new_string": "x"}`:              Edit,
		`{"file_path": "a.ipynb", "edits": [{"old_string": "cells", "new_string": "x"}]}`: MultiEdit,
		`{"notebook_path": "a.ipynb", "cell_id": "0", "edit_mode": "delete"}`:             NotebookEdit,
	}
	const before, after = `{"cells": [{}], "x": 1}`, `{"cells": [{}], "x": 2}`
	for input, change := range changes {
		d.put("a.ipynb", before)
		d.says(Read, object{"file_path": "a.ipynb"})
		d.put("a.ipynb", after)
		d.fails(change, input, "a.ipynb has changed on disk since it was read; nothing was written. Read it again")
		d.holds("a.ipynb", after)

		d.says(Read, object{"file_path": "a.ipynb", "limit": 1}) // a part is enough: all of it was looked at
		d.says(change, input)
		d.put("a.ipynb", before) // after our own change, too
		d.fails(change, input, "has changed on disk")
		d.env.Seen = &Seen{} // never read: it may be overwritten
		d.says(change, input)
	}
	d.put("gone", "x")
	d.says(Read, object{"file_path": "gone"})
	check(t, os.Remove(filepath.Join(d.in, "gone")))
	d.says(Write, object{"file_path": "gone", "content": "y"})
}

// meanwhile is a turn during which somebody else does something: when a tool asks whether it still runs, which is
// between what it reads and what it writes.
type meanwhile struct {
	context.Context
	do func()
}

func (m meanwhile) Err() error {
	m.do()
	return m.Context.Err()
}

// TestChangesInTheLastMomentAreNotLost has somebody change or make a file while a tool is at it.
func TestChangesInTheLastMomentAreNotLost(t *testing.T) {
	for input, change := range map[string]func(*Env) Tool{
		`{"file_path": "a", "content": "x"}`:                         Write,
		`{"file_path": "a", "old_string": "old", "new_string": "x"}`: Edit,
		`{"file_path": "a", "old_string": "", "new_string": "x"}`:    Edit,
	} {
		for _, before := range []string{"old", ""} {
			if before == "" && strings.Contains(input, `"old"`) || before != "" && strings.Contains(input, `""`) {
				continue // there is nothing to change
			}
			d := newDesk(t)
			if before != "" {
				d.put("a", before)
				d.says(Read, object{"file_path": "a"})
			}
			action, err := change(d.env).Plan(json.RawMessage(input))
			check(t, err)
			asked := 0
			r := action.Run(meanwhile{t.Context(), func() { asked++; d.put("a", "theirs") }})
			if !r.Failed || !strings.Contains(r.Text, "a has changed on disk") || asked == 0 {
				t.Errorf("%s on %q: %s", input, before, r.Text)
			}
			d.holds("a", "theirs")
		}
	}
}

func TestLinksAreNoWayOut(t *testing.T) {
	d := newDesk(t)
	out := filepath.Join(d.top, "out")
	check(t, os.WriteFile(filepath.Join(out, "secret"), []byte("secret"), 0o600))
	for name, to := range map[string]string{
		"file": "../out/secret", "file-absolute": filepath.Join(out, "secret"), "dir": "../out", "dir-absolute": out,
		"dangling": "../out/none", "dangling-absolute": filepath.Join(out, "none"),
	} {
		if err := os.Symlink(to, filepath.Join(d.in, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	for _, name := range []string{
		"file", "file-absolute", "dir/secret", "dir-absolute/secret", "dangling",
		"dangling-absolute", "dir/none",
	} {
		d.fails(Read, object{"file_path": name}, "outside the workspace")
		d.fails(Write, object{"file_path": name, "content": "x"}, "outside the workspace")
		d.fails(Edit, object{"file_path": name, "old_string": "secret", "new_string": "x"}, "outside the workspace")
		d.fails(Edit, object{"file_path": name, "old_string": "", "new_string": "x"})
		d.fails(MultiEdit, object{"file_path": name, "edits": []object{{"old_string": "secret", "new_string": "x"}}},
			"outside the workspace")
	}
	d.fails(LS, object{"path": "dir"}, "outside the workspace")
	d.fails(LS, object{"path": "dir-absolute"}, "outside the workspace")
	if entries, _ := os.ReadDir(out); len(entries) != 1 {
		t.Errorf("something was made outside: %v", entries)
	}
	if data, _ := os.ReadFile(filepath.Join(out, "secret")); string(data) != "secret" {
		t.Errorf("the file outside holds %q", data)
	}
	check(t, os.Link(filepath.Join(out, "secret"), filepath.Join(d.in, "hard")))
	d.says(Edit, object{"file_path": "hard", "old_string": "secret", "new_string": "x"})
	if data, _ := os.ReadFile(filepath.Join(out, "secret")); string(data) != "secret" {
		t.Errorf("the other name of the file holds %q", data)
	}
}
