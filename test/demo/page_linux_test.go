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
	page    = "../../README.md"
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
		t.Fatal("README.md has no place for the recording")
	}
	want := before + opening + "```console\n$ omniagent demo\n" + steady(t, stdout) + "```\n" + closing + after
	switch {
	case want == string(raw):
	case !*update:
		t.Error("README.md shows another demo; go test ./test/demo -update")
	default:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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
