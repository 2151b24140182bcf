package packages

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestInstaller: the script installs an archive with its manual and its completions, and takes all of it away again.
// What is not what SHA256SUMS says is not unpacked.
func TestInstaller(t *testing.T) {
	dir := built(t)
	for _, name := range []string{"curl", "tar", "awk"} {
		needs(t, name)
	}
	if runtime.GOOS == "windows" {
		t.Skip("it is for Linux and macOS")
	}
	install := func(p place, releases string, args ...string) (string, error) {
		cmd := p.command("/bin/sh", append([]string{filepath.Join(dir, "install.sh")}, args...)...)
		cmd.Env = append(cmd.Env, "OMNIAGENT_RELEASES=file://"+releases, "PATH="+searched())
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	p := newPlace(t)
	out, err := install(p, dir)
	if err != nil || !strings.Contains(out, "omniagent "+version+" is in "+p.home) || !strings.Contains(out, "hint: ") {
		t.Fatalf("%v\n%s", err, out)
	}
	p.works(t, filepath.Join(p.home, ".local/bin/omniagent"))
	for _, name := range []string{
		"man/man1/omniagent.1", "man/man1/omniagent-config-set.1", "bash-completion/completions/omniagent",
		"fish/vendor_completions.d/omniagent.fish", "zsh/site-functions/_omniagent",
	} {
		if len(read(t, p.home, ".local/share", name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	if out, err := install(p, dir); err != nil { // over itself
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := install(p, dir, "--remove"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range tree(t, filepath.Join(p.home, ".local")) {
		if info, err := os.Lstat(filepath.Join(p.home, ".local", name)); err == nil && !info.IsDir() &&
			strings.Contains(filepath.Base(name), "omniagent") {
			t.Errorf("left behind: %s", name)
		}
	}
	for says, change := range map[string]func(dir string){
		"is not what SHA256SUMS says": func(dir string) {
			archives, err := filepath.Glob(filepath.Join(dir, "omniagent-*-*-*.tar.gz"))
			must(t, err)
			for _, name := range archives {
				must(t, os.WriteFile(name, append(read(t, name), 'x'), 0o644))
			}
		},
		"has no line for": func(dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte("0  other\n"), 0o644))
		},
		"cannot be fetched": func(dir string) { must(t, os.RemoveAll(filepath.Join(dir, "SHA256SUMS"))) },
	} {
		p, other := newPlace(t), t.TempDir()
		archives, err := filepath.Glob(filepath.Join(dir, "omniagent-*-*-*.tar.gz"))
		must(t, err)
		for _, name := range append(archives, filepath.Join(dir, "SHA256SUMS")) {
			must(t, os.WriteFile(filepath.Join(other, filepath.Base(name)), read(t, name), 0o644))
		}
		change(other)
		out, err := install(p, other)
		if _, there := os.Lstat(filepath.Join(p.home, ".local")); err == nil || !strings.Contains(out, says) ||
			there == nil {
			t.Errorf("%v, %v: %s, not %q", err, there, out, says)
		}
	}
}
