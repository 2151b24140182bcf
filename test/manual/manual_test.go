//go:build unix

package manual

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/kit/text"
)

// TestReadme types everything that README.md shows.
func TestReadme(t *testing.T) {
	for _, b := range blocks(t, "README.md") {
		t.Run(fmt.Sprintf("%s_line_%d", b.kind, b.line), func(t *testing.T) {
			switch {
			case b.file != "": // a program for a host, which calls it as it calls Claude Code
				r := newReader(t)
				r.stubs(t)
				r.files(t, []block{b})
				shown, code := r.types(t, "-euc",
					b.file+" -p hello --model claude-sonnet-4-5 --output-format stream-json --verbose")
				if code != 0 || !strings.Contains(shown, `"type":"result","subtype":"success"`) {
					t.Errorf("README.md:%d: exit code %d\n%s", b.line, code, shown)
				}
			case strings.Contains(b.text, "go install"):
				install(t, b.text)
			case strings.HasPrefix(b.text, "$ omniagent run --rehearse"):
				firstRun(t, b)
			case b.kind == "sh":
				r := newReader(t)
				r.stubs(t)
				shown, code := r.types(t, "-euc", b.text)
				t.Log(shown)
				if code != 0 {
					t.Errorf("README.md:%d: exit code %d\n%s", b.line, code, shown)
				}
			case b.kind == "console":
				answers(t, newReader(t), "README.md", b)
			}
		})
	}
}

// TestPages types the commands of the other pages, and compares the answers where those are of this program. What
// docs/install.md shows needs packages, and is typed in test/packages.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	must(t, err)
	for _, path := range pages {
		name := filepath.Base(path)
		list := blocks(t, "docs/"+name)
		for _, b := range list {
			compared := b.kind == "console" &&
				slices.Contains([]string{"configuration.md", "custom-agents.md", "output.md"}, name)
			if name == "install.md" || b.file != "" || b.kind != "sh" && !compared {
				continue
			}
			t.Run(fmt.Sprintf("%s_line_%d", name, b.line), func(t *testing.T) {
				r := newReader(t)
				if _, code := r.types(t, "-euc", "omniagent config set audit.keep 10"); code != 0 {
					t.Fatal("there is no configuration")
				}
				if compared {
					r.files(t, list)
					answers(t, r, "docs/"+name, b)
					return
				}
				r.stubs(t)
				if _, err := exec.LookPath("jq"); err != nil && strings.Contains(b.text, "jq") {
					t.Skip("jq is not installed")
				}
				text := b.text
				if name == "run.md" { // which begins with a run, to which the rest comes back
					text = list[0].text + b.text
				}
				shown, code := r.types(t, "-euc", text)
				t.Log(shown)
				if code != 0 {
					t.Errorf("docs/%s:%d: exit code %d\n%s", name, b.line, code, shown)
				}
			})
		}
	}
}

// TestRehearsals types the calls of docs/shim.md that need no login, with the real agents.
func TestRehearsals(t *testing.T) {
	agents := os.Getenv("OMNIAGENT_TEST_AGENTS")
	if agents == "" {
		t.Skip("OMNIAGENT_TEST_AGENTS names no directory with the real agents")
	}
	list := blocks(t, "docs/shim.md")
	for _, b := range list {
		if b.kind != "console" || !strings.Contains(b.text, "--rehearse=") && !strings.Contains(b.text, "--strict") {
			continue
		}
		t.Run(fmt.Sprintf("line_%d", b.line), func(t *testing.T) {
			r := newReader(t)
			r.agents = agents
			r.files(t, list)
			answers(t, r, "docs/shim.md", b)
		})
	}
}

// answers types the commands of a block one by one, and wants what is shown below each.
func answers(t *testing.T, r reader, page string, b block) {
	t.Helper()
	for _, part := range strings.Split("\n"+b.text, "\n$ ")[1:] {
		typed, want, _ := strings.Cut(part, "\n")
		if strings.Contains(typed, "sandbox run") {
			standing(t, r)
		}
		if _, err := exec.LookPath("jq"); err != nil && strings.Contains(typed, "jq") {
			t.Skip("jq is not installed")
		}
		got, _ := r.types(t, "-uc", typed)
		if strings.Contains(typed, "| jq") { // it puts colours in
			got = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(got, "")
		}
		if strings.TrimSuffix(got, "\n") != strings.TrimSuffix(want, "\n") {
			t.Errorf("%s:%d: %s\nanswers\n%s\nnot\n%s", page, b.line, typed, got, want)
		}
	}
}

// standing skips where the walls of which the pages tell cannot be built, or where the shell has other words.
func standing(t *testing.T, r reader) {
	t.Helper()
	if shown, code := r.types(t, "-uc", "omniagent sandbox run --walls namespaces -- true"); code != 0 {
		t.Skipf("the walls namespaces cannot be built here: %s", shown)
	}
	if to, _ := filepath.EvalSymlinks("/bin/sh"); filepath.Base(to) != "dash" {
		t.Skipf("the page shows what dash says, and here the shell is %s", to)
	}
}

// firstRun types the first run and its undo, where one question is answered, and wants what the page shows. Only
// times, sizes and names that each run has again may differ.
func firstRun(t *testing.T, b block) {
	t.Helper()
	r := newReader(t)
	shown, code := "", 0
	for _, part := range strings.Split("\n"+b.text, "\n$ ")[1:] {
		typed, want, _ := strings.Cut(part, "\n")
		r.keys = nil
		for _, m := range regexp.MustCompile(`(?m)^> (.+)$`).FindAllStringSubmatch(want, -1) {
			r.keys = append(r.keys, m[1])
		}
		if shown, code = r.types(t, "-uc", typed); code != 0 || settled(shown) != settled(want) {
			t.Errorf("README.md:%d: %s: exit code %d\n%s\nnot\n%s", b.line, typed, code, settled(shown), settled(want))
		}
	}
	if _, err := os.Stat(filepath.Join(r.app, "greeting.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was not undone: %v", err)
	}
}

// settled replaces in a text what differs from run to run.
func settled(text string) string {
	for _, one := range [][2]string{
		{` and [0-9.ms]+ of waiting for an answer`, ""},
		{`\b[0-9]+(\.[0-9]+)?m?s\b`, "TIME"},
		{`(omniagent: TIME native works\n)+`, "omniagent: TIME native works\n"},
		{`[0-9]+ tokens in, [0-9]+ out`, "TOKENS"},
		{`\b(run-)?[0-9a-v]{26}\b`, "ID"},
		{`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}`, "DATE"},
	} {
		text = regexp.MustCompile(one[0]).ReplaceAllString(text, one[1])
	}
	return strings.TrimSpace(text)
}

// install does what the page says in an empty home, in a copy of what the program is built from, and answers the
// question of the run with which it begins.
func install(t *testing.T, typed string) {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	must(t, err)
	checkout := filepath.Join(beyond(t), "omniagent")
	for _, name := range []string{"go.mod", "go.sum", "omniagent.go", "CHANGELOG.md", "cmd", "internal"} {
		copied(t, filepath.Join(repository, name), filepath.Join(checkout, name))
	}
	places := strings.Fields(string(cache))
	r := newReader(t)
	r.app, r.keys = checkout, []string{"yes"}
	// Without the version control stamp: the owner of the checkout may be another user.
	shown, code := r.types(t, "-euc", "export PATH="+text.Shell(os.Getenv("PATH"))+
		" GOPATH="+filepath.Join(r.root, "go")+" GOMODCACHE="+places[0]+" GOCACHE="+places[1]+" GOFLAGS='-buildvcs=false -trimpath' CGO_ENABLED=0\n"+typed)
	if code != 0 || !strings.Contains(shown, "added    greeting.txt") {
		t.Errorf("exit code %d\n%s", code, shown)
	}
}

// copied copies a file, or a directory without its tests.
func copied(t *testing.T, from, to string) {
	t.Helper()
	must(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return filepath.SkipDir
		case d.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	}))
}
