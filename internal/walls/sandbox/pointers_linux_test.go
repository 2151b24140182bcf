package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// planted writes files below a directory and returns its name without links.
func planted(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestAliases finds what a configuration names, in every way to write it, and nothing that it does not name.
func TestAliases(t *testing.T) {
	root := planted(t, map[string]string{
		"user": "[core]\n\thooksPath = ~/hooks\n[includeIf \"gitdir:~/x/[a]/\"]\n\tpath = " +
			"common\n[filter \"u\"] clean = \"./u.sh\" %f\n",
		".git/config": "[core] hooksPath = \"a\\\\b/hooks\" ; why\n[Include]\n\tPath=../tools/gitconfig\n" +
			"[filter \"x.y\"]\n\tclean = sh -c 'tools/clean.sh \\\"$1\\\"' --\n[remote \"o\"]\n\turl = src/file\n" +
			"[alias]\n\tx = !tools/ali\\\nas.sh\n\ty = !make -C made && node nd/x && python3 -m py.mod\n" +
			"[user]\n\tname = src\n[core]\n\tfsmonitor = true\n",
		"tools/gitconfig": "[merge \"m\"]\n\tdriver = tools/merge %A\n[include]\n\tpath = absent\n[include]\n\tpath " +
			"= gitconfig\n",
		"tools/clean.sh": "", "tools/alias.sh": "", "tools/merge": "", "src/file": "", "u.sh": "", "true/x": "",
		"made/Makefile": "", "nd/x.js": "", "py/mod.py": "", "Makefile": "",
		".git/config.worktree": "[core]\n\tattributesFile = attr\n",
		"env/config":           "[core]\n\tpager = env/pager\n", "env/pager": "", "env/alias.sh": "",
	})
	got := Aliases(root, nil, UserGit{
		Files: []string{filepath.Join(root, "user"), filepath.Join(root, "gone")},
		Settings: []GitSetting{
			{"Core.HooksPath", "env/hooks"},
			{"include.path", filepath.Join(root, "env/config")},
			{"alias.e", "!sh env/alias.sh"},
			{"core.pager", ""},
			{"pager", "src/file"},
		},
	}, nil)
	slices.Sort(got)
	var want []string
	for _, name := range []string{
		"a\\b/hooks", "attr", "common", "env/alias.sh", "env/config", "env/hooks", "env/pager",
		"made/Makefile", "nd/x.js", "py/mod.py", "tools/absent",
		"tools/alias.sh", "tools/clean.sh", "tools/gitconfig", "tools/merge",
		"u.sh",
	} {
		want = append(want, filepath.Join(root, name))
	}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestAliasesBehindABackslash: a backslash continues a line neither in a comment nor where it is escaped.
func TestAliasesBehindABackslash(t *testing.T) {
	for _, before := range []string{"# x \\\n", "a = b ; x \\\n", "a = b\\\\\n"} {
		root := planted(t, map[string]string{".git/config": "[core]\n" + before + "hooksPath = evil\n"})
		if got := Aliases(root, nil, UserGit{}, nil); !slices.Contains(got, filepath.Join(root, "evil")) {
			t.Errorf("%q: %q", before, got)
		}
	}
}

// TestAliasesEnd: neither a circle of includes nor a broken configuration holds us up.
func TestAliasesEnd(t *testing.T) {
	root := planted(t, map[string]string{
		".git/config": "[include]\n\tpath = config\n[include]\n\tpath = /dev/zero\n[[[\"]]\n= x\n[core\nhooksPath\n" +
			strings.Repeat("[", 1<<16) + "\n[core]\n\thooksPath = h\n",
	})
	got := Aliases(root, nil, UserGit{}, nil)
	if !slices.Contains(got, filepath.Join(root, "h")) || len(got) > 2*mostIncludes {
		t.Errorf("%q", got)
	}
}

// TestRepositories below a workspace are found, with a limit that is told.
func TestRepositories(t *testing.T) {
	root := planted(t, map[string]string{
		".git/HEAD": "", "app/.git/HEAD": "", "a/b/c/.git": "gitdir: x", "node_modules/p/.git/HEAD": "",
		"app/in/.git/HEAD": "",
		"git/HEAD":         "", "bare/HEAD": "", "bare/objects/x": "", "bare/refs/x": "", "linked/x": "",
	})
	if err := os.Symlink("../app/.git", filepath.Join(root, "linked/.git")); err != nil {
		t.Fatal(err)
	}
	found, whole := Repositories(root)
	for i := range found {
		found[i], _ = filepath.Rel(root, found[i])
	}
	want := []string{"a/b/c", "app", "app/in", "bare", "linked", "node_modules/p"}
	if !slices.Equal(found, want) || !whole {
		t.Errorf("%q, whole %v, want %q", found, whole, want)
	}
	deep := strings.Repeat("d/", deepRepositories+2)
	if err := os.MkdirAll(filepath.Join(root, deep, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, whole := Repositories(root); whole {
		t.Error("the limit is not told")
	}
}

// TestMostDirectories: the limit holds in breadth too.
func TestMostDirectories(t *testing.T) {
	hermetic.Long(t)
	many := t.TempDir()
	for i := range mostDirectories + 10 {
		if err := os.Mkdir(filepath.Join(many, strconv.Itoa(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, whole := Repositories(many); whole {
		t.Error("the limit is not told")
	}
}

// TestUnseenIsTold: repositories that were not looked for are a hole that a claim names.
func TestUnseenIsTold(t *testing.T) {
	for _, unseen := range []bool{false, true} {
		list := trial{}.holes(Policy{MoreRepositories: unseen}, Namespaces, false)
		if told := slices.ContainsFunc(list,
			func(s string) bool { return strings.Contains(s, "too deep or too many") }); told !=
			unseen {
			t.Errorf("unseen %v: %q", unseen, list)
		}
	}
}
