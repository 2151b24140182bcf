package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
)

func drivers() []agent.Driver {
	return []agent.Driver{claude.New(), codex.New(), copilot.New(), gemini.New(), opencode.New()}
}

// tree is a file system made for one test. A name that ends in "*" is executable; a text that begins with "->" is a
// link.
type tree map[string]string

func (tr tree) grow(t *testing.T) (root string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the layouts are those of POSIX systems")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range tr {
		bare := strings.TrimSuffix(name, "*")
		path := filepath.Join(root, bare)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if bare != name {
			mode = 0o755
		}
		if to, ok := strings.CutPrefix(text, "->"); ok {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(text), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func environ(path string) agent.Env {
	return agent.Env{Lookup: func(name string) (string, bool) {
		if name == "PATH" {
			return path, true
		}
		return "", false
	}}
}

func pkg(name, version string) string {
	return `{"name":"` + name + `","version":"` + version + `","license":"x"}`
}

// realTree is what npm install -g of the five leaves, without what they consist of.
func realTree() tree {
	const m = "lib/node_modules/"
	return tree{
		"bin/claude": "->../lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe",
		m + "@anthropic-ai/claude-code/bin/claude.exe*": "\x7fELF",
		m + "@anthropic-ai/claude-code/package.json": pkg(
			"@anthropic-ai/claude-code", "2.1.329"),
		m + "@anthropic-ai/claude-code/node_modules/@anthropic-ai/claude-code-linux-x64/claude*": "\x7fELF",
		m + "@anthropic-ai/claude-code/node_modules/@anthropic-ai/claude-code-linux-x64/package.json": pkg(
			"@anthropic-ai/claude-code-linux-x64", "2.1.329"),
		"bin/codex":                       "->../lib/node_modules/@openai/codex/bin/codex.js",
		m + "@openai/codex/bin/codex.js*": "#!/usr/bin/env node\n",
		m + "@openai/codex/package.json":  pkg("@openai/codex", "0.169.0"),
		m + "@openai/codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex*": "\x7fELF",
		// Named like the package itself, and the platform stands in the version.
		m + "@openai/codex/node_modules/@openai/codex-linux-x64/package.json": pkg("@openai/codex",
			"0.169.0-linux-x64"),
		"bin/copilot":                        "->../lib/node_modules/@github/copilot/npm-loader.js",
		m + "@github/copilot/npm-loader.js*": "#!/usr/bin/env node\n",
		m + "@github/copilot/package.json":   pkg("@github/copilot", "1.0.102"),
		m + "@github/copilot/node_modules/@github/copilot-linux-x64/copilot*": "\x7fELF",
		m + "@github/copilot/node_modules/@github/copilot-linux-x64/package.json": pkg("@github/copilot-linux-x64",
			"1.0.102"),
		"bin/gemini": "->../lib/node_modules/@google/gemini-cli/bundle/gemini.js",
		m + "@google/gemini-cli/bundle/gemini.js*":                      "#!/usr/bin/env node\n",
		m + "@google/gemini-cli/package.json":                           pkg("@google/gemini-cli", "0.61.0"),
		"bin/opencode":                                                  "->../lib/node_modules/opencode-ai/bin/opencode.exe",
		m + "opencode-ai/bin/opencode.exe*":                             "\x7fELF",
		m + "opencode-ai/package.json":                                  pkg("opencode-ai", "1.18.33"),
		m + "opencode-ai/node_modules/opencode-linux-x64/bin/opencode*": "\x7fELF",
		m + "opencode-ai/node_modules/opencode-linux-x64/package.json":  pkg("opencode-linux-x64", "1.18.33"),
	}
}

func TestInstalledByNpm(t *testing.T) {
	root := realTree().grow(t)
	for _, d := range drivers() {
		t.Run(d.Name(), func(t *testing.T) {
			in, err := d.Locate(environ(root + "/bin"))
			if err != nil {
				t.Fatal(err)
			}
			about := d.Describe()
			if in.Path != filepath.Join(root, "bin", about.Binary) {
				t.Errorf("path %s", in.Path)
			}
			if !strings.HasPrefix(in.RealPath, filepath.Join(root, "lib/node_modules", about.Package)+"/") {
				t.Errorf("real path %s", in.RealPath)
			}
			// The tree holds the versions that the install commands pin.
			if want := about.Package + "@" + in.Version; !strings.HasSuffix(about.InstallCommand, want) {
				t.Errorf("version %q does not fit %q", in.Version, about.InstallCommand)
			}
		})
	}
}

func TestExecutableOfThePlatformInPath(t *testing.T) {
	root := realTree().grow(t)
	const m = "/lib/node_modules/"
	for _, tt := range []struct {
		d   agent.Driver
		dir string
	}{
		{claude.New(), "@anthropic-ai/claude-code/node_modules/@anthropic-ai/claude-code-linux-x64"},
		{codex.New(), "@openai/codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin"},
		{copilot.New(), "@github/copilot/node_modules/@github/copilot-linux-x64"},
		{opencode.New(), "opencode-ai/node_modules/opencode-linux-x64/bin"},
	} {
		d, dir := tt.d, tt.dir
		// Alone, as other package managers place it: nothing above it may help.
		alone := filepath.Join(t.TempDir(), "alone")
		top, rest, _ := strings.Cut(dir, "/node_modules/")
		if err := os.CopyFS(alone, os.DirFS(root+m+top+"/node_modules")); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{root + m + dir, filepath.Join(alone, rest)} {
			in, err := d.Locate(environ(path))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(d.Describe().InstallCommand, "@"+in.Version) || in.Version == "" {
				t.Errorf("%s in %s: version %q", d.Name(), path, in.Version)
			}
		}
	}
}

func TestDescriptions(t *testing.T) {
	command := regexp.MustCompile(`^npm install -g (\S+)@\d+\.\d+\.\d+$`)
	seen := map[string]bool{}
	for _, d := range drivers() {
		a := d.Describe()
		m := command.FindStringSubmatch(a.InstallCommand)
		if m == nil || m[1] != a.Package {
			t.Errorf("%s: %q does not pin a version of %s", d.Name(), a.InstallCommand, a.Package)
		}
		if a.Title == "" || a.Binary == "" || seen[d.Name()] {
			t.Errorf("%s: %+v", d.Name(), a)
		}
		seen[d.Name()] = true
	}
}

func TestNotInstalled(t *testing.T) {
	root := tree{
		"dangling/claude": "->nowhere",
		"loop/claude":     "->claude",
		"dir/claude/file": "",
		"plain/claude":    "#!/bin/sh\n",
		"file":            "",
		"repo/claude*":    "#!/bin/sh\n",
	}.grow(t)
	t.Chdir(root + "/repo")
	tests := []struct{ name, path, passed string }{
		{"empty", "", ""},
		{"no such directory", root + "/none", ""},
		{"below a file", root + "/file", ""},
		{"dangling link", root + "/dangling", "/dangling/claude is a link that leads nowhere"},
		{"link to itself", root + "/loop", "/loop/claude is a link that cannot be followed"},
		{"directory", root + "/dir", "/dir/claude is a directory"},
		{"not executable", root + "/plain", "/plain/claude is not executable"},
		{"here", ".", "relative or empty"},
		{"here, unwritten", ":", "relative or empty"},
		{"here, between", root + "/none::" + root + "/none", "relative or empty"},
		{"relative", "../repo", "relative or empty"},
		{"several", root + "/plain:" + root + "/dir", "is not executable; "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := environ(tt.path)
			env.Dir = root + "/repo"
			in, err := claude.New().Locate(env)
			if in != (agent.Install{}) || !errors.Is(err, fault.NotInstalled) {
				t.Fatalf("%+v, %v", in, err)
			}
			f := fault.Of(err)
			if f.FixCommand != claude.New().Describe().InstallCommand || f.Fix == "" {
				t.Errorf("fix %q by %q", f.Fix, f.FixCommand)
			}
			if !strings.Contains(f.Suggestion, tt.passed) || (f.Suggestion == "") != (tt.passed == "") {
				t.Errorf("hint %q, want %q in it", f.Suggestion, tt.passed)
			}
		})
	}
	if _, err := claude.New().Locate(agent.Env{}); !errors.Is(err, fault.NotInstalled) {
		t.Errorf("without an environment: %v", err)
	}
}

func TestLaterInPath(t *testing.T) {
	tr := realTree()
	tr["dangling/claude"] = "->nowhere"
	tr["loop/claude"] = "->claude"
	tr["dir/claude/file"] = ""
	tr["plain/claude"] = "#!/bin/sh\n"
	tr["repo/claude*"] = "#!/bin/sh\n"
	root := tr.grow(t)
	t.Chdir(root + "/repo")
	dirs := []string{
		"", ".", root + "/none", root + "/dangling", root + "/loop", root + "/dir", root + "/plain",
		root + "/bin", root + "/repo",
	}
	in, err := claude.New().Locate(environ(strings.Join(dirs, ":")))
	if err != nil || in.Path != root+"/bin/claude" || in.Version != "2.1.329" {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestVersions(t *testing.T) {
	const name = "@openai/codex"
	tests := []struct{ name, version, want string }{
		{"plain", "1.2.3", "1.2.3"},
		{"pre-release", "0.170.0-alpha.1", "0.170.0-alpha.1"},
		{"build", "1.2.3-rc.1+sha.5", "1.2.3-rc.1+sha.5"},
		{"platform", "0.169.0-darwin-arm64", "0.169.0"},
		{"pre-release and platform", "0.170.0-alpha.1-win32-x64", "0.170.0-alpha.1"},
		{"empty", "", ""},
		{"two numbers", "1.2", ""},
		{"four numbers", "1.2.3.4", ""},
		{"v", "v1.2.3", ""},
		{"platform only", "-linux-x64", ""},
		{"space", "1.2.3 ", ""},
		{"line", `1.2.3\n`, ""},
		{"escape", `1.2.3\u001b[31m`, ""},
		{"escape in the pre-release", `1.2.3-\u001b[31m`, ""},
		{"other digits", "١.٢.٣", ""},
		{"long", "1.2.3-" + strings.Repeat("a", 100), ""},
		{"path", "1.2.3-../../x", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := tree{
				"p/bin/codex*": "", "p/package.json": pkg(name, tt.version),
				"package.json": pkg(name, "9.9.9"),
			}.grow(t)
			in, err := codex.New().Locate(environ(root + "/p/bin"))
			if err != nil || in.Version != tt.want {
				t.Errorf("%+v, %v; want %q", in, err, tt.want)
			}
		})
	}
}

func TestManifests(t *testing.T) {
	outer := pkg("opencode-ai", "1.2.3")
	tests := []struct {
		name, inner, want string
	}{
		{"of another package", pkg("other", "9.9.9"), "1.2.3"},
		{"of a bundle, nameless", `{"type":"module"}`, "1.2.3"},
		{"of a product named alike", pkg("opencode-ai-sdk", "9.9.9"), "1.2.3"},
		{"of a product named like a platform's", pkg("opencode-linux", "9.9.9"), "1.2.3"},
		{"of an unknown variant", pkg("opencode-linux-x64-evil", "9.9.9"), "1.2.3"},
		{"of a platform", pkg("opencode-windows-x64-baseline", "3.2.1"), "3.2.1"},
		{"garbage", "\x00\xff{{{", "1.2.3"},
		{"empty", "", "1.2.3"},
		{"an array", "[]", "1.2.3"},
		{"null", "null", "1.2.3"},
		{"a name that is a number", `{"name":1,"version":"9.9.9"}`, "1.2.3"},
		{"deep", strings.Repeat("[", 100_000), "1.2.3"},
		{"with a byte order mark", "\ufeff" + pkg("opencode-ai", "3.2.1"), "3.2.1"},
		{"a version that is a number", `{"name":"opencode-ai","version":9}`, ""},
		{"no version", `{"name":"opencode-ai"}`, ""},
		{
			"just small enough", pkg("opencode-ai", "3.2.1") + strings.Repeat(" ",
				1<<20-len(pkg("opencode-ai", "3.2.1"))),
			"3.2.1",
		},
		{"too large", pkg("opencode-ai", "3.2.1") + strings.Repeat(" ", 1<<20), "1.2.3"},
		{"a link to a device", "->/dev/zero", "1.2.3"},
		{"a link to itself", "->package.json", "1.2.3"},
		{"a link to a file", "->real.json", "3.2.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := tree{
				"package.json": outer, "in/package.json": tt.inner, "in/real.json": pkg("opencode-ai",
					"3.2.1"), "in/opencode*": "",
			}.grow(t)
			in, err := opencode.New().Locate(environ(root + "/in"))
			if err != nil || in.Version != tt.want {
				t.Errorf("%+v, %v; want %q", in, err, tt.want)
			}
		})
	}
	t.Run("a directory", func(t *testing.T) {
		root := tree{"package.json": outer, "in/package.json/x": "", "in/opencode*": ""}.grow(t)
		if in, err := opencode.New().Locate(environ(root + "/in")); err != nil || in.Version != "1.2.3" {
			t.Errorf("%+v, %v", in, err)
		}
	})
	t.Run("none", func(t *testing.T) {
		root := tree{"in/opencode*": ""}.grow(t)
		if in, err := opencode.New().Locate(environ(root + "/in")); err != nil || in.Version != "" {
			t.Errorf("%+v, %v", in, err)
		}
	})
}

func TestNoNativeName(t *testing.T) {
	root := tree{"in/package.json": `{"name":"-linux-x64","version":"9.9.9"}`, "in/x*": ""}.grow(t)
	p := cli.Program{ID: "x", About: agent.About{Title: "X", Binary: "x", Package: "x"}}
	if in, err := p.Locate(environ(root + "/in")); err != nil || in.Version != "" {
		t.Errorf("%+v, %v", in, err)
	}
}

func hint(err error) string { return fault.Of(err).Suggestion }
