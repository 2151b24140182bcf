package guard

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestBeyondLimits: what is not looked at to its end is taken for what it could be at worst.
func TestBeyondLimits(t *testing.T) {
	t.Parallel()
	all := func(string) bool { return true }
	p := Place{Names: func(dir string) []string {
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprint(i))
		}
		return names
	}}
	pattern := string(filepath.Separator) + filepath.Join("*", "*", "x")
	if found, known := p.matches(pattern, globbing{}, all); known {
		t.Errorf("a pattern is looked for in more than %d directories: %d matches", mostListed, len(found))
	}
	// A word that may be many is any word.
	list := func(n int) string {
		var words []string
		for i := range n {
			words = append(words, fmt.Sprintf("f%d", i))
		}
		return "rm -rf {" + strings.Join(words, ",") + "}"
	}
	place := held()
	place.Containment.Cover.Gaps = []Gap{{Path: "/w/ws/node_modules", Why: "it is ignored"}}
	for n, want := range map[int]Decision{mostValues: Allow, mostValues + 1: Ask} {
		v := Judge{Known: known(), Place: place}.Call(Call{Tool: "Bash", Kind: "command", Command: list(n)})
		if v.Decision != want {
			t.Errorf("%d alternatives: %s: %+v", n, v.Decision, v.Reasons)
		}
	}
	for n, want := range map[int]Decision{10: Ask, mostBehind: Deny} {
		line := "find ." + strings.Repeat(` -exec cat {} \;`, n)
		if v := Tools.Command(line, here()); v.Decision != want {
			t.Errorf("%d commands in one: %s: %+v", n, v.Decision, v.Reasons)
		}
	}
}

// TestEachCommandOfFind: of two commands with as many words, each counts.
func TestEachCommandOfFind(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Decision{
		`find . -exec true x \; -exec true y \;`:            Allow,
		`find . -exec true -p x \; -exec claude -p x \;`:    Ask,
		`find . -exec claude -p x \; -exec true -p x \;`:    Ask,
		`find . -exec true x \; -execdir claude x \; -quit`: Ask,
	} {
		v := Judge{Known: known(), Place: held()}.Call(Call{Tool: "Bash", Kind: "command", Command: line})
		if v.Decision != want {
			t.Errorf("%s: %s: %+v", line, v.Decision, v.Reasons)
		}
	}
}
