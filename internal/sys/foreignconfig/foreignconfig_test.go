package foreignconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

// places returns one place of each form.
func places(dir string) map[string]Place {
	entry := EntryOf("command", "/bin/omniagent", "args", []string{"mcp"})
	return map[string]Place{
		"json": {Files: []string{filepath.Join(dir, "a.json")}, Path: []string{"servers", "omniagent"}, Entry: entry},
		"toml": {
			Files: []string{filepath.Join(dir, "a.toml")}, Form: TOML, Path: []string{"servers", "omniagent"},
			Entry: entry,
		},
		"whole": {
			Files: []string{filepath.Join(dir, "a.lua")}, Form: Whole, RequiredDir: dir,
			Text: "-- ours\nreturn {}\n",
		},
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, edit func(bool) (Change, error), replace bool) Change {
	t.Helper()
	c, err := edit(replace)
	if err == nil {
		err = c.Write()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestBytesStay installs into files with comments and everything else, twice, and removes: the file is as it was.
func TestBytesStay(t *testing.T) {
	dir := t.TempDir()
	all := places(dir)
	for name, before := range map[string]string{
		"json": "// mine\n{\n\t\"theme\": 'dark', /* why */\n\t\"servers\": {\n\t\t\"other\": {\"command\": " +
			"\"x\"},\n\t},\n}\n",
		"toml": "# mine\nmodel = 'x'   # why\n\n[servers.other]\ncommand = 'x'\n",
	} {
		p := all[name]
		write(t, p.Files[0], before)
		if c := do(t, p.Install, false); c.Unchanged || c.Previous != "" {
			t.Errorf("%s: the first time: %+v", name, c)
		}
		with := text(t, p.Files[0])
		if !strings.HasPrefix(with, before[:20]) || !strings.Contains(with, "/bin/omniagent") {
			t.Errorf("%s: %s", name, with)
		}
		if c := do(t, p.Install, false); !c.Unchanged || c.Previous != "/bin/omniagent" {
			t.Errorf("%s: the second time: %+v", name, c)
		}
		do(t, p.Remove, false)
		if got := text(t, p.Files[0]); got != before {
			t.Errorf("%s: %q became %q", name, before, got)
		}
		if c := do(t, p.Remove, false); !c.Unchanged {
			t.Errorf("%s: removed twice: %+v", name, c)
		}
		if info, err := os.Stat(p.Files[0]); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: the mode is %v, %v", name, info.Mode(), err)
		}
	}
}

// TestOwnEntryKeepsMore: an entry that starts an older place of the program is brought up to date, and what somebody
// added to it stays.
func TestOwnEntryKeepsMore(t *testing.T) {
	p := places(t.TempDir())["json"]
	write(t, p.Files[0], `{"servers": {"omniagent": {"command": "/old/omniagent", "env": {"KEY": "1"}}}}`)
	do(t, p.Install, false)
	const want = `{"servers": {"omniagent": {"command": "/bin/omniagent", "env": {"KEY": "1"}, "args": ["mcp"]}}}`
	if got := text(t, p.Files[0]); got != want {
		t.Error(got)
	}
}

func TestMadeAndTakenAway(t *testing.T) {
	for _, name := range []string{"json", "toml", "whole"} {
		p := places(filepath.Join(t.TempDir(), "sub"))[name]
		if p.RequiredDir != "" {
			if _, err := p.Install(false); err == nil || fault.Of(err).Code != fault.FileMissing {
				t.Errorf("%s: without the directory: %v", name, err)
			}
			if err := os.MkdirAll(p.RequiredDir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		do(t, p.Install, false)
		if c := do(t, p.Install, false); !c.Unchanged {
			t.Errorf("%s: %+v", name, c)
		}
		do(t, p.Remove, false)
		_, err := os.Stat(p.Files[0])
		if gone := errors.Is(err, os.ErrNotExist); gone != (p.Form == Whole) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, form, text string
		code             fault.Code
		says             string
	}{
		{
			"another program", "json", `{"servers": {"omniagent": {"command": "/evil"}}}`, fault.Conflicting,
			"another program",
		},
		{"a table of another", "toml", "[servers.omniagent]\nurl = 'http://x'\n", fault.Conflicting, "another program"},
		{"a file of another", "whole", "-- theirs\n", fault.Conflicting, "another program"},
		{"malformed", "json", "{\n  \"a\": ,\n}", fault.ConfigInvalid, "2:8"},
		{"malformed table", "toml", "a = 1\nb =\n", fault.ConfigInvalid, "2:"},
		{"not an object", "json", `{"servers": []}`, fault.ConfigInvalid, "1:13"},
	} {
		p := places(t.TempDir())[c.form]
		write(t, p.Files[0], c.text)
		_, err := p.Install(false)
		if f := fault.Of(err); err == nil || f.Code != c.code || !strings.Contains(f.Message, c.says) ||
			!strings.Contains(f.Message, p.Files[0]) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := text(t, p.Files[0]); got != c.text {
			t.Errorf("%s: the file became %q", c.name, got)
		}
		if c.code != fault.Conflicting {
			continue
		}
		if _, err := p.Remove(false); fault.Of(err).Code != c.code {
			t.Errorf("%s: removed: %v", c.name, err)
		}
		do(t, p.Install, true)
		if got := text(t, p.Files[0]); strings.Contains(got, "evil") || strings.Contains(got, "url") ||
			strings.Contains(got, "theirs") {
			t.Errorf("%s: replaced, it is %q", c.name, got)
		}
	}
}

func TestLinksAndChanges(t *testing.T) {
	p := places(t.TempDir())["json"]
	write(t, p.Files[0]+".real", "{}")
	if err := os.Symlink(p.Files[0]+".real", p.Files[0]); err != nil {
		t.Skip("links cannot be made here")
	}
	if _, err := p.Install(true); fault.Of(err).Code != fault.Unsafe || !strings.Contains(err.Error(), ".real") {
		t.Error(err)
	}
	if err := os.Remove(p.Files[0]); err != nil {
		t.Fatal(err)
	}
	c, err := p.Install(false)
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.Files[0], `{"new": 1}`)
	if err := c.Write(); fault.Of(err).Code != fault.ConcurrentModification {
		t.Error(err)
	}
	if got := text(t, p.Files[0]); got != `{"new": 1}` {
		t.Error(got)
	}
}

// TestFileWithTheEntryCounts: of several files, the one that has the entry is edited.
func TestFileWithTheEntryCounts(t *testing.T) {
	dir := t.TempDir()
	p := places(dir)["json"]
	p.Files = append(p.Files, filepath.Join(dir, "b.jsonc"))
	write(t, p.Files[0], "{}")
	write(t, p.Files[1], `{"servers": {"omniagent": {"command": "omniagent"}}}`)
	if c := do(t, p.Remove, false); c.File != p.Files[1] || text(t, p.Files[1]) != `{"servers": {}}` {
		t.Errorf("%+v", c)
	}
	if c := do(t, p.Install, false); c.File != p.Files[0] {
		t.Errorf("%+v", c)
	}
}
