package hermetic

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// RoundVariable is the number of the round, which decides what is tried in turn.
const RoundVariable = "OMNIAGENT_ROUND"

// Round returns the number of the round. It prints how to repeat the round.
func Round(t testing.TB) int {
	t.Helper()
	round, err := RoundOf(os.Getenv(RoundVariable))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the same again: %s=%d", RoundVariable, round)
	return round
}

// RoundOf is the number that a value of OMNIAGENT_ROUND means: the day if it is empty.
func RoundOf(text string) (int, error) {
	if text == "" {
		return int(time.Now().Unix() / (24 * 60 * 60)), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %q, not a number", RoundVariable, text)
	}
	return n, nil
}

// InTurn returns n of the cases, different ones in each round until all have been tried. It returns all of them with
// OMNIAGENT_WHOLE=matrices.
func InTurn[T any](t testing.TB, all []T, most int) []T {
	t.Helper()
	if Matrices() || most >= len(all) {
		return all
	}
	return turnOf(Round(t), all, most)
}

func turnOf[T any](round int, all []T, most int) []T {
	turn := make([]T, 0, most)
	for i := range most {
		turn = append(turn, all[(round*most+i)%len(all)])
	}
	return turn
}
