package opencode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
)

// TestWhatTheRepositoryMayBring is refused before a start where it could run, at every place that the CLI looks at, and
// is taken where a person has trusted exactly that.
func TestWhatTheRepositoryMayBring(t *testing.T) {
	const plugin = "export const P = async () => ({})"
	for name, c := range map[string]struct {
		files map[string]string
		bad   string   // what is named; empty: nothing is refused
		deaf  bool     // no trust helps
		dirs  []string // made beside
	}{
		"nothing": {},
		"what is switched off": {files: map[string]string{
			".opencode/agent/build.md": "x",
			".opencode/tool/t.ts":      plugin, ".opencode/skills/s/SKILL.md": "x",
			".opencode/node_modules/x/i.js": "x",
		}},
		"settings without a program": {
			files: map[string]string{
				"opencode.json":            `{"$schema":"x","mcp":{"a":{}},"permission":"allow"}`,
				".opencode/opencode.jsonc": "{// a\n\"model\":\"x\",}",
			},
		},
		"a plugin": {
			files: map[string]string{".opencode/plugin/x.js": plugin},
			bad:   ".opencode/plugin/x.js",
		},
		"the other spelling": {
			files: map[string]string{".opencode/plugins/x.ts": plugin},
			bad:   ".opencode/plugins/x.ts",
		},
		"settings too long to be shown": {
			files: map[string]string{"opencode.json": `{"model":"x"}` + strings.Repeat(" ", 1<<20)},
			bad:   "opencode.json", deaf: true,
		},
		"too many files": {files: programs(501), bad: ".opencode/plugin/x", deaf: true},
		"what it may load": {
			files: map[string]string{".opencode/plugin/deep/x.json": "{}"},
			bad:   ".opencode/plugin/deep/x.json",
		},
		"above": {
			files: map[string]string{"../.opencode/plugin/x.js": plugin},
			bad:   ".opencode/plugin/x.js",
		},
		"what is not known": {
			files: map[string]string{".opencode/hooks/x.js": plugin},
			bad:   ".opencode/hooks/x.js",
		},
		"a package": {
			files: map[string]string{"opencode.json": `{"plugin":["evil@1.0.0"]}`},
			bad:   "opencode.json",
		},
		"a package, escaped": {
			files: map[string]string{"opencode.jsonc": `{"model":"x","pl\u0075gins":[{"package":"@a/evil"}]}`},
			bad:   "opencode.jsonc",
		},
		"a package in .opencode": {
			files: map[string]string{".opencode/opencode.json": `{"plugin":["evil"]}`},
			bad:   ".opencode/opencode.json",
		},
		"an unknown member": {
			files: map[string]string{"../opencode.json": `{"loader":"./x"}`},
			bad:   "opencode.json",
		},
		"no JSON": {files: map[string]string{"opencode.json": `{"model":`}, bad: "opencode.json"},
		"another end of a line": {
			files: map[string]string{
				"opencode.json": "{\"model\":\"x\" // \u2028 ,\"theme\":'\\\n,\"plugin\":[\"evil\"] //'\n}",
			}, bad: "opencode.json",
		},
		"a path": {files: map[string]string{
			"opencode.json": `{"plugin":["./x.js"]}`,
			"x.js":          plugin,
		}, bad: "opencode.json", deaf: true},
		"an address": {
			files: map[string]string{"opencode.json": `{"plugins":[{"package":"a@file:../x"}]}`}, bad: "opencode.json",
			deaf: true,
		},
		"behind a .git of no use": {
			files: map[string]string{"../.opencode/plugin/x.js": plugin},
			bad:   ".opencode/plugin/x.js", dirs: []string{".git"},
		},
		"behind a worktree": {
			files: map[string]string{
				"../.opencode/plugin/x.js": plugin, ".git/HEAD": "x",
				".git/config": "[core]\nworktree = ../..",
			},
			bad: ".opencode/plugin/x.js", dirs: []string{".git/objects", ".git/refs"},
		},
		"outside of the repository": {files: map[string]string{
			"../.opencode/plugin/x.js": plugin, ".git/HEAD": "x",
			".git/config": "",
		}, dirs: []string{".git/objects", ".git/refs"}},
		"home": {files: map[string]string{"../../.opencode/plugin/x.js": plugin}},
	} {
		t.Run(name, func(t *testing.T) {
			home, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(home, "repository", "sub")
			for _, d := range append(c.dirs, "../.git/objects", "../.git/refs") {
				mkdir(t, filepath.Join(dir, d))
			}
			lay(t, filepath.Join(dir, "../.git/HEAD"), "ref: refs/heads/main\n")
			lay(t, filepath.Join(dir, "../.git/config"), "[core]\n")
			for file, text := range c.files {
				lay(t, filepath.Join(dir, filepath.FromSlash(file)), text)
			}
			s := agent.Spec{Dir: dir, Env: []string{"HOME=" + home}}
			err = checkRepository(s)
			f := fault.Of(err)
			if (err == nil) != (c.bad == "") || err != nil &&
				(f.Code != fault.Unsafe || !strings.Contains(f.Message, filepath.FromSlash(c.bad)) ||
					f.Suggestion == "") {
				t.Fatalf("%v, hint %q", err, f.Suggestion)
			}
			s.Trusted = func(string, []byte) bool { return true }
			if err = checkRepository(s); (err != nil) != c.deaf {
				t.Errorf("trusted: %v", err)
			}
			s.Trusted = func(path string, content []byte) bool {
				return string(content) != c.files[relative(t, dir, path)]
			}
			if err = checkRepository(s); (err == nil) != (c.bad == "") {
				t.Errorf("another content is trusted: %v", err)
			}
		})
	}
}

// TestLinksInPlaceOfFiles: what is a link where a file or directory is expected can change without a trace.
func TestLinksInPlaceOfFiles(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	lay(t, filepath.Join(elsewhere, "plugin", "x.js"), "x")
	if err := os.Symlink(elsewhere, filepath.Join(dir, ".opencode")); err != nil {
		t.Skip("links cannot be made here:", err)
	}
	s := agent.Spec{Dir: dir, Env: []string{"HOME=/nowhere"}, Trusted: func(string, []byte) bool { return true }}
	if err := checkRepository(s); err == nil {
		t.Error("a link in place of .opencode is taken")
	}
}

// TestLookedAtBeforeEachTurn: a plugin that appears in the middle of a conversation is refused at the next turn.
func TestLookedAtBeforeEachTurn(t *testing.T) {
	dir := t.TempDir()
	s := agent.Spec{Dir: dir, Env: []string{"HOME=/nowhere"}}
	c := conversing{New().(driver)}
	l, _, err := c.Command(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"OPENCODE_DISABLE_PROJECT_CONFIG", "OPENCODE_DISABLE_EXTERNAL_SKILLS"} {
		if cli.First(l.Env, name) != "1" {
			t.Errorf("%s is not set", name)
		}
	}
	lay(t, filepath.Join(dir, ".opencode", "plugins", "x.js"), "x")
	if _, _, err = c.Command(s); fault.Of(err).Code != fault.Unsafe {
		t.Errorf("%v", err)
	}
}

func relative(t *testing.T, dir, path string) string {
	t.Helper()
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(rel)
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func lay(t *testing.T, path, text string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func programs(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprintf(".opencode/plugin/x%03d.js", i)] = ""
	}
	return all
}
