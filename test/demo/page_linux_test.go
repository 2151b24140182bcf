package demo

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the recording on the first page")

// The recording stands between these.
const (
	opening = "<!-- demo -->\n"
	closing = "<!-- /demo -->"
	page    = "../../docs/demo.md"
	first   = "../../README.md" // shows some of it
)

// TestPage holds the recording on the first page against a demo that runs now. What differs from machine to machine is
// not in it: how long it took, how many tokens that were, and what is installed.
func TestPage(t *testing.T) {
	r := newRoom(t)
	stdout, stderr, code := r.run(t, program, "demo", "--output", "plain")
	if code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "Walls: namespaces,") {
		t.Skip("the recording shows the walls namespaces, which cannot be built on this machine")
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), opening)
	_, after, ended := strings.Cut(rest, closing)
	if !found || !ended {
		t.Fatal("docs/demo.md has no place for the recording")
	}
	want := before + opening + "```console\n$ omniagent demo\n" + steady(t, stdout) + "```\n" + closing + after
	switch {
	case want == string(raw):
	case !*update:
		t.Error("docs/demo.md shows another demo; go test ./test/demo -update")
	default:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFirstPage: the lines that README.md shows follow each other in the recording, and are few.
func TestFirstPage(t *testing.T) {
	whole, part := recorded(t, page), recorded(t, first)
	if n := strings.Count(part, "\n"); n == 0 || n > 10 {
		t.Errorf("README.md shows %d lines of the demo", n)
	}
	if !strings.Contains(whole, "\n"+part) {
		t.Errorf("README.md shows something else than docs/demo.md:\n%s", part)
	}
}

// recorded is what stands between the marks of a page, without the block around it and without indents.
func recorded(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), opening)
	inside, _, found := strings.Cut(rest, "```\n"+closing)
	if !found {
		t.Fatalf("%s has no recording", name)
	}
	_, inside, _ = strings.Cut(inside, "\n")
	return regexp.MustCompile("(?m)^ +").ReplaceAllString(inside, "")
}

// steady is what is the same everywhere.
func steady(t *testing.T, shown string) string {
	t.Helper()
	scenes, _, found := strings.Cut(shown, "\n4. ")
	if !found {
		t.Fatalf("there is no fourth part in\n%s", shown)
	}
	scenes = regexp.MustCompile(`(?m)^   Measured: .*\n`).ReplaceAllString(scenes, "")
	return scenes +
		"\n4. What is here\n   (the agents on your machine, whether they have a login, and one command to try)\n"
}
