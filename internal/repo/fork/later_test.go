package fork_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/walls/autorun"
)

// What is run later by itself stays in the fork, whatever makes it so, and comes home when it is named.
func TestWhatRunsLaterStaysInTheFork(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		g.must(g.dir, `mkdir .husky tools old; echo 'sh tools/check.sh' >.husky/pre-commit; echo true >tools/check.sh
			printf '#!/bin/sh\n. ./tools/check.sh\n' >.envrc; mkdir -p .github/workflows; echo x >.github/workflows/ci.yml
			git add .; git commit -qm hooks`)
		f := g.make("try", tier)
		g.run(f, `echo evil >>.husky/pre-commit; echo evil >>tools/check.sh; mkdir -p .zed .github/hooks pack
			echo x >.zed/settings.json; echo x >.github/hooks/a.json; echo x >mise.toml; echo x >.newtool
			mkdir -p lib/.vscode; echo x >lib/.vscode/tasks.json; git init -q --bare pack/bare
			echo evil >pack/bare/hooks/post-update; mv old older; ln -s src .config
			echo fine >.editorconfig; echo y >>.github/workflows/ci.yml; echo b >.env; echo c >plain`)
		policy := autorun.For(g.dir, []string{".claude"}, "")
		policy.Kept = func() []string { return autorun.Pointers(g.dir, g.dir, nil, nil) }
		request := fork.Request{Policy: &policy}
		out, err := f.Apply(t.Context(), g.snapshots, request)
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for _, c := range out.Conflicts {
			if !c.Later || c.Reason == "" {
				t.Errorf("%+v", c)
			}
			if !strings.HasPrefix(c.Path, "pack/bare/") {
				kept = append(kept, c.Path)
			}
		}
		want := []string{
			".config", ".github/hooks/a.json", ".husky/pre-commit", ".newtool", ".zed/settings.json",
			"lib/.vscode/tasks.json", "mise.toml", "tools/check.sh",
		}
		if !slices.Equal(kept, want) {
			t.Errorf("kept %q", kept)
		}
		if got := g.sh(g.dir, "ls -d pack/bare .zed .github/hooks lib/.vscode 2>/dev/null"); got != "" {
			t.Errorf("came home: %s", got)
		}
		if want := []string{".editorconfig", ".env", ".github/workflows/ci.yml", "plain"}; !slices.Equal(
			slices.DeleteFunc(slices.Clone(out.Applied), func(name string) bool {
				return !slices.Contains(want, name)
			}), want) || len(out.Later) > 0 {
			t.Errorf("%+v", out)
		}
		request.Take = []string{".zed", filepath.Join("tools", "check.sh")}
		out, err = f.Apply(t.Context(), g.snapshots, request)
		if err != nil || !slices.Equal(out.Later, []string{".zed/settings.json", "tools/check.sh"}) {
			t.Errorf("%v %+v", err, out)
		}
		if g.read("tools/check.sh") != "true\nevil\n" || g.read(".zed/settings.json") != "x\n" {
			t.Error("what was named stayed in the fork")
		}
		if _, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir}); err != nil {
			t.Fatal(err)
		}
		if g.read("tools/check.sh") != "true\n" {
			t.Error("undo has not taken it back")
		}
	})
}

// Rules of git that a fork brings home do not say what comes home from it afterwards.
func TestRulesOfAForkDoNotCount(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		g.must(g.dir, "echo .local >.gitignore")
		f := g.make("try", tier)
		g.run(f, `echo .newtool >>.gitignore; echo x >.newtool; mkdir .local; echo y >.local/z; echo b >plain`)
		for i := range 3 {
			policy := autorun.For(g.dir, nil, "")
			out, err := f.Apply(t.Context(), g.snapshots, fork.Request{Policy: &policy})
			if err != nil || len(out.Conflicts) != 1 || out.Conflicts[0].Path != ".newtool" {
				t.Errorf("%d: %v %+v", i, err, out)
			}
			g.run(f, "echo more >.local/more")
		}
		if got := g.sh(g.dir, "tail -n 1 .gitignore; ls .newtool .local 2>&1 | tail -n 2"); got != ".newtool\nmore\nz\n" {
			t.Errorf("%q", got)
		}
	})
}

// Commits with a file that is run later by itself do not move the branch, also where a later commit removes the file,
// because the next checkout would write it.
func TestCommitsThatRunLater(t *testing.T) {
	for name, then := range map[string]string{"there": "", "removed": "git rm -q mise.toml; git commit -qm less"} {
		t.Run(name, func(t *testing.T) {
			tiers(t, func(t *testing.T, tier fork.Tier) {
				g := newRepository(t)
				was := g.sh(g.dir, "git rev-parse HEAD")
				f := g.make("try", tier)
				g.run(f, `echo x >mise.toml; echo y >plain; git add .; git commit -qm more; `+then)
				policy := autorun.For(g.dir, nil, "")
				request := fork.Request{Policy: &policy}
				for range 2 {
					out, err := f.Apply(t.Context(), g.snapshots, request)
					if err != nil || out.InPlace || out.Held != "fork/try" || len(out.Conflicts) != 1 ||
						out.Conflicts[0].Path != "mise.toml" || !out.Conflicts[0].Later {
						t.Errorf("%v %+v", err, out)
					}
				}
				if is := g.sh(g.dir, "git rev-parse HEAD; git checkout -q .; ls mise.toml 2>/dev/null"); is != was {
					t.Errorf("%q, was %q", is, was)
				}
				if g.read("plain") != "y\n" {
					t.Error("what is not run later has not come home")
				}
				request.Take = []string{"mise.toml"}
				out, err := f.Apply(t.Context(), g.snapshots, request)
				if err != nil || !out.InPlace || out.Held != "" || len(out.Conflicts) > 0 {
					t.Errorf("named: %v %+v", err, out)
				}
				if is := g.sh(g.dir, "git status --porcelain -- plain mise.toml; git rev-list HEAD...fork/try"); is != "" {
					t.Errorf("the branch has not moved: %q", is)
				}
			})
		})
	}
}
