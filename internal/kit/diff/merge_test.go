package diff_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/diff"
)

func TestMerge(t *testing.T) {
	for name, c := range map[string]struct {
		base, mine, theirs, want string
		conflicts                int
	}{
		"nothing":            {"a\nb\n", "a\nb\n", "a\nb\n", "a\nb\n", 0},
		"one side":           {"a\nb\nc\n", "a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\n", 0},
		"both, apart":        {"1\n2\n3\n4\n5\n", "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n", "one\n2\n3\n4\nfive\n", 0},
		"both the same":      {"a\n", "b\n", "b\n", "b\n", 0},
		"both added the end": {"a\n", "a\nb\n", "a\nb\n", "a\nb\n", 0},
		"the same line":      {"a\n", "b\n", "c\n", "<<<<<<< m\nb\n=======\nc\n>>>>>>> t\n", 1},
		"no line end":        {"a", "b", "c", "<<<<<<< m\nb\n=======\nc\n>>>>>>> t\n", 1},
		"touching":           {"a\nb\n", "A\nb\n", "a\nB\n", "<<<<<<< m\nA\nb\n=======\na\nB\n>>>>>>> t\n", 1},
		"begins alike":       {"a\n", "x\nb\n", "x\nc\n", "x\n<<<<<<< m\nb\n=======\nc\n>>>>>>> t\n", 1},
		"removed and kept":   {"a\nb\nc\nd\ne\n", "d\ne\n", "a\nb\nc\nd\nE\n", "d\nE\n", 0},
		"from nothing":       {"", "a\n", "a\n", "a\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, n := diff.Merge([]byte(c.base), []byte(c.mine), []byte(c.theirs), "m", "t")
			if string(got) != c.want || n != c.conflicts {
				t.Errorf("%q with %d conflicts, want %q with %d", got, n, c.want, c.conflicts)
			}
		})
	}
}

// What git merges without a conflict is merged here in the same way, and what git cannot merge is not merged here.
func TestMergeAsGitDoes(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git to compare with")
	}
	dir := t.TempDir()
	for round := range 150 {
		random := rand.New(rand.NewPCG(uint64(round), 7))
		var base []string
		for i := range 40 {
			base = append(base, fmt.Sprintf("line %d", i))
		}
		texts := [3]string{strings.Join(base, "\n") + "\n"}
		for side := 1; side < 3; side++ {
			lines := append([]string{}, base...)
			for range 1 + random.IntN(3) {
				switch at := random.IntN(len(lines)); random.IntN(3) {
				case 0:
					lines[at] = fmt.Sprintf("changed %d %d", side, random.IntN(3))
				case 1:
					lines = append(lines[:at], lines[at+1:]...)
				default:
					lines = append(lines[:at], append([]string{fmt.Sprintf("new %d", random.IntN(3))},
						lines[at:]...)...)
				}
			}
			texts[side] = strings.Join(lines, "\n") + "\n"
		}
		var files [3]string
		for i, text := range texts {
			files[i] = filepath.Join(dir, fmt.Sprint(i))
			if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(git, "merge-file", "-p", files[1], files[0], files[2])
		want, errGit := cmd.Output()
		got, n := diff.Merge([]byte(texts[0]), []byte(texts[1]), []byte(texts[2]), files[1], files[2])
		if (errGit == nil) != (n == 0) || errGit == nil && string(got) != string(want) {
			t.Errorf("round %d: %d conflicts, git says %v\n%s\nwant\n%s", round, n, errGit, got, want)
		}
	}
}

func TestCommon(t *testing.T) {
	if got := diff.Common([]byte("a\nb\nc\n"), []byte("b\nx\nc\n")); string(got) != "b\nc\n" {
		t.Errorf("%q", got)
	}
}
