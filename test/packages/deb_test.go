package packages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"omniagent/internal/testkit/measure"
)

func TestDeb(t *testing.T) {
	dir := built(t)
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			name := filepath.Join(dir, "omniagent_"+version+"-1_"+arch+".deb")
			t.Run("form", func(t *testing.T) { debForm(t, read(t, name), arch) })
			t.Run("unpacked", func(t *testing.T) {
				p := newPlace(t)
				p.does(t, needs(t, "dpkg-deb"), "-x", name, filepath.Join(p.root, "x"))
				isFor(t, read(t, p.root, "x/usr/bin/omniagent"), measure.Target{OS: "linux", Arch: arch})
				sums := p.does(t, "dpkg-deb", "-I", name, "md5sums")
				cmd := p.command(needs(t, "md5sum"), "-c", "--quiet", "--strict")
				cmd.Dir, cmd.Stdin = filepath.Join(p.root, "x"), strings.NewReader(sums)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("md5sum: %v\n%s", err, out)
				}
				files := 0
				for _, name := range tree(t, filepath.Join(p.root, "x")) {
					if f, err := os.Lstat(filepath.Join(p.root, "x", name)); err == nil && f.Mode().IsRegular() {
						files++
					}
				}
				if named := strings.Count(sums, "\n"); named != files {
					t.Errorf("%d sums for %d files", named, files)
				}
			})
		})
	}
	t.Run("lintian", func(t *testing.T) {
		lintian := needs(t, "lintian")
		args := []string{"--allow-root", "--fail-on", "error,warning", "--no-tag-display-limit"}
		for _, arch := range []string{"amd64", "arm64"} {
			args = append(args, filepath.Join(dir, "omniagent_"+version+"-1_"+arch+".deb"))
		}
		if out, err := newPlace(t).command(lintian, args...).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("installed", func(t *testing.T) { debInstalled(t, dir) })
}

// debForm reads the package without dpkg.
func debForm(t *testing.T, data []byte, arch string) {
	parts := map[string][]byte{}
	rest, ok := bytes.CutPrefix(data, []byte("!<arch>\n"))
	for ok && len(rest) > 0 {
		head := string(rest[:60])
		size, err := strconv.Atoi(strings.TrimSpace(head[48:58]))
		must(t, err)
		parts[strings.TrimSpace(head[:16])] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	if len(parts) != 3 || string(parts["debian-binary"]) != "2.0\n" {
		t.Fatal("that is not a Debian package")
	}
	control := entries(t, parts["control.tar.gz"])
	if len(control) != 3 { // with the directory itself: a script would be one more
		t.Errorf("beside control and md5sums there is more: %v", control)
	}
	text := string(control["./control"].data)
	for _, want := range []string{
		"Package: omniagent\n", "Version: " + version + "-1\n",
		"Architecture: " + arch + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("control lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Depends:") {
		t.Error("it depends on something")
	}
	if !regexp.MustCompile(`(?m)^Maintainer: [^<]+ <[^>]+@[^>]+>$`).MatchString(text) {
		t.Error("nobody maintains it")
	}
	entries(t, parts["data.tar.gz"])
}

// debInstalled installs the package into a root of its own, runs the program and removes it.
func debInstalled(t *testing.T, dir string) {
	dpkg := needs(t, "dpkg")
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("only root may install a package, and only on Linux")
	}
	arch, err := exec.Command(dpkg, "--print-architecture").Output()
	must(t, err)
	p := newPlace(t)
	root := filepath.Join(p.root, "system")
	for _, name := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		must(t, os.MkdirAll(filepath.Join(root, name), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	p.does(t, dpkg, "--root="+root, "--log=/dev/null", "-i",
		filepath.Join(dir, "omniagent_"+version+"-1_"+strings.TrimSpace(string(arch))+".deb"))
	p.works(t, filepath.Join(root, "usr/bin/omniagent"))
	for _, name := range []string{"eidolon", "yume-cli"} {
		if lead, err := os.Readlink(filepath.Join(root, "usr/bin", name)); err != nil || lead != "omniagent" {
			t.Errorf("%s leads to %q: %v", name, lead, err)
		}
	}
	if status := p.does(t, dpkg, "--root="+root, "-s", "omniagent"); !strings.Contains(status,
		"Status: install ok installed\n") || !strings.Contains(status, "Version: "+version+"-1\n") {
		t.Errorf("dpkg says\n%s", status)
	}
	if out := p.does(t, dpkg, "--root="+root, "--verify", "omniagent"); out != "" {
		t.Errorf("other than in the package: %s", out)
	}
	if man, err := exec.LookPath("man"); err == nil {
		if text := p.does(t, man, "-l",
			filepath.Join(root, "usr/share/man/man1/omniagent.1.gz")); !strings.Contains(text,
			"omniagent-config-set(1)") {
			t.Errorf("the manual says\n%s", text)
		}
	}
	bash := needs(t, "bash")
	p.does(t, bash, "-n", filepath.Join(root, "usr/share/bash-completion/completions/omniagent"))
	p.does(t, dpkg, "--root="+root, "--log=/dev/null", "--purge", "omniagent")
	for _, name := range tree(t, root) {
		if !strings.HasPrefix(name, "var/lib/dpkg/") {
			t.Errorf("left behind: %s", name)
		}
	}
}
