package policy

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/walls/sandbox"
)

// TestAnotherHome: who sets HOME does not show what lies in the home directory of the account.
func TestAnotherHome(t *testing.T) {
	account := accountHome()
	if account == "" {
		t.Skip("the list of users on this machine does not name this one")
	}
	for _, home := range []string{"", t.TempDir(), account} {
		hidden := Credentials(nil, home)
		if !slices.Contains(hidden, filepath.Join(account, ".ssh")) || home != "" &&
			!slices.Contains(hidden, filepath.Join(home, ".ssh")) {
			t.Errorf("HOME=%s hides %v", home, hidden)
		}
		slices.Sort(hidden)
		if len(slices.Compact(slices.Clone(hidden))) != len(hidden) {
			t.Errorf("HOME=%s hides something twice", home)
		}
	}
}

// TestHomeIsNoWorkspace: neither a home directory nor what holds one is written, by whatever name; what lies below
// is.
func TestHomeIsNoWorkspace(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	if err := os.MkdirAll(at("users/ann/project"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("users/ann", at("link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		root, write, home, account string
		refused                    bool
	}{
		{root: "users/ann", home: "users/ann", refused: true},
		{root: "users/ann", home: "link", refused: true},
		{root: "users", home: "users/ann", refused: true},
		{root: "users/ann", home: "users/ann/project", account: "users/ann", refused: true},
		{root: "users/ann/project", write: "users/ann", home: "users/ann", refused: true},
		{root: "users/ann/project", write: "users", home: "link", refused: true},
		{root: "users/ann/project", home: "users/ann"},
		{root: "users/ann", home: "users/an", account: "none"},
	} {
		p := sandbox.Policy{Root: at(c.root)}
		if c.write != "" {
			p.Write = []string{at(c.write)}
		}
		account := c.account
		if account != "" {
			account = at(account)
		}
		if err := checkHomes(p, at(c.home), account); (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		} else if err != nil && (fault.Of(err).Code != fault.Unsafe || fault.Of(err).Suggestion == "") {
			t.Errorf("%+v: %v does not help", c, err)
		}
	}
	for _, home := range []string{"", "/", "relative"} {
		if err := checkHomes(sandbox.Policy{Root: at("users")}, home); err != nil {
			t.Errorf("HOME=%q: %v", home, err)
		}
	}
}

// TestGitConfig: the files are those that git reads, in whatever shell a person calls it.
func TestGitConfig(t *testing.T) {
	prefix := t.TempDir()
	if err := errors.Join(
		os.Mkdir(filepath.Join(prefix, "bin"), 0o700), os.Mkdir(filepath.Join(prefix, "git-2"), 0o700),
		os.WriteFile(filepath.Join(prefix, "git-2", "git"), nil, 0o700),
		os.Symlink("../git-2/git", filepath.Join(prefix, "bin", "git")),
	); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		"PATH":            filepath.Join(prefix, "bin") + string(filepath.ListSeparator) + prefix,
		"XDG_CONFIG_HOME": "/x", "GIT_CONFIG_GLOBAL": "/g/config", "GIT_CONFIG_SYSTEM": "here",
	}
	got := GitConfig("/h", func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
	want := []string{
		"/etc/gitconfig", "/g/config", "/h/.config/git/config", "/h/.gitconfig", "/x/git/config",
		"/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig", filepath.Join(prefix, "etc/gitconfig"),
	}
	for _, file := range want {
		if !slices.Contains(got, file) {
			t.Errorf("%s is missing: %q", file, got)
		}
	}
	if slices.Contains(got, "here") || len(got) > 16 { // sandbox reads 32 of them, and those that they include
		t.Errorf("%q", got)
	}
}

// TestGitSettings: the settings of the environment are what git itself says they are.
func TestGitSettings(t *testing.T) {
	git := exec.Command("git", "-c", "core.hooksPath=it's a/hook", "-c", "url.a=b.insteadOf=c d",
		"-c", "alias.x=!sh 'y'", "-c", "alias.env=!env", "env")
	git.Env = append(os.Environ(), "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.pager", "GIT_CONFIG_VALUE_0=a=b",
		"GIT_CONFIG_KEY_1=include.path", "GIT_CONFIG_VALUE_1=/c")
	out, err := git.Output()
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		variables[name] = value
	}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	want := []sandbox.GitSetting{
		{Key: "core.pager", Value: "a=b"},
		{Key: "include.path", Value: "/c"},
		{Key: "core.hooksPath", Value: "it's a/hook"},
		{Key: "url.a", Value: "b.insteadOf=c d"},
		{Key: "alias.x", Value: "!sh 'y'"},
		{Key: "alias.env", Value: "!env"},
	}
	if got := gitSettings(lookup); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	old := []sandbox.GitSetting{{Key: "core.hooksPath", Value: "it's"}, {Key: "a.b", Value: "c=d"}}
	if got := gitParameters(`'core.hooksPath=it'\''s' 'a.b=c=d'`); !slices.Equal(got, old) {
		t.Errorf("%q, want %q", got, old)
	}
	if got := gitSettings(nil); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
