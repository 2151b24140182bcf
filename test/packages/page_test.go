package packages

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestInstallPage types what docs/install.md shows, in a directory with the packages: as root where it says so, but
// into a root of our own.
func TestInstallPage(t *testing.T) {
	dir := built(t)
	for _, name := range []string{"npm", "dpkg", "tar", "sha256sum"} {
		needs(t, name)
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" || os.Geteuid() != 0 {
		t.Skip("the page shows linux/amd64, and root")
	}
	page := string(read(t, "..", "..", "docs", "install.md"))
	p := newPlace(t)
	work, bin, system := filepath.Join(p.root, "work"), filepath.Join(p.root, "bin"), filepath.Join(p.root, "system")
	for _, made := range []string{
		bin, filepath.Join(system, "var/lib/dpkg/info"),
		filepath.Join(system, "var/lib/dpkg/updates"),
	} {
		must(t, os.MkdirAll(made, 0o755))
	}
	must(t, os.WriteFile(filepath.Join(system, "var/lib/dpkg/status"), nil, 0o644))
	must(t, hermetic.WriteProgram(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755))
	must(t, os.WriteFile(filepath.Join(bin, "dpkg"),
		[]byte("#!/bin/sh\nexec "+needs(t, "dpkg")+" --root="+system+" --log=/dev/null \"$@\"\n"), 0o755))
	for _, name := range tree(t, dir) {
		if !strings.Contains(name, "/") {
			must(t, os.Symlink(filepath.Join(dir, name), filepath.Join(work, name)))
		}
	}
	typed := 0
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[1], "go install") || strings.Contains(m[1], "scripts/packages") {
			continue // typed in test/manual, and here before
		}
		if strings.Contains(m[1], "0.1.0") && !strings.Contains(m[1], version) {
			t.Errorf("docs/install.md shows an old version:\n%s", m[1])
		}
		typed++
		cmd := p.command("/bin/sh", "-euc", m[1])
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+p.home+"/.local/bin:"+searched(),
			"npm_config_prefix="+filepath.Join(p.root, "prefix"), "npm_config_offline=true",
			"npm_config_update_notifier=false")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("docs/install.md: %v\n%s%s", err, m[1], out)
		}
	}
	if typed < 6 {
		t.Errorf("only %d blocks were typed", typed)
	}
	for _, program := range []string{
		filepath.Join(p.home, ".local/bin/omniagent"),
		filepath.Join(p.root, "prefix/bin/omniagent"), filepath.Join(system, "usr/bin/omniagent"),
	} {
		p.works(t, program)
	}
	for _, name := range []string{"share/man/man1/omniagent.1", "share/bash-completion/completions/omniagent"} {
		if len(read(t, p.home, ".local", name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}
