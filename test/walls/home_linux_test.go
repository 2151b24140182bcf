package walls

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// secrets are files of a home directory that nobody listed: kept by tools nobody thought of, beside what is shown, or
// where a home directory never has them.
func secrets() []string {
	return []string{
		".bash_history", ".config/gh/hosts.yml", ".cache/huggingface/token", ".local/share/com.example/auth.json",
		".tool-of-tomorrow/credentials", "Documents/passwords.txt", "notes", ".config/git/credentials",
		".cargo/credentials.toml", ".npmrc", ".m2/settings.xml", ".gradle/gradle.properties", ".npm/token",
		".local/state/app/log", "src/other/.env", ".gitconfig.local",
	}
}

// TestHomeByAllowList: commands of the model read none of the secrets of a home directory, whatever the directory that
// they lie in holds besides; what is on the list they read.
func TestHomeByAllowList(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		for _, name := range secrets() {
			g.write(t, filepath.Join(g.home, name), canary()+"\n")
		}
		g.write(t, g.home+"/.cargo/registry/crate", "of the list\n")
		g.write(t, g.home+"/.m2/repository/artifact", "of the list\n")
		g.write(t, g.home+"/.local/bin/tool", "#!/bin/sh\necho of the list\n")
		must(t, os.Chmod(g.home+"/.local/bin/tool", 0o700))
		g.write(t, g.home+"/src/library/code", "of the user\n")
		g.rules(t, "read = ['~/src/library']\n")
		g.env = append(g.env, "PATH="+g.home+"/.local/bin:/usr/bin:/bin")
		lines := []string{
			"grep -rh canary ~ {home} 2>/dev/null", "find {home} -type f -exec cat {} + 2>/dev/null",
			"tar c {home} 2>/dev/null | grep -a canary; true",
			"cat /proc/self/root{home}/notes /proc/self/cwd/../home/notes",
			"cat ~/.cargo/registry/crate {home}/.m2/repository/artifact {home}/src/library/code; tool",
		}
		for _, name := range secrets() {
			lines = append(lines, "d={home}; cat $d/"+name)
		}
		var steps []string
		for _, line := range lines {
			steps = append(steps, bash(g.fill(line, "")))
		}
		o := g.turn(t, where, together(steps), "--permission-mode", "auto", "--max-turns", "1000")
		if len(o.results) != len(steps) {
			t.Fatalf("%s\n%s", o.out, o.stderr)
		}
		for i, r := range o.results {
			if strings.Contains(r.Content, canary()) || strings.Contains(r.Content, "REDACTED") {
				t.Errorf("%s: %s", lines[i], r.Content)
			}
		}
		if got := o.results[4].Content; strings.Count(got, "of the list") != 3 ||
			!strings.Contains(got, "of the user") {
			t.Errorf("what is on the list is not seen: %s", got)
		}
	}, namespaces(), landlock())
}

// TestReadIsRefused: a configuration that opens more than it says is not obeyed in part.
func TestReadIsRefused(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		for _, entry := range []string{"~", "/", "~/.ssh", "~/.config", "~/link"} {
			g := newGround(t)
			must(t, os.Symlink(".", g.home+"/link"))
			g.rules(t, fmt.Sprintf("read = [%q]\n", entry))
			o := g.turn(t, where, []string{bash("touch ran")}, "--permission-mode", "auto")
			if exists(g.work+"/ran") || !strings.Contains(o.out+o.stderr, "native.read") {
				t.Errorf("%s: %s\n%s", entry, o.out, o.stderr)
			}
		}
	}, namespaces(), landlock())
}

// run runs a line behind walls.
func (g *ground) run(t *testing.T, where tier, line string) (string, error) {
	t.Helper()
	cmd := g.command(where, "sandbox", "run", "--", "bash", "-c", line)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestToolchains: what is installed here builds and runs behind walls, without a network, from the caches that are
// there; and what it writes into them does not get into the user's.
func TestToolchains(t *testing.T) {
	cache := func(args ...string) string {
		out, _ := exec.Command("go", args...).Output()
		return strings.TrimSpace(string(out))
	}
	tools := []struct{ name, program, line, want string }{
		{"go", "go", "cd go && go build -o hello . && ./hello && go test ./... && go vet .", "hello\n"},
		{
			"npm", "npm", "npm --version && cd node && npm ci --offline --no-audit --no-fund && npm test --silent",
			"of node\n",
		},
		{
			"venv", "python3", "python3 -m venv --without-pip env && env/bin/python -c 'print(\"of python\")'",
			"of python\n",
		},
		{"pip", "pip3", "pip3 --version", "pip "},
		{"cargo", "cargo", "cargo --version && cd rust && cargo build --offline && target/debug/hello", "of rust\n"},
		{"maven", "mvn", "mvn --version", "Maven home"},
		{"git", "git", "mkdir made; cd node && git log -1 2>/dev/null; git config user.name", "Ann\n"},
	}
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		g.env = append(g.env, "GOCACHE="+cache("env", "GOCACHE"), "GOMODCACHE="+cache("env", "GOMODCACHE"),
			"GOTOOLCHAIN=local", "GOPROXY=off")
		if home, err := os.UserHomeDir(); err == nil { // where rustup has put the toolchain
			g.env = append(g.env, "RUSTUP_HOME="+home+"/.rustup")
		}
		for name, text := range map[string]string{
			"go/go.mod":         "module hello\n\ngo 1.21\n",
			"go/main.go":        "package main\n\nfunc main() { println(\"hello\") }\n",
			"go/main_test.go":   "package main\n\nimport \"testing\"\n\nfunc TestIt(*testing.T) {}\n",
			"node/package.json": `{"name":"n","version":"1.0.0","scripts":{"test":"node -p \"'of node'\""}}`,
			"node/package-lock.json": `{"name":"n","version":"1.0.0","lockfileVersion":3,"packages":` +
				`{"":{"name":"n","version":"1.0.0"}}}`,
			"rust/Cargo.toml":  "[package]\nname = \"hello\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
			"rust/src/main.rs": "fn main() { println!(\"of rust\"); }\n",
		} {
			g.write(t, filepath.Join(g.work, name), text)
		}
		g.write(t, g.home+"/.gitconfig", "[user]\n\tname = Ann\n")
		for _, tool := range tools {
			t.Run(tool.name, func(t *testing.T) {
				if _, err := exec.LookPath(tool.program); err != nil {
					t.Skipf("%s is not installed here", tool.program)
				}
				if tool.name == "go" { // on a new machine the cache has nothing of the standard library yet
					elsewhere := t.TempDir()
					must(t, os.CopyFS(elsewhere+"/go", os.DirFS(g.work+"/go")))
					warm := exec.Command("bash", "-c", tool.line)
					warm.Dir = elsewhere
					if out, err := warm.CombinedOutput(); err != nil {
						t.Fatalf("without walls: %v: %s", err, out)
					}
				}
				line := tool.line
				if where.name == "landlock" { // there the cache is empty at first, so only what is printed is compiled
					line = strings.Replace(line, " && go test ./... && go vet .", "", 1)
				}
				if out, err := g.run(t, where, line); err != nil || !strings.Contains(out, tool.want) {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	}, namespaces(), landlock())
}

// TestCacheElsewhere: a cache that a variable names and commands cannot write makes go fail, so they do not get the
// variable.
func TestCacheElsewhere(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed here")
	}
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		g.env = append(g.env, "GOTOOLCHAIN=local")
		env := g.env
		for cache, own := range map[string]bool{g.base + "/cache": false, g.work + "/cache": true} {
			must(t, os.Mkdir(cache, 0o700))
			g.env = append(slices.Clone(env), "GOCACHE="+cache)
			out, err := g.run(t, where,
				`at=$(go env GOCACHE) && mkdir -p "$at" && touch "$at/x" && echo "at <$GOCACHE>"`)
			given := strings.Contains(out, "at <"+cache+">")
			// In a home directory commands find an empty directory of their own there, so they may have the name.
			if err != nil || !given && (own || !strings.Contains(out, "at <>")) {
				t.Errorf("%s: %v: %s", cache, err, out)
			}
			if _, err := os.Stat(cache + "/x"); own != (err == nil) {
				t.Errorf("%s, outside: %v", cache, err)
			}
		}
	}, namespaces(), landlock())
}

// TestCachesAreNotPoisoned: commands change, replace and remove what is in the user's caches, and it stays as it was.
func TestCachesAreNotPoisoned(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		caches := []string{
			".cache/go-build", "go/pkg/mod", ".cargo/registry", ".npm/_cacache", ".m2/repository", ".gradle/caches",
			".cache/pip", ".local/share/pnpm",
		}
		for _, name := range caches {
			g.write(t, filepath.Join(g.home, name, "entry"), "good\n")
			g.write(t, filepath.Join(g.home, name, "deep/entry"), "good\n")
		}
		print := func() (all string) {
			for _, name := range caches {
				all += name + "\n" + tree(t, filepath.Join(g.home, name))
			}
			return all
		}
		before := print()
		for _, name := range caches {
			for _, at := range []string{"~", g.home} {
				line := g.fill("c="+at+"/"+name+
					"; echo evil > $c/entry; echo evil > $c/new; rm -r $c/deep; mv $c/entry $c/x; "+
					"ln -sfn {out} $c/deep; echo evil > $c/deep/file; true", "")
				if out, err := g.run(t, where, line); err != nil {
					t.Errorf("%s: %v %s", name, err, out)
				}
			}
		}
		if after := print(); after != before {
			t.Errorf("the home directory was\n%s\nand is\n%s", before, after)
		}
		if text, _ := os.ReadFile(g.out + "/file"); string(text) != "outside\n" {
			t.Errorf("%q", text)
		}
		if where.name == "namespaces" {
			o := g.turn(t, where, []string{bash("echo mine > ~/.cargo/registry/new"), bash("cat ~/.cargo/registry/*")},
				"--permission-mode", "auto")
			if len(o.results) != 2 || !strings.Contains(o.results[1].Content, "good\nmine\n") {
				t.Errorf("the next command does not see what one wrote: %s", o.out)
			}
		}
	}, namespaces(), landlock())
}

// TestExplainedHome: sandbox explain says what is seen of the home directory, and why.
func TestExplainedHome(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		g.write(t, g.home+"/.cargo/bin/tool", "")
		for path, want := range map[string]bool{
			".cargo/bin/tool": true, ".cargo/credentials": false, "plain": false, ".cache": true,
			".cache/secret": false, ".unknown/x": false,
		} {
			var said struct {
				Effects []struct {
					Access, Why string
					Allowed     bool
				}
				Places []struct{ Path, Why, How string }
			}
			g.answer(t, where, &said, "sandbox", "explain", filepath.Join(g.home, path))
			if len(said.Effects) != 2 || said.Effects[0].Allowed != want || said.Effects[0].Why == "" {
				t.Errorf("%s: %+v", path, said.Effects)
			}
			if text := fmt.Sprint(said.Places); !strings.Contains(text, g.home+"/.cargo/bin") || strings.Contains(text,
				g.home+"/.rustup") {
				t.Errorf("%s", text)
			}
		}
	}, namespaces(), landlock())
}
