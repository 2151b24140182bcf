//go:build unix

package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/git"
)

// TestRefsDoNotBlock: a FIFO is not opened, and a link is followed like those that git leaves, to nothing but a commit.
func TestRefsDoNotBlock(t *testing.T) {
	for _, name := range []string{"HEAD", "refs/heads/main", "packed-refs", "commondir"} {
		dir := t.TempDir()
		write(t, dir, "HEAD", symbolic)
		write(t, dir, "refs/heads/a", one)
		full := filepath.Join(dir, name)
		if err := errors.Join(os.RemoveAll(full), syscall.Mkfifo(full, 0o600)); err != nil {
			t.Fatal(err)
		}
		refs := refsOf(dir)
		if h, err := refs.Head(); h.Commit != "" || name != "refs/heads/main" && name != "commondir" &&
			!errors.Is(err, fault.Unsafe) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		if names := refs.Names(); len(names) != 1 {
			t.Errorf("%s: %q", name, names)
		}
		if err := git.Movable(dir); (err != nil) != (name == "commondir") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	write(t, dir, "HEAD", symbolic)
	write(t, dir, "refs/heads/a", one)
	if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o600),
		os.Symlink(secret, filepath.Join(dir, "refs/heads/main"))); err != nil {
		t.Fatal(err)
	}
	if h, err := refsOf(dir).Head(); err == nil {
		t.Errorf("%+v", h)
	}
}

func TestMovable(t *testing.T) {
	long := strings.Repeat(" ", git.SmallFile)
	for name, c := range map[string]struct {
		file, text string
		fails      bool
	}{
		"relative .git":              {".git", "gitdir: ../a/.git/worktrees/b\n", false},
		"absolute .git":              {".git", "gitdir: /a/.git\n", true},
		"relative commondir":         {".git/commondir", "../..\n", false},
		"absolute commondir":         {".git/commondir", "/a/.git\n", true},
		"a long commondir":           {".git/commondir", long + "/a\n", true},
		"relative worktree":          {".git/config", "[core]\n\tworktree = ../../a\n", false},
		"absolute worktree":          {".git/config", "[core]\n\tworktree = /a\n", true},
		"no spaces":                  {".git/config", "[core]\nworkTree=\"/a\"\n", true},
		"of the working tree":        {".git/config.worktree", "[core]\n\tworktree = /a\n", true},
		"on the line of the section": {".git/config", "[core] worktree = /a\n", true},
		"over two lines":             {".git/config", "[Core]\n\tworktree = \\\n/a\n", true},
		"behind a comment":           {".git/config", "[core]\n# \\\nworktree = /a # b\n", true},
		"another section":            {".git/config", "[foo]\n\tworktree = /a\n", false},
		"a line of an alias":         {".git/config", "[alias]\n\tx = \"!cd / && \\\n/bin/true\"\n", false},
		"another setting":            {".git/config", "[core]\n\thooksPath = /a\n", false},
		"a long config":              {".git/config", long + "[core]\n\tworktree = /a\n", true},
		"nothing":                    {".git/HEAD", one, false},
	} {
		root := t.TempDir()
		write(t, root, c.file, c.text)
		if err := git.Movable(filepath.Join(root, ".git")); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
