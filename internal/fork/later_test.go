package fork_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/autorun"
	"omniagent/internal/fork"
	"omniagent/internal/undo"
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
