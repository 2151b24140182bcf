package ignore

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestAsBash holds patterns for shells against bash. Where they differ, we match more: bash takes few of the patterns
// with an unclosed [: in a class.
func TestAsBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	patterns := []string{
		"*", "?", "a*", "*b", "a?b", "[ab]", "[!ab]", "[^ab]", "[a-c]*", "[]a]", "[!]]", "[", "[a", "a[", "[[]", "[]",
		"[!]",
		"[A-Z]*", "[a\\]]", "\\*", "a\\?", "*.[oh]", "é", "[é]", "[[:digit:]]", "[![:digit:]]", "[[:digit:]b-]",
	}
	names := []string{
		"a", "b", "ab", "abc", "A", "AB", "h", "[", "]", "-", "!", ":", "*", "a?", "a]", "x.o", "é", "É", "7", "a[",
		"[a",
		"[]", "[!]",
	}
	script := `while IFS= read -r pattern; do for name; do
	[[ $name == $pattern ]] && printf 1 || printf 0
done; done`
	for style, option := range map[Style]string{Runes: "", Folded: "shopt -s nocasematch\n"} {
		cmd := exec.Command(bash, append([]string{"--norc", "-c", option + script, "bash"}, names...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
		cmd.Stdin = strings.NewReader(strings.Join(patterns, "\n") + "\n")
		out, err := cmd.Output()
		check(t, err)
		if len(out) != len(patterns)*len(names) {
			t.Fatalf("bash answered %d times", len(out))
		}
		for i, pattern := range patterns {
			for j, name := range names {
				if theirs := out[i*len(names)+j] == '1'; Compile(pattern, style).Match(name) != theirs {
					t.Errorf("style %d: %q matches %q: for bash %v", style, pattern, name, theirs)
				}
			}
		}
	}
}
