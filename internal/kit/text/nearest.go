package text

import (
	"strings"
)

// Nearest returns the candidate that a person who wrote word most likely meant, or "". It allows one slip in three
// letters; a slip is a letter that is missing, added, wrong or swapped with its neighbour.
func Nearest(word string, candidates []string) string {
	const longest = 100 // such a long name is not a typo
	if word == "" || len(word) > longest {
		return ""
	}
	lower := []rune(strings.ToLower(word))
	best, least := "", max(1, len(lower)/3)+1
	for _, candidate := range candidates {
		if len(candidate) > longest {
			continue
		}
		if d := distance(lower, []rune(strings.ToLower(candidate))); d < least && candidate != word {
			best, least = candidate, d
		}
	}
	if best == "" {
		return soleEnding(word, candidates)
	}
	return best
}

// soleEnding returns the key whose last name is word, if it is the only one.
func soleEnding(word string, candidates []string) string {
	match := ""
	for _, candidate := range candidates {
		if strings.HasSuffix(candidate, "."+word) {
			if match != "" {
				return ""
			}
			match = candidate
		}
	}
	return match
}

// distance counts slips; a swap of neighbours is one.
func distance(a, b []rune) int {
	before, above := []int{}, make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range a {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			wrong := above[j]
			if a[i] != b[j] {
				wrong++
			}
			row[j+1] = min(wrong, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}
