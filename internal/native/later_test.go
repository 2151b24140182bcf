package native

import (
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/walls/guard"
)

// TestWhatRunsLaterIsAskedAbout: file tools ask in every mode about what runs later by itself, under whatever name, and
// about nothing else.
func TestWhatRunsLaterIsAskedAbout(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, home := filepath.Join(top, "ws"), filepath.Join(top, "home")
	for path, content := range map[string]string{
		"ws/.envrc": "source ./scripts/env.sh\n", "ws/scripts/env.sh": "", "ws/.github/workflows/ci.yml": "",
		"ws/.tool/conf": "", "ws/rc": "", "ws/plain": "", "home/.zshrc": ". " + root + "/zsh/env\n", "ws/zsh/env": "",
	} {
		path = filepath.Join(top, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		filepath.Join(home, ".bashrc"): filepath.Join(root, "rc"), filepath.Join(top, "way"): root,
		filepath.Join(root, "gh"): ".github",
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{root, filepath.Join(top, "way")} {
		place := PlaceOf([]string{dir}, home, guard.Agents{{Settings: []string{".agent"}}}, nil)
		for name, want := range map[string]guard.Decision{
			".newtool": guard.Ask, ".newtool/x": guard.Ask, ".github/hooks/x.json": guard.Ask, "mise.toml": guard.Ask,
			"deep/lefthook.yml": guard.Ask, "scripts/env.sh": guard.Ask, "rc": guard.Ask, "zsh/env": guard.Ask,
			".agent/x": guard.Ask, "gh/mcp2.json": guard.Ask,
			".gitignore": guard.Allow, ".github/workflows/new.yml": guard.Allow, ".tool/conf": guard.Allow,
			".venv/x": guard.Allow, "plain": guard.Allow, "scripts/other.sh": guard.Allow, "src/.x": guard.Allow,
		} {
			v := guard.Tools.Write(filepath.Join(dir, name), place)
			if v.Decision != want || v.Firm != (want == guard.Ask) {
				t.Errorf("%s in %s: %s, %+v", name, filepath.Base(dir), v.Decision, v.Reasons)
			}
		}
	}
}
