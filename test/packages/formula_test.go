package packages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/testkit/measure"
)

// TestFormula installs by the formula with a stand-in for Homebrew: the same words, our archives instead of a download.
func TestFormula(t *testing.T) {
	dir := built(t)
	formula := filepath.Join(dir, "Formula", "omniagent.rb")
	for _, m := range regexp.MustCompile(`url "([^"]+)"`).FindAllStringSubmatch(string(read(t, formula)), -1) {
		if !strings.HasPrefix(m[1], "https://omniagent.invalid/v"+version+"/omniagent-"+version+"-") {
			t.Errorf("without --base-url the formula names %s", m[1])
		}
	}
	ruby := needs(t, "ruby")
	standIn, err := filepath.Abs(filepath.Join("testdata", "homebrew.rb"))
	must(t, err)
	newPlace(t).does(t, ruby, "-wc", formula)
	for _, target := range measure.Targets() {
		if target.OS == "windows" {
			continue
		}
		t.Run(target.OS+"-"+target.Arch, func(t *testing.T) {
			p := newPlace(t)
			prefix := filepath.Join(p.root, "cellar")
			args := []string{"-w", standIn, formula, target.OS, target.Arch, dir, prefix}
			if target == measure.Here() {
				args = append(args, "test")
			}
			p.does(t, ruby, args...)
			isFor(t, read(t, prefix, "bin", "omniagent"), target)
			there := tree(t, prefix)
			for _, name := range []string{
				"etc/bash_completion.d/omniagent", "share/zsh/site-functions/_omniagent",
				"share/fish/vendor_completions.d/omniagent.fish",
				"bin/eidolon", "bin/yume-cli", "share/man/man1/omniagent.1", "share/man/man1/omniagent-config-set.1",
			} {
				if !slices.Contains(there, name) {
					t.Errorf("%s is missing among %q", name, there)
				}
			}
			if target == measure.Here() {
				p.works(t, filepath.Join(prefix, "bin", "omniagent"))
			}
		})
	}
	t.Run("damaged", func(t *testing.T) {
		p := newPlace(t)
		name := "omniagent-" + version + "-linux-amd64.tar.gz"
		must(t, os.WriteFile(filepath.Join(p.root, name), append(read(t, dir, name), 0), 0o644))
		out, err := p.command(ruby, standIn, formula, "linux", "amd64", p.root,
			filepath.Join(p.root, "cellar")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "has another sum") {
			t.Errorf("a damaged archive is installed: %v\n%s", err, out)
		}
	})
}
