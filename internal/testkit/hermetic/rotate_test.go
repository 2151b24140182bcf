package hermetic

import (
	"slices"
	"testing"
)

// TestInTurn: in as many rounds as it takes, each case had its turn.
func TestInTurn(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6}
	var seen []int
	for round := 20_000; round < 20_003; round++ {
		seen = append(seen, turnOf(round, all, 3)...)
	}
	slices.Sort(seen)
	if len(seen) != 9 || !slices.Equal(slices.Compact(seen), all) {
		t.Errorf("three rounds of three have %v", seen)
	}
}
