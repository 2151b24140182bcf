package diff

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// longest returns the length of the longest common subsequence, by the plain algorithm.
func longest(a, b [][]byte) int {
	above := make([]int, len(b)+1)
	for _, x := range a {
		row := make([]int, len(b)+1)
		for j, y := range b {
			if row[j+1] = max(row[j], above[j+1]); bytes.Equal(x, y) {
				row[j+1] = above[j] + 1
			}
		}
		above = row
	}
	return above[len(b)]
}

// TestFewestLines compares short random texts: what is left of both is the same, and no more could be left.
func TestFewestLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := func() [][]byte {
			var b strings.Builder
			for range random.IntN(12) {
				b.WriteString(strings.Repeat("x", random.IntN(4)) + "\n")
			}
			return Split([]byte(b.String()))
		}
		before, after := text(), text()
		removed, added := Lines(before, after)
		left, right := unmarked(before, removed), unmarked(after, added)
		same := bytes.Equal(bytes.Join(left, nil), bytes.Join(right, nil))
		if !same || len(left) != longest(before, after) {
			t.Fatalf("%q and %q: %q and %q are left", before, after, left, right)
		}
	}
}

func unmarked(lines [][]byte, marks []bool) [][]byte {
	var left [][]byte
	for i, line := range lines {
		if !marks[i] {
			left = append(left, line)
		}
	}
	return left
}

// TestHostileTexts are compared in bounded time, and correctly all the same.
func TestHostileTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n, kinds int) [][]byte {
		lines := make([][]byte, n)
		for i := range lines {
			lines[i] = []byte{byte(random.IntN(kinds)), '\n'}
		}
		return lines
	}
	for _, n := range []int{10_000, 1 << 20} {
		for _, kinds := range []int{2, 50} {
			before, after := text(n, kinds), text(n, kinds)
			began := time.Now()
			removed, added := Lines(before, after)
			if took := time.Since(began); took > hermetic.Patience {
				t.Errorf("%d lines of %d kinds took %v", n, kinds, took)
			} else {
				t.Logf("%d lines of %d kinds took %v", n, kinds, took)
			}
			left, right := unmarked(before, removed), unmarked(after, added)
			if !bytes.Equal(bytes.Join(left, nil), bytes.Join(right, nil)) {
				t.Errorf("%d lines of %d kinds: what is left differs", n, kinds)
			}
		}
	}
}

// TestNames: a name with a blank ends with a tab, with quotes or without.
func TestNames(t *testing.T) {
	for want, names := range map[string][2]string{
		"--- a/x\n+++ b/x\n":                               {"a/x", "b/x"},
		"--- /dev/null\n+++ b/x y\t\n":                     {"/dev/null", "b/x y"},
		"--- \"a/x \\303\\266\"\t\n+++ \"b/\\303\\266\"\n": {Quote("a/x ö"), Quote("b/ö")},
	} {
		if got := Names(names[0], names[1]); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
