package policy

import (
	"os"
	"path/filepath"
	"slices"
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
	variables := map[string]string{
		"XDG_CONFIG_HOME": "/x", "GIT_CONFIG_GLOBAL": "/g/config", "GIT_CONFIG_SYSTEM": "here",
	}
	got := GitConfig("/h", func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
	want := []string{"/etc/gitconfig", "/g/config", "/h/.config/git/config", "/h/.gitconfig", "/x/git/config"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
