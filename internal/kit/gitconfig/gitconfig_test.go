package gitconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSettings compares with git.
func TestSettings(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	for _, text := range []string{
		"[core] worktree = /x\n",
		"[CORE]WorkTree=/x",
		"[core]\r\n\tworktree = /x\r\n",
		"\uFEFF[core] worktree = /x [a] b = c\n",
		"[core]\n\tworktree = \\\n/x\n",
		"[core]\n\tworktree = /\"x\" y  ; comment \\\n\tbare = false\n",
		"[core]\n\t# comment \\\n\tworktree = \"/x # y \" \t\n",
		"[core]\n\ta = b\\\\\n\tworktree = \"\"/x\n",
		"[core]\n\ta = \\\"\\t\\n\\b\\\\c\n",
		"[alias]\n\tx = \"!f() { cd / && \\\n/usr/bin/env true; }; f\"\n",
		"[remote \"A ]b\\\"c\\\\\"] worktree = /x\n[a.B]c=d\n[a \"\"]\nb\n",
		"[core]\n\ta = one   two\n\tb =\n\tc\n\td = \"  x\"  y\n",
		"[core]\n\ta = hk \\\n\n\tb = hk \\\n# comment\n\td = hk  \\\nmore\n",
	} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want, err := exec.Command(program, "config", "--file", file, "--list", "-z").Output()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got := ""
		for key, value := range Settings(text) {
			if got += key; value != "" || key != "core.c" && key != "a..b" { // keys without a value
				got += "\n" + value
			}
			got += "\x00"
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// TestDamagedSettings: what git refuses does not hide the lines that follow.
func TestDamagedSettings(t *testing.T) {
	for _, text := range []string{"[core\n", "[core \"a\n", "= x\n", "a b\n", "a = \"\n", "a = \\x\n", "[", "]"} {
		last := ""
		for key, value := range Settings(text + "\n[core]\nworktree = /x\n") {
			last = key + " " + value
		}
		if last != "core.worktree /x" {
			t.Errorf("%q: %q", text, last)
		}
	}
}

// TestFormsOfAValue: what versions of git read in different ways is there in both, and a text ends at a NUL, as in git.
func TestFormsOfAValue(t *testing.T) {
	for text, want := range map[string][]string{
		"[core]\nhooksPath = my\thk\t\n":          {"core.hookspath my\thk", "core.hookspath my hk"},
		"[core]\nhooksPath = \"my\thk\"\n":        {"core.hookspath my\thk"},
		"[core]\nhooksPath = a\rb\n":              {"core.hookspath a\rb", "core.hookspath a b"},
		"[core]\nhooksPath = hk\x00x\n":           {"core.hookspath hk"},
		"[includeIf \"a\x00b\"]\npath = c\x00d\n": {"includeif.a.path c"},
	} {
		var got []string
		for key, value := range Settings(text) {
			got = append(got, key+" "+value)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
