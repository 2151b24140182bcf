package eidolon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vectors are what the original does.
type vectors struct {
	ProjectID []struct{ Path, ID string } `json:"project_id"`
	Names     []struct {
		Path string
		Name *string
	} `json:"slash_names"`
	Agents []struct {
		ID     string
		Files  map[string]string
		Agents []struct{ Name, Description, SystemPrompt, Location string }
	}
	Discovery struct {
		Files      map[string]string
		Discovered []struct{ Name, FilePath, Source string }
	} `json:"slash_discovery"`
	Triggers struct {
		Agent []struct {
			Input string
			Agent *string
		}
		File []struct {
			Input, Workspace, Normalized string
			Refs                         []string
		}
	}
}

func read(t *testing.T) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// write writes files of a vector into a home directory and a workspace.
func write(t *testing.T, files map[string]string) (home, root string) {
	t.Helper()
	home, root = t.TempDir(), t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		if below, ok := strings.CutPrefix(name, "~/"); ok {
			file = filepath.Join(home, below)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home, root
}

func all(string, []byte) bool { return true }

func TestProjectID(t *testing.T) {
	for _, c := range read(t).ProjectID {
		if got := ProjectID(c.Path); got != c.ID {
			t.Errorf("ProjectID(%q) = %q, want %q", c.Path, got, c.ID)
		}
	}
	if got := ProjectID("///"); got != "project" {
		t.Errorf("a path without a name is %q", got)
	}
}

func TestCommandNames(t *testing.T) {
	for _, c := range read(t).Names {
		want := ""
		if c.Name != nil {
			want = strings.TrimPrefix(*c.Name, "/")
		}
		if got := CommandName(c.Path); got != want {
			t.Errorf("CommandName(%q) = %q, want %q", c.Path, got, want)
		}
	}
	for file, want := range map[string]string{"A/B.MD": "A:B", "notes.txt": "", ".md": ""} {
		if got := CommandName(file); got != want {
			t.Errorf("CommandName(%q) = %q, want %q", file, got, want)
		}
	}
}

func TestAgents(t *testing.T) {
	for _, c := range read(t).Agents {
		home, root := write(t, c.Files)
		got := ReadPrompts(t.Context(), home, root, all).Agents
		if len(got) != len(c.Agents) {
			t.Errorf("%s: %d agents, want %d: %+v", c.ID, len(got), len(c.Agents), got)
			continue
		}
		for i, want := range c.Agents {
			p := got[i]
			if p.Name != want.Name || p.Description != want.Description || p.Text != want.SystemPrompt ||
				p.Project != (want.Location == "project") {
				t.Errorf("%s: %+v, want %+v", c.ID, p, want)
			}
		}
	}
}

// TestCommands: the original lists agents as commands too, which nobody wants.
func TestCommands(t *testing.T) {
	v := read(t).Discovery
	home, root := write(t, v.Files)
	var got, want []string
	for _, p := range ReadPrompts(t.Context(), home, root, all).Commands {
		got = append(got, "/"+p.Name)
	}
	for _, one := range v.Discovered {
		if !strings.HasPrefix(one.Name, "/agents:") {
			want = append(want, one.Name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}
}

// TestUntrusted: what nobody trusts takes nobody's place.
func TestUntrusted(t *testing.T) {
	home, root := write(t, map[string]string{
		"~/.eidolon/agents/a.md": "mine", ".eidolon/agents/a.md": "theirs", ".eidolon/agents/b.md": "theirs",
		"~/.eidolon/commands/c.md": "mine", ".eidolon/commands/c.md": "theirs",
	})
	found := ReadPrompts(t.Context(), home, root, func(path string, content []byte) bool { return false })
	for _, p := range append(found.Agents, found.Commands...) {
		if p.Untrusted != (p.Name == "b") || !p.Untrusted && p.Text != "mine" {
			t.Errorf("%+v", p)
		}
	}
	if len(found.Agents) != 2 || len(found.Commands) != 1 {
		t.Errorf("%+v", found)
	}
}

// TestProblems: a damaged file hides no other one.
func TestProblems(t *testing.T) {
	home, root := write(t, map[string]string{
		".eidolon/agents/bad.md": "---\nname: x\n  what is this\n---\nbody", ".eidolon/agents/good.md": "good",
		".eidolon/agents/open.md": "---\nname: u\nbody",
	})
	if err := os.Symlink("/etc/passwd", filepath.Join(root, Folder, "agents", "out.md")); err != nil {
		t.Fatal(err)
	}
	found := ReadPrompts(t.Context(), home, root, all)
	if len(found.Agents) != 3 || len(found.Problems) != 3 {
		t.Fatalf("%+v", found)
	}
	if p := found.Problems[0]; p.Line != 3 || p.Column != 3 || !strings.HasSuffix(p.Path, "bad.md") {
		t.Errorf("%v", p)
	}
	if p := found.Problems[1]; p.Line != 1 || !strings.HasSuffix(p.Path, "open.md") {
		t.Errorf("%v", p)
	}
}

func TestReferences(t *testing.T) {
	v := read(t).Triggers
	for _, c := range v.Agent {
		want := ""
		if c.Agent != nil {
			want = *c.Agent
		}
		if got := AgentNamed(c.Input); got != want {
			t.Errorf("AgentNamed(%q) = %q, want %q", c.Input, got, want)
		}
	}
	for _, c := range v.File {
		got, files := FilesNamed(c.Input, c.Workspace, "/home/a", nil)
		var refs []string
		for _, f := range files {
			refs = append(refs, f.Path)
		}
		if got != c.Normalized || !slices.Equal(refs, c.Refs) {
			t.Errorf("FilesNamed(%q) = %q, %q; want %q, %q", c.Input, got, refs, c.Normalized, c.Refs)
		}
	}
	there := func(path string) bool { return path == "/w/a.txt" || path == "/w/odd," }
	got, files := FilesNamed("(@file:a.txt), @file:odd, and @file:none. and @file:../x", "/w", "", there)
	if want := "(@file:/w/a.txt), @file:/w/odd, and @file:/w/none. and @file:/x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got, quoted := FilesNamed(`see @file:"my notes.txt", @file:"a.txt"`, "/w", "", there)
	if want := `see @file:"/w/my notes.txt", @file:/w/a.txt`; got != want || quoted[0].Inside != "my notes.txt" {
		t.Errorf("%q, %+v", got, quoted)
	}
	if files[0].Path != "/w/a.txt" || files[0].Outside || files[3].Path != "/x" || !files[3].Outside {
		t.Errorf("%+v", files)
	}
	got, typed := FilesNamed("@file:~/a b, @file:~x @file:~", "/w", "/home/a", nil)
	want := "@file:/home/a/a b, @file:/w/~x @file:/home/a"
	if got != want || typed[0].Inside != "" || typed[0].Outside {
		t.Errorf("%q, want %q: %+v", got, want, typed)
	}
}
