package autorun_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"omniagent/internal/walls/autorun"
)

// put makes files below a directory; a content that begins with -> is a link.
func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if len(content) > 2 && content[:2] == "->" {
			err = os.Symlink(content[2:], path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func newRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// TestFresh: a new name with a dot at the top counts unless it is harmless, ignored or known, also in another process.
func TestFresh(t *testing.T) {
	top := newRoot(t)
	root := filepath.Join(top, "sub")
	put(t, top, map[string]string{
		".git/info/exclude": "excluded\n.excl\n", ".gitignore": ".up\n*.gen\n!.keep.gen\n", "user": ".mine\n",
		"sub/.gitignore": ".local/\n.keeps\n!.up2\n", "sub/.tool/conf": "x", "sub/.github/hooks/a": "x",
	})
	made := autorun.For(root, []string{".agent"}, filepath.Join(top, "user"))
	put(t, root, map[string]string{".gitignore2": "", ".later": ""})
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte(".evil\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, p := range []autorun.Policy{made, autorun.Of(made.Words())} {
		for name, want := range map[string]bool{
			"a": false, "src/.x": false, ".": false, "..": false, "../.x": false, ".git": false, ".git/hooks/x": false,
			".gitignore": false, ".venv/bin/python": false, ".x.swp": false, ".env": true, ".env.example": false,
			".x": true, ".x/deep/er": true, ".GIT": false, ".Venv": true, ".gitignore/x": false,
			".tool/conf": false, ".tool/other": true, ".tool/sedAbCdEf": false, ".github/hooks/a": false,
			".github/hooks/b": true, ".github/workflows/x.yml": false, ".github/Workflows/x.yml": true,
			".local": false, ".local/x/y": false, ".keeps": false, ".up": false, ".excl": false, ".mine": false,
			".a.gen": false, ".keep.gen": true, ".evil": true, "\u200b.x": true, ".later": true,
			".bsp/x.json": true, ".tool-versions": true,
		} {
			if got := p.Fresh(filepath.Join(root, name)); got != want {
				t.Errorf("%d: %q: %v", i, name, got)
			}
		}
		if !p.FreshTree(filepath.Join(root, ".tool")) || p.FreshTree(filepath.Join(root, ".cache")) {
			t.Errorf("%d: a directory that is moved is judged by what was there", i)
		}
		for name, want := range map[string]bool{".circleci": false, ".newtool": true, ".gith": true} {
			if got := p.FreshDirectory(filepath.Join(root, name)); got != want {
				t.Errorf("%d: the directory %q: %v", i, name, got)
			}
		}
	}
	for name, isNew := range map[string]bool{
		".agent/x": false, "deep/.agent": false, "mise.toml": false, ".sl/config": false, "a/.hg/sharedpath": false,
		"a/.Vscode/x": false, ".zed ": true,
	} {
		if why := made.Why(filepath.Join(root, name), isNew); why == "" {
			t.Errorf("%q may be made", name)
		}
	}
	if why := made.Why(filepath.Join(root, ".tool/other"), false); why != "" {
		t.Errorf("what is there may be changed: %s", why)
	}
	if made.Beneath(filepath.Join(root, ".config")) == "" || made.Beneath(filepath.Join(root, "src")) != "" {
		t.Error("what lies beneath a directory is not seen")
	}
}

// TestPointers finds what protected files name, and leaves alone what they only mention.
func TestPointers(t *testing.T) {
	root := newRoot(t)
	put(t, root, map[string]string{
		".envrc": "# . comment/x\nsource_env_if_exists a/absent\nwatch_file go.mod\n. $PWD/a/env && PATH_add bin\n",
		"a/env":  "#!/bin/sh\n. ./a/more.sh\n", "a/more.sh": "sh a/third.sh", "a/third.sh": "sh a/fourth.sh",
		"a/fourth.sh": "", "comment/x": "", "go.mod": "", "bin/tool": "",
		".yarnrc.yml":          "yarnPath: .yarn/releases/y.cjs\nplugins: [tools/p.cjs,tools/q.cjs]\n",
		".yarn/releases/y.cjs": "sh unrelated/x", "tools/p.cjs": "", "tools/q.cjs": "", "unrelated/x": "",
		".vscode/settings.json": `{"x.path":"${workspaceFolder}/ed/run","nest":{"package.json":"go.sum, ./data/a.json"}}`,
		"ed/run":                "", "package.json": "", "go.sum": "", "data/a.json": "",
		".vscode/launch.json": `{"program":"src/main"}`, "src/main": "",
		".agent/settings.json": `{"hooks":[{"command":"python3 h.py"}]}`, "h.py": "", ".agent/notes.md": "look at src/main",
		"hooks/pre-commit": "node lib/check && npm test", "lib/check.js": "", "test/index.js": "",
		"hooks/x.sample": "sh unrelated/x",
	})
	got := autorun.Pointers(root, root, []string{".agent"}, []string{filepath.Join(root, "hooks")})
	var want []string
	for _, name := range []string{
		".yarn/releases/y.cjs", "a/absent", "a/env", "a/more.sh", "a/third.sh", "ed/run", "h.py",
		"lib/check.js", "tools/p.cjs", "tools/q.cjs",
	} {
		want = append(want, filepath.Join(root, name))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestHome finds where a home directory and PATH lead into a workspace, and nothing else.
func TestHome(t *testing.T) {
	top := newRoot(t)
	root, home := filepath.Join(top, "ws"), filepath.Join(top, "home")
	put(t, top, map[string]string{
		"ws/rc": "", "ws/auto/x.desktop": "", "ws/bin/tool": "", "ws/aliases": "", "ws/fish/conf.d/x": "",
		"ws/plain": "",
		"ws/link":  "->rc", "ws/ssh": "", "ws/sourced": "",
		"home/.bashrc": "->" + root + "/link", "home/.config/autostart": "->../../ws/auto", "home/dots": "->" + root,
		"home/.config/fish/conf.d/x.fish": "->../../../dots/fish/conf.d/x", "home/.ssh/config": "->" + root + "/absent",
		"home/.whole": "->" + root, "home/notes": "->" + root + "/plain", "home/.cache/x": "->" + root + "/plain",
		"home/.zshrc": ". ~/elsewhere\nsource " + root + "/sourced\n", "path/tool": "->" + root + "/bin/tool",
	})
	h := autorun.HomeOf([]string{home}, []string{filepath.Join(top, "path"), "relative"})
	var want []string
	for _, name := range []string{"absent", "auto", "bin/tool", "fish/conf.d/x", "link", "sourced"} {
		want = append(want, filepath.Join(root, name))
	}
	got := h.PathsInto(root)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if h.Holds(root) != "" {
		t.Error("a link that nobody starts from counts for one that holds the workspace")
	}
	if at := h.Holds(filepath.Join(root, "auto")); at != filepath.Join(home, ".config/autostart") {
		t.Errorf("%q", at)
	}
}
