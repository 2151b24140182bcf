//go:build unix

package manual

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// answers types the commands of a block one by one, and wants what is shown beneath each.
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

// install does what the page says in an empty home, and then starts what is there.
func install(t *testing.T, text string) {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	must(t, err)
	places, bin := strings.Fields(string(cache)), filepath.Join(t.TempDir(), "bin")
	cmd := exec.Command("/bin/sh", "-euc", text)
	cmd.Dir = repository
	// Without the version control stamp: the owner of the checkout may be another user.
	cmd.Env = []string{
		"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GOBIN=" + bin, "GOMODCACHE=" + places[0],
		"GOCACHE=" + places[1], "GOFLAGS=-buildvcs=false -trimpath", "CGO_ENABLED=0",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(bin, "omniagent"), "--version").Output()
	if err != nil || strings.Count(string(out), ".") != 2 {
		t.Errorf("installed is %q: %v", out, err)
	}
}
