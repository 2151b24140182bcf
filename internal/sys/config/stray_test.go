package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestTrustOfWhatLeaves: a link out of the project is not trusted by what somebody trusted elsewhere, whichever file it
// is.
func TestTrustOfWhatLeaves(t *testing.T) {
	p := newPlace(t)
	other := filepath.Join(filepath.Dir(p.repo), "other")
	if err := os.MkdirAll(filepath.Join(other, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.trust(filepath.Join(other, "AGENTS.md"), "speak of badgers\n")
	trust := OpenTrust(p.list)
	for _, name := range []string{
		"AGENTS.md", filepath.Join("agents", "omniagent.config.json"),
		filepath.Join("a", "b", "x"),
	} {
		link := filepath.Join(p.repo, name)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(other, "AGENTS.md"), link); err != nil {
			t.Skip("no symbolic link can be made here (Windows needs its developer mode): ", err)
		}
		if !Leaves(link) || trust.Trusted(link, []byte("speak of badgers\n")) {
			t.Errorf("%s is trusted", name)
		}
	}
	if Leaves(filepath.Join(other, "AGENTS.md")) || !trust.Trusted(filepath.Join(other, "AGENTS.md"),
		[]byte("speak of badgers\n")) {
		t.Error("the file itself is not trusted")
	}
	near := filepath.Join(other, "CLAUDE.md")
	if err := os.Symlink("AGENTS.md", near); err != nil {
		t.Fatal(err)
	}
	if !trust.Trusted(near, []byte("speak of badgers\n")) || trust.Trusted(near, []byte("speak of badgerz\n")) {
		t.Error("a link within the project")
	}
}

// TestNobodyTrustsHimself: a record of trust does not count if it lies in the repository, or if others may write it.
func TestNobodyTrustsHimself(t *testing.T) {
	p := newPlace(t)
	p.list = filepath.Join(p.repo, "state", "trust.json")
	p.trust(p.project, "model = 'theirs'\n")
	if message := onlyWarning(t, p.load(), UntrustedConfig); !strings.Contains(message, "its own repository") ||
		p.load().String("model") != "" {
		t.Errorf("got %q", message)
	}
	if OpenTrust(p.list).Trusted(p.project, []byte("model = 'theirs'\n")) || !OpenTrust(p.list).Refuses(p.project) {
		t.Error("the record is believed")
	}
	p.list = filepath.Join(p.home, "state", "trust.json")
	p.trust(p.project, "model = 'theirs'\n")
	if p.load().String("model") != "theirs" {
		t.Error("a record elsewhere does not count")
	}
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	refused := func(what string) {
		t.Helper()
		if w, bad := OpenTrust(p.list).Warning(); !bad || p.load().String("model") != "" {
			t.Errorf("%s: %+v", what, w)
		}
	}
	for path, modes := range map[string][2]os.FileMode{p.list: {0o602, 0o600}, filepath.Dir(p.list): {0o777, 0o700}} {
		if err := os.Chmod(path, modes[0]); err != nil {
			t.Fatal(err)
		}
		refused(path)
		if err := os.Chmod(path, modes[1]); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(p.list, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		refused("somebody else's")
	}
}
