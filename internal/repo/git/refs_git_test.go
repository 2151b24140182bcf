//go:build unix

package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
)

// oddRefs are commands that leave refs which git itself does not write any more, and reads.
func oddRefs() map[string]string {
	return map[string]string{
		"plain":                     "true",
		"HEAD is a link":            "ln -sf refs/heads/main .git/HEAD",
		"HEAD is a link to no file": "git branch o; ln -sf refs/heads/o .git/HEAD; git pack-refs --all",
		"HEAD is a link to no ref":  "ln -sf refs/heads/new .git/HEAD",
		"HEAD in capitals":          "git rev-parse HEAD | tr a-f A-F > x; mv x .git/HEAD",
		"HEAD with more":            "echo $(git rev-parse HEAD) more > x; mv x .git/HEAD",
		"HEAD with a NUL":           `printf 'ref: refs/heads/main\000x\n' > .git/HEAD`,
		"a link":                    "ln -s main .git/refs/heads/t",
		"a link to a name":          "ln -s refs/heads/main .git/refs/heads/t",
		"a link to a link":          "ln -s refs/heads/main .git/refs/heads/t; ln -s refs/heads/t .git/refs/heads/u",
		"links in a circle":         "ln -s refs/heads/u .git/refs/heads/t; ln -s refs/heads/t .git/refs/heads/u",
		"a link to a directory":     "mkdir .git/refs/d; ln -s ../d .git/refs/heads/t",
		"a link to nothing":         "ln -s missing .git/refs/heads/t",
		"the name of a ref":         "echo 'ref: refs/heads/main' > .git/refs/heads/t",
		"the name of no ref":        "echo 'ref: refs/heads/missing' > .git/refs/heads/t",
		"more behind a space":       "echo $(git rev-parse HEAD)'  more' > .git/refs/heads/t",
		"more behind a tab":         `printf '%s\tmore\n' $(git rev-parse HEAD) > .git/refs/heads/t`,
		"a second line":             `printf '%s\nmore\n' $(git rev-parse HEAD) > .git/refs/heads/t`,
		"more behind a NUL":         `printf '%s\000more\n' $(git rev-parse HEAD) > .git/refs/heads/t`,
		"more without a space":      "echo $(git rev-parse HEAD)-more > .git/refs/heads/t",
		"capitals":                  "git rev-parse HEAD | tr a-f A-F > .git/refs/heads/t",
		"capitals, packed":          "echo $(git rev-parse HEAD | tr a-f A-F) refs/heads/t >> .git/packed-refs",
		"two dots":                  "cp .git/refs/heads/main .git/refs/heads/t..x",
		"a dot at the beginning":    "cp .git/refs/heads/main .git/refs/heads/.t",
		"a dot at the end":          "cp .git/refs/heads/main .git/refs/heads/t.",
		"a colon":                   "cp .git/refs/heads/main .git/refs/heads/t:x",
		"a brace":                   "cp .git/refs/heads/main '.git/refs/heads/t@{x'",
		"an at sign":                "cp .git/refs/heads/main .git/refs/heads/@",
		"a packed lock":             "echo $(git rev-parse HEAD) refs/heads/t.lock >> .git/packed-refs",
		"a lock as a directory":     "echo $(git rev-parse HEAD) refs/heads/t.lock/x >> .git/packed-refs",
	}
}

// TestOddRefs: HEAD and all refs are what git says they are.
func TestOddRefs(t *testing.T) {
	for name, line := range oddRefs() {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			run(t, top, "init", "-q", "-b", "main")
			run(t, top, "commit", "-q", "--allow-empty", "-m", "one")
			shell := exec.Command("sh", "-ec", line)
			shell.Dir = top
			if out, err := shell.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			asked := func(args ...string) string { // "": git has no answer
				cmd := exec.Command("git", args...)
				cmd.Dir, cmd.Env = top, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
				out, _ := cmd.Output()
				return strings.TrimSpace(string(out))
			}
			if _, err := git.Open(top); err != nil {
				t.Error(err)
			}
			dir := filepath.Join(top, ".git")
			refs := git.RefsOf(dir, dir, pathname.Real)
			want := git.Head{
				Ref: asked("symbolic-ref", "-q", "HEAD"), Commit: asked("rev-parse", "-q", "--verify", "HEAD"),
			}
			if h, err := refs.Head(); err != nil || h != want {
				t.Errorf("HEAD is %+v, %v; want %+v", h, err, want)
			}
			commits := refs.Commits()
			for _, ref := range strings.Fields(asked("for-each-ref", "--format=%(refname)")) {
				if commits[ref] == "" {
					t.Errorf("%s is missing: %q", ref, commits)
				}
			}
			for ref, commit := range commits {
				if is := asked("rev-parse", "-q", "--verify", ref); is != commit {
					t.Errorf("%s is %q; want %q", ref, commit, is)
				}
			}
			for _, ref := range refs.Names() {
				if exec.Command("git", "check-ref-format", ref).Run() != nil {
					t.Errorf("git does not take the name %s", ref)
				}
			}
		})
	}
}
