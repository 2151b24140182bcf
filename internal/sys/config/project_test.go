package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// onlyWarning returns the one warning that a Load gave.
func onlyWarning(t *testing.T, set *Set, code string) string {
	t.Helper()
	if w := set.Warnings(); len(w) != 1 || w[0].Code != code {
		t.Fatalf("got %+v, want one %s", w, code)
	}
	return set.Warnings()[0].Message
}

func TestProjectFileCountsOnlyWhileItsContentIsTrusted(t *testing.T) {
	p := newPlace(t)
	p.write(p.project, "model = 'theirs'\n")
	set := p.load()
	message := onlyWarning(t, set, UntrustedConfig)
	if !strings.Contains(message, p.project+" is not trusted") || !strings.Contains(message, "omniagent trust") ||
		set.String("model") != "" {
		t.Errorf("got %q, model %q", message, set.String("model"))
	}
	if set.ProjectFile() != p.project || len(set.Sources()) != 0 {
		t.Errorf("file %q, sources %v", set.ProjectFile(), set.Sources())
	}
	p.trust(p.project, "model = 'theirs'\n")
	if set = p.load(); set.String("model") != "theirs" || len(set.Warnings()) != 0 {
		t.Errorf("model %q, %v", set.String("model"), set.Warnings())
	}
	p.write(p.project, "model = 'theirs' \n")
	if message = onlyWarning(t, p.load(), UntrustedConfig); !strings.Contains(message,
		"has changed since it was trusted") {
		t.Errorf("got %q", message)
	}
	p.write(p.project, "this is not TOML")
	onlyWarning(t, p.load(), UntrustedConfig)

	other := projectPath(p.dir) // the trusted content at another path
	p.write(other, "model = 'theirs'\n")
	if set = p.load(); set.ProjectFile() != other || set.String("model") != "" {
		t.Errorf("file %s, model %q", set.ProjectFile(), set.String("model"))
	}
}

func TestProjectFileIsTheNearestWithinTheRepository(t *testing.T) {
	p := newPlace(t)
	above := projectPath(filepath.Dir(p.repo))
	p.trust(above, "model = 'outside'\n")
	if set := p.load(); set.ProjectFile() != "" || set.projectRoot != p.repo {
		t.Errorf("file %q, root %q", set.ProjectFile(), set.projectRoot)
	}
	p.trust(p.project, "model = 'root'\n")
	p.trust(projectPath(filepath.Dir(p.dir)), "model = 'middle'\n")
	if set := p.load(); set.String("model") != "middle" {
		t.Errorf("model %q", set.String("model"))
	}
	if err := os.Remove(filepath.Join(p.repo, ".git")); err != nil {
		t.Fatal(err)
	}
	if set := p.load(); set.ProjectFile() != "" || set.projectRoot != p.dir {
		t.Errorf("outside of a repository: file %q, root %q", set.ProjectFile(), set.projectRoot)
	}
	p.trust(projectPath(p.dir), "model = 'here'\n")
	if set := p.load(); set.String("model") != "here" {
		t.Errorf("model %q", set.String("model"))
	}
}

func TestHomeIsNoProject(t *testing.T) {
	p := newPlace(t)
	p.dir = filepath.Join(p.home, "work")
	for _, dir := range []string{p.dir, filepath.Join(p.home, ".git")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.trust(projectPath(p.home), "model = 'home'\n")
	if set := p.load(); set.ProjectFile() != "" || set.String("model") != "" {
		t.Errorf("file %q", set.ProjectFile())
	}
}

func TestLinks(t *testing.T) {
	p := newPlace(t)
	outside := filepath.Join(p.home, "theirs.toml")
	p.trust(outside, "model = 'outside'\n")
	if err := os.MkdirAll(filepath.Dir(p.project), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, p.project); err != nil {
		t.Skip("no symbolic link can be made here (Windows needs its developer mode): ", err)
	}
	set := p.load()
	if message := onlyWarning(t, set, UntrustedConfig); !strings.Contains(message, "leads out of the project") ||
		set.String("model") != "" {
		t.Errorf("got %q, model %q", message, set.String("model"))
	}
	inside := filepath.Join(p.repo, "shared.toml")
	p.trust(inside, "model = 'inside'\n")
	if err := os.Remove(p.project); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(inside, p.project); err != nil {
		t.Fatal(err)
	}
	if set = p.load(); set.String("model") != "inside" {
		t.Errorf("model %q, %v", set.String("model"), set.Warnings())
	}
	p.write(p.user+".real", "retries = 8\n")
	if err := os.Symlink(p.user+".real", p.user); err != nil {
		t.Fatal(err)
	}
	if set = p.load(); set.Int("retries") != 8 {
		t.Error("a user file that is a link does not count")
	}
}

func TestTrustSurvivesDamageWithoutLosingAnything(t *testing.T) {
	p := newPlace(t)
	p.trust(p.project, "model = 'x'\n")
	whole, err := os.ReadFile(p.list)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(p.list); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	for _, torn := range []string{string(whole[:len(whole)/2]), "[]", "{}", `{"version": 2}`, "\x00"} {
		p.write(p.list, torn)
		set := p.load()
		if w := set.Warnings(); len(w) != 2 || w[0].Code != UnusableTrust || w[1].Code != UntrustedConfig ||
			set.String("model") != "" {
			t.Errorf("%q: %+v", torn, w)
		}
		trust := OpenTrust(p.list)
		if err := trust.Add(p.project, nil); err == nil {
			t.Errorf("%q: Add wiped it", torn)
		}
		if err := trust.Forget(p.project); err == nil {
			t.Errorf("%q: Forget wiped it", torn)
		}
		if now, _ := os.ReadFile(p.list); string(now) != torn {
			t.Errorf("%q became %q", torn, now)
		}
	}
	p.write(p.list, string(whole))
	if err := os.Chmod(p.list, 0o622); err != nil {
		t.Fatal(err)
	}
	if OpenTrust(p.list).Trusted(p.project, []byte("model = 'x'\n")) {
		t.Error("a list that others may write is believed")
	}
	if err := os.Chmod(p.list, 0o600); err != nil {
		t.Fatal(err)
	}
	trust := OpenTrust(p.list)
	if list := trust.List(); len(list) != 1 || list[0].Path != p.project || len(list[0].SHA256) != 64 ||
		list[0].At.IsZero() {
		t.Errorf("got %+v", list)
	}
	if err := trust.Forget(p.project); err != nil || trust.Trusted(p.project, []byte("model = 'x'\n")) ||
		len(OpenTrust(p.list).List()) != 0 {
		t.Errorf("forgotten, but %v", trust.List())
	}
	if err := OpenTrust("").Add(p.project, nil); err == nil {
		t.Error("recorded nowhere")
	}
}

// TestASharedDirectoryIsNoRepository: what somebody puts into /tmp is not around the directories of everybody else.
func TestASharedDirectoryIsNoRepository(t *testing.T) {
	shared := t.TempDir()
	dir := filepath.Join(shared, "own", "deep")
	for _, d := range []string{dir, filepath.Join(shared, ".git")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if root, repository := ProjectRoot(dir); !repository || root != shared {
		t.Errorf("%s, %v: a directory of one user is a repository", root, repository)
	}
	if err := os.Chmod(shared, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if root, repository := ProjectRoot(dir); repository || root != dir {
		t.Errorf("%s, %v: a shared directory is a repository", root, repository)
	}
	if root, repository := ProjectRoot(shared); !repository || root != shared {
		t.Errorf("%s, %v: the directory itself is one", root, repository)
	}
}
