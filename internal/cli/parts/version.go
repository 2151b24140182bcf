package parts

import (
	"slices"
	"strconv"
	"strings"
)

// Version is the program's version: the same in the manifest, AGENTS.md and the skills.
const Version = "0.1.0"

// NewerVersion reports whether version a is newer than b. It compares them number by number.
func NewerVersion(a, b string) bool { return slices.Compare(numbersOf(a), numbersOf(b)) > 0 }

func numbersOf(version string) (numbers []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		numbers = append(numbers, n)
	}
	return numbers
}
