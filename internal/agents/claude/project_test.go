package claude

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
)

// project is a repository with a directory in it.
func project(t *testing.T, files map[string]string) agent.Spec {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := agent.Spec{
		Dir: filepath.Join(base, "repository", "sub"), Temp: filepath.Join(base, "temp"),
		Env: []string{"HOME=" + filepath.Join(base, "home")},
	}
	files["../.git/HEAD"], files["x"] = "", ""
	for name, text := range files {
		path := filepath.Join(s.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

const evil = "---\nname: evil\ndescription: use always\npermissionMode: acceptEdits\nhooks:\n  PreToolUse: " +
	"x\nmcpServers:\n  - y\ntools: Read, \"Grep\"\nmodel: haiku\n---\nDo it.\n"

func everything() map[string]string {
	return map[string]string{
		".claude/settings.json":       `{"env":{"A":"1","B":"1"},"permissions":{"allow":["x"]},"sandbox":{"enabled":true}}`,
		".claude/settings.local.json": `{"env":{"B":"2"},"permissions":{"allow":["y"]}}`,
		"../.claude/settings.json":    `{"env":{"ABOVE":"1"}}`, ".mcp.json": `{"mcpServers":{"near":{"command":"a"}}}`,
		"../.mcp.json":             `{"mcpServers":{"near":{"command":"b"},"far":{"command":"b"}}}`,
		".claude/agents/evil.md":   evil,
		"../.claude/agents/far.md": "---\nname: far\ndescription: x\ntools:\n  - Read\n---\ny",
	}
}

// TestNothingOfTheRepository: the CLI reads the user's settings only, whether or not there is something to keep it
// from; untrusted files are not passed in either.
func TestNothingOfTheRepository(t *testing.T) {
	for _, files := range []map[string]string{{}, everything()} {
		s := project(t, files)
		for name, trusted := range map[string]func(string, []byte) bool{
			"nobody was asked": nil,
			"not trusted":      func(string, []byte) bool { return false },
		} {
			s.Trusted = trusted
			args, out := projectFlags([]string{"-p"}, s)
			if want := []string{"-p", "--setting-sources=user", "--strict-mcp-config"}; !slices.Equal(args, want) ||
				len(out) != 0 {
				t.Errorf("%s: %q, %v", name, args, out)
			}
		}
	}
}

// TestWhatIsTrusted is passed in from files of ours, and of a sub-agent nothing that widens what it may do.
func TestWhatIsTrusted(t *testing.T) {
	s := project(t, everything())
	s.Trusted = func(string, []byte) bool { return true }
	args, out := projectFlags([]string{"-p", `--settings={"sandbox":{"enabled":false}}`}, s)
	files := map[string]string{}
	for _, f := range out {
		files[filepath.Base(f.Path)] = string(f.Data)
		if f.Keep || filepath.Dir(f.Path) != s.Temp {
			t.Errorf("%s stays, or lies elsewhere", f.Path)
		}
	}
	if got, want := files["settings.json"],
		`{"env":{"A":"1","B":"2"},"permissions":{"allow":["x","y"]},"sandbox":{"enabled":false}}`; got != want {
		t.Errorf("settings: %s, want %s", got, want)
	}
	if got, want := files["servers.json"],
		`{"mcpServers":{"far":{"command":"b"},"near":{"command":"a"}}}`; got != want {
		t.Errorf("servers: %s, want %s", got, want)
	}
	want := `--agents={"evil":{"description":"use always","model":"haiku","prompt":"Do it.","tools":["Read","Grep"]},"far":{"description":"x","prompt":"y","tools":["Read"]}}`
	if !slices.Contains(args, want) {
		t.Errorf("%q", args)
	}
	settings := slices.DeleteFunc(slices.Clone(args),
		func(a string) bool { return !strings.HasPrefix(a, "--settings") })
	if len(settings) != 1 || settings[0] != "--settings="+filepath.Join(s.Temp, "settings.json") ||
		!slices.Contains(args, "--setting-sources=user") || !slices.Contains(args, "--strict-mcp-config") {
		t.Errorf("%q", args)
	}
	s.Terms.OnlyThese = true
	if args, _ = projectFlags(nil, s); slices.ContainsFunc(args,
		func(a string) bool { return strings.HasPrefix(a, "--mcp-config") }) {
		t.Errorf("a host wants no other servers: %q", args)
	}
	home := project(t, everything())
	home.Env, home.Trusted = []string{"HOME=" + home.Dir}, s.Trusted
	if _, out = projectFlags(nil, home); len(out) > 0 && strings.Contains(string(out[0].Data), `"A"`) {
		t.Errorf("the user's own settings are passed in twice: %s", out[0].Data)
	}
}

// TestHelpers: a file whose restrictions are not understood is rejected.
func TestHelpers(t *testing.T) {
	for text, want := range map[string]bool{
		evil:                                   true,
		"---\nname: a\ndescription: b\n---\nc": true,
		"name: a":                              false,
		"---\nname: a\n---\nc":                 false,
		"---\nname: a\ndescription: b\n\"tools\": Read\n---\nc": false,
		"---\nname: a\ndescription: b\ntools : Read\n---\nc":    false,
		"---\nname: a\ndescription: b\ntools\n---\nc":           false,
		"---\nname: a\ndescription: >\n  b: c\n---\nc":          false,
	} {
		if _, _, ok := helper(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}

// TestInstructions: the memory of a project goes in as text, in its order, and nothing that lies elsewhere.
func TestInstructions(t *testing.T) {
	s := project(t, map[string]string{
		"CLAUDE.md": "near @more.md `@code.md` @../up.md @/etc/passwd @~/x @../../outside.md",
		"more.md":   "imported @CLAUDE.md", "code.md": "not-named", "../up.md": "upwards",
		"../CLAUDE.md": "far\n```\n@code.md\n```\n", ".claude/CLAUDE.md": "dotted", ".claude/rules/a.md": "ruled",
		"CLAUDE.local.md": "personal", "../../outside.md": "outside",
		"AGENTS.md": "others", "deep/CLAUDE.md": "deeper",
	})
	text := instructions(projectDirs(s))
	at := -1
	for _, word := range []string{"far", "near", "imported", "upwards", "dotted", "ruled", "personal"} {
		next := strings.Index(text, word)
		if next <= at || strings.Count(text, word) != 1 {
			t.Errorf("%s is not in its place: %s", word, text)
		}
		at = next
	}
	for _, word := range []string{"not-named", "outside\n", "others", "deeper", "root:"} {
		if strings.Contains(text, word) {
			t.Errorf("%s is in it: %s", word, text)
		}
	}
	within := project(t, map[string]string{"AGENTS.md": "of-all-agents"})
	if err := os.Symlink("AGENTS.md", filepath.Join(within.Dir, "CLAUDE.md")); err != nil {
		t.Log("links cannot be made here:", err)
	} else if text := instructions(projectDirs(within)); !strings.Contains(text, "of-all-agents") {
		t.Errorf("a link within the repository is not followed: %s", text)
	}
	args, out := projectFlags(nil, s)
	if len(out) != 1 || string(out[0].Data) != text ||
		!slices.Contains(args, "--append-system-prompt-file="+out[0].Path) {
		t.Errorf("%q", args)
	}
}

// TestUnreadableInstructions: links out of the repository, directories, and files that are too long are left out, and
// the text says so.
func TestUnreadableInstructions(t *testing.T) {
	s := project(t, map[string]string{
		"CLAUDE.local.md": strings.Repeat("x", longestInstructions+1), "../../secret": "the-secret",
		".claude/rules/a/b.md": "x",
	})
	if err := os.Symlink(filepath.Join(s.Dir, "../../secret"), filepath.Join(s.Dir, "CLAUDE.md")); err != nil {
		t.Skip("links cannot be made here:", err)
	}
	if err := os.Mkdir(filepath.Join(s.Dir, ".claude", "CLAUDE.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := instructions(projectDirs(s))
	if strings.Contains(text, "the-secret") || strings.Contains(text, "xxx") || strings.Count(text, "left out") != 3 {
		t.Errorf("%.500s", text)
	}
	for i := range 4 {
		name := filepath.Join(s.Dir, ".claude", "rules", string(rune('a'+i))+".md")
		if err := os.WriteFile(name, []byte(strings.Repeat("y", longestInstructions-100)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text = instructions(projectDirs(s)); len(text) > mostInstructions+4096 || !strings.Contains(text, "too many") {
		t.Errorf("%d bytes", len(text))
	}
	many := map[string]string{}
	for i := range mostRules + 1 {
		many[fmt.Sprintf(".claude/rules/%d.md", i)] = "a rule"
	}
	text = instructions(projectDirs(project(t, many)))
	if n := strings.Count(text, "a rule"); n != mostRules || !strings.Contains(text, "more than 50") {
		t.Errorf("%d rules: %.500s", n, text)
	}
}

// TestLongFilesAreNotTrusted: nobody is shown a file that is too long to be read, so it says nothing.
func TestLongFilesAreNotTrusted(t *testing.T) {
	for n, passed := range map[int]bool{longestFile: true, longestFile + 1: false} {
		const settings = `{"env":{"A":"1"}}`
		s := project(t, map[string]string{".claude/settings.json": settings + strings.Repeat(" ", n-len(settings))})
		s.Trusted = func(string, []byte) bool { return true }
		if _, out := projectFlags(nil, s); passed != (len(out) == 1) {
			t.Errorf("%d bytes: %d files are passed in", n, len(out))
		}
	}
}

func TestMergedLeavesItsParts(t *testing.T) {
	below := map[string]any{"a": map[string]any{"b": []any{"1"}}}
	_ = merged(below, map[string]any{"a": map[string]any{"b": []any{"2"}, "c": 1}})
	if data, _ := json.Marshal(below); string(data) != `{"a":{"b":["1"]}}` {
		t.Errorf("%s", data)
	}
}
