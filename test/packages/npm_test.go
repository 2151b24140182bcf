package packages

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// platform is how npm calls this system.
func platform() string {
	system := map[string]string{"windows": "win32"}[runtime.GOOS]
	if system == "" {
		system = runtime.GOOS
	}
	processor := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if processor == "" {
		processor = runtime.GOARCH
	}
	return system + "-" + processor
}

func tgz(dir, system string) string {
	if system != "" {
		system += "-"
	}
	return filepath.Join(dir, "omniagent-"+system+version+".tgz")
}

// npm is a call of npm in an empty machine, which asks nobody but the registry that is named.
func (p place) npm(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := p.command(needs(t, "npm"),
		append([]string{"--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"}, args...)...)
	cmd.Dir = dir
	return cmd
}

func (p place) project(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(p.root, "project")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o644))
	return dir
}

func succeeds(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// TestNpmPackages looks into the packages: a script of an installation would be in package.json.
func TestNpmPackages(t *testing.T) {
	dir := built(t)
	for system, want := range map[string]string{
		"": "[darwin linux] [x64 arm64]", "darwin-arm64": "[darwin] [arm64]", "darwin-x64": "[darwin] [x64]",
		"linux-arm64": "[linux] [arm64]",
		"linux-x64":   "[linux] [x64]", "win32-arm64": "[win32] [arm64]", "win32-x64": "[win32] [x64]",
	} {
		parts := entries(t, read(t, tgz(dir, system)))
		var m map[string]any
		must(t, json.Unmarshal(parts["package/package.json"].data, &m))
		known := []string{
			"name", "version", "description", "license", "bin", "os", "cpu", "optionalDependencies",
			"preferUnplugged",
		}
		for key := range m {
			if !slices.Contains(known, key) {
				t.Errorf("the package for %q has %s in package.json", system, key)
			}
		}
		program := "package/" + m["bin"].(map[string]any)["omniagent"].(string)
		for _, name := range []string{"eidolon", "yume-cli"} {
			linked, _ := m["bin"].(map[string]any)[name].(string)
			file := parts["package/"+linked].Header
			if windows := strings.HasPrefix(system, "win32") && name == "eidolon"; windows != (linked == "") ||
				!windows && (file == nil || file.Mode != 0o755) {
				t.Errorf("in the package for %q %s is %q", system, name, linked)
			}
		}
		if got := fmt.Sprint(m["os"], m["cpu"]); got != want {
			t.Errorf("the package for %q is for %s", system, got)
		}
		if m["version"] != version || parts[program].Header == nil || parts[program].Mode != 0o755 {
			t.Errorf("the package for %q is %v, with %s", system, m["version"], program)
		}
	}
}

// TestNpmFiles installs from the files, without any registry.
func TestNpmFiles(t *testing.T) {
	dir := built(t)
	for name, files := range map[string][]string{
		"both": {tgz(dir, ""), tgz(dir, platform())},
		"one":  {tgz(dir, platform())},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			project := p.project(t)
			succeeds(t, p.npm(t, project, append([]string{"install", "--offline"}, files...)...))
			link := filepath.Join(project, "node_modules", ".bin", "omniagent")
			if to, err := filepath.EvalSymlinks(link); err != nil || to != filepath.Join(project, "node_modules",
				"@omniagent", platform(), "bin", "omniagent") {
				t.Errorf("the link leads to %s: %v", to, err)
			}
			p.works(t, link)
			p.names(t, filepath.Dir(link))
		})
	}
}

// names holds that the further names lead to the program, and that it knows under which it was started.
func (p place) names(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"omniagent", "yume-cli", "eidolon"} {
		if got := p.does(t, filepath.Join(dir, name), "--version"); got != version+"\n" {
			t.Errorf("%s is version %q", name, got)
		}
	}
	cmd := p.command(filepath.Join(dir, "eidolon"), "--rehearse") // a conversation, line by line in a pipe
	cmd.Stdin = strings.NewReader("hello\n")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "/help lists the commands") {
		t.Errorf("eidolon: %v\n%s", err, out)
	}
}

// TestNpmRegistry installs by name, from a registry of our own.
func TestNpmRegistry(t *testing.T) {
	dir := built(t)
	t.Parallel()
	needs(t, "npm")
	registry := "--registry=" + newRegistry(t, dir)
	t.Run("global", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		prefix := filepath.Join(p.root, "prefix")
		succeeds(t, p.npm(t, p.root, "install", "--global", "--prefix="+prefix, registry, "omniagent"))
		if got := platforms(t, prefix); !slices.Equal(got, []string{platform()}) {
			t.Errorf("installed are %q", got)
		}
		link := filepath.Join(prefix, "bin", "omniagent")
		p.works(t, link)
		p.names(t, filepath.Dir(link))
		becomes(t, p, link)
		succeeds(t, p.npm(t, p.root, "uninstall", "--global", "--prefix="+prefix, "omniagent"))
		if left := tree(t, prefix); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	})
	t.Run("project", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		project := p.project(t)
		succeeds(t, p.npm(t, project, "install", registry, "omniagent"))
		link := filepath.Join(project, "node_modules", ".bin", "omniagent")
		if to, err := filepath.EvalSymlinks(link); err != nil || !strings.Contains(to, "@omniagent") {
			t.Errorf("the link leads to %s: %v", to, err)
		}
		p.works(t, link)
		if again := succeeds(t, p.npm(t, project, "ci", registry)); strings.Contains(again, "warn") {
			t.Errorf("npm ci: %s", again)
		}
		p.works(t, link)
	})
	t.Run("exec", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		if got := succeeds(t, p.npm(t, p.root, "exec", "--yes", registry, "omniagent", "--",
			"--version")); !strings.Contains(got, version) {
			t.Errorf("npm exec prints %q", got)
		}
	})
	t.Run("without_optional", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		project := p.project(t)
		succeeds(t, p.npm(t, project, "install", registry, "--omit=optional", "omniagent"))
		out, err := p.command(filepath.Join(project, "node_modules", ".bin", "omniagent"), "--version").CombinedOutput()
		if err == nil ||
			!strings.Contains(string(out), "the package @omniagent/"+platform()+" is not installed\nhint: ") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("windows", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		project := p.project(t)
		// npm plays another system for optional packages only.
		succeeds(t, p.npm(t, project, "install", registry, "--os=win32", "--cpu=x64", "--save-optional",
			"@omniagent/win32-x64"))
		isFor(t, read(t, project, "node_modules/@omniagent/win32-x64/bin/omniagent.exe"),
			measure.Target{OS: "windows", Arch: "amd64"})
	})
	t.Run("mac", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		project := p.project(t)
		succeeds(t, p.npm(t, project, "install", registry, "--os=darwin", "--cpu=arm64", "omniagent"))
		if got := platforms(t, project); !slices.Equal(got, []string{"darwin-arm64"}) {
			t.Errorf("installed are %q", got)
		}
	})
}

// platforms are the packages of systems that lie below a directory.
func platforms(t *testing.T, dir string) []string {
	t.Helper()
	found := []string{}
	for _, name := range tree(t, dir) {
		if _, rest, ok := strings.Cut(name, "@omniagent/"); ok && strings.HasSuffix(rest, "/package.json") {
			found = append(found, strings.TrimSuffix(rest, "/package.json"))
		}
	}
	return found
}

// becomes holds that nothing stands between the link and the program: its exit code, its arguments and a signal to the
// process.
func becomes(t *testing.T, p place, link string) {
	t.Helper()
	var exit *exec.ExitError
	if err := p.command(link, "config", "get", "no such key", "").Run(); !errors.As(err, &exit) ||
		exit.ExitCode() != 2 {
		t.Errorf("a wrong call ends with %v", err)
	}

	cmd := p.command(link, "--agent", "native", "--rehearse") // waits for a prompt
	in, err := cmd.StdinPipe()
	must(t, err)
	defer func() { _ = in.Close() }()
	must(t, cmd.Start())
	program := filepath.Join("bin", "omniagent")
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		exe, _ := os.Readlink("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/exe")
		if strings.HasSuffix(exe, program) {
			break
		}
		if runtime.GOOS != "linux" || time.Since(start) > 20*time.Second {
			_ = cmd.Process.Kill()
			t.Fatalf("the process is %s and does not become the program", exe)
		}
	}
	must(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
}

// TestLauncher calls the script of the main package where packages of several systems lie beside each other.
func TestLauncher(t *testing.T) {
	dir := built(t)
	p := newPlace(t)
	script := entries(t, read(t, tgz(dir, "")))["package/bin/omniagent"].data
	modules := filepath.Join(p.root, "node_modules")
	put := func(name, text string) string {
		path := filepath.Join(modules, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, hermetic.WriteProgram(path, []byte(text), 0o755))
		return path
	}
	main := put("omniagent/bin/omniagent", string(script))
	for _, system := range []string{"darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"} {
		put("@omniagent/"+system+"/bin/omniagent", "#!/bin/sh\necho "+system+" \"$@\"\n")
	}
	if got := p.does(t, main, "a  b", ""); got != platform()+" a  b \n" {
		t.Errorf("it becomes %q", got)
	}
	// The script hands on under which name it was started.
	if got := p.does(t, put("omniagent/bin/eidolon", string(script)), "a  b"); got != platform()+" eidolon a  b\n" {
		t.Errorf("under the name eidolon it becomes %q", got)
	}
	// Links of links, absolute ones and such with blanks in their names, lead to it as well.
	first, second := filepath.Join(p.root, "first link"), filepath.Join(p.root, "second")
	must(t, os.Symlink("node_modules/omniagent/bin/omniagent", first))
	must(t, os.Symlink(first, second))
	if got := p.does(t, second); got != platform()+" \n" && got != platform()+"\n" {
		t.Errorf("through links it becomes %q", got)
	}
	// A nested package is nearer than a sibling.
	put("omniagent/node_modules/@omniagent/"+platform()+"/bin/omniagent", "#!/bin/sh\necho nearer\n")
	if got := p.does(t, main); got != "nearer\n" {
		t.Errorf("it becomes %q", got)
	}
}

// TestNpmCost measures the start of the program through the links that npm makes.
func TestNpmCost(t *testing.T) {
	dir := built(t)
	p := newPlace(t)
	prefix := filepath.Join(p.root, "prefix")
	succeeds(t, p.npm(t, p.root, "install", "--global", "--prefix="+prefix, "--registry="+newRegistry(t, dir),
		"omniagent"))
	project := p.project(t)
	succeeds(t, p.npm(t, project, "install", "--offline", tgz(dir, ""), tgz(dir, platform())))
	direct := measure.Program{File: filepath.Join(project, "node_modules", "@omniagent", platform(), "bin",
		"omniagent")}
	local := measure.Program{File: filepath.Join(project, "node_modules", ".bin", "omniagent")}
	global := measure.Program{File: filepath.Join(prefix, "bin", "omniagent")}
	node := measure.Program{File: needs(t, "node")}
	times, err := measure.Runs(10, direct.With("--version"), local.With("--version"), global.With("--version"),
		node.With("-e", ""))
	must(t, err)
	t.Logf("medians: direct %v, link of a project %v, link of all projects %v; node alone %v", times[0].Median(),
		times[1].Median(), times[2].Median(), times[3].Median())
	// The smallest are compared: the machine disturbs them least.
	if times[1].Min() > 3*times[0].Min()/2 {
		t.Errorf("the link of a project costs %v instead of %v", times[1].Min(), times[0].Min())
	}
	if times[2].Min() > times[0].Min()+times[3].Min()/2 {
		t.Errorf("the link of all projects costs %v instead of %v: more than half of a node", times[2].Min(),
			times[0].Min())
	}
}

// newRegistry serves the packages as a registry does, and returns its address.
func newRegistry(t *testing.T, dir string) string {
	t.Helper()
	about, files := map[string]map[string]any{}, http.StripPrefix("/files/", http.FileServer(http.Dir(dir)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := about[r.URL.Path]
		switch {
		case m != nil:
			_ = json.NewEncoder(w).Encode(map[string]any{
				"name":      m["name"],
				"dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: m},
			})
		case strings.HasPrefix(r.URL.Path, "/files/"):
			files.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	for _, system := range []string{
		"", "darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "win32-arm64",
		"win32-x64",
	} {
		data := read(t, tgz(dir, system))
		var m map[string]any
		must(t, json.Unmarshal(entries(t, data)["package/package.json"].data, &m))
		sum := sha512.Sum512(data)
		m["dist"] = map[string]string{
			"tarball":   server.URL + "/files/" + filepath.Base(tgz(dir, system)),
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
		about["/"+m["name"].(string)] = m
	}
	return server.URL
}
