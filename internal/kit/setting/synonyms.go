package setting

import (
	"maps"
	"slices"
	"strings"
)

// Synonyms are words of other programs for the values of an option. They are found in any case.
type Synonyms struct {
	Means   map[string]string // in lower case: the value for which a word stands
	Refused map[string]string // in lower case: what a word that stands for no single value would be here
}

// Meaning parses synonyms in the form of a table: word:value,word:value.
func Meaning(table string) Synonyms {
	s := Synonyms{Means: map[string]string{}}
	for pair := range strings.SplitSeq(table, ",") {
		word, value, _ := strings.Cut(pair, ":")
		s.Means[word] = value
	}
	return s
}

// Read returns the value that a word stands for, which is the word itself if it is not among them.
func (s Synonyms) Read(word string) string {
	if value, ok := s.Means[strings.ToLower(strings.TrimSpace(word))]; ok {
		return value
	}
	return word
}

// Listed returns the synonyms with their values, for the end of a list of values. It is empty without synonyms.
func (s Synonyms) Listed() string {
	words := slices.Sorted(maps.Keys(s.Means))
	for i, word := range words {
		words[i] = word + " for " + s.Means[word]
	}
	if len(words) == 0 {
		return ""
	}
	return "; or " + strings.Join(words, ", ")
}

// Refusal returns why a word is refused and what to use, or "".
func (s Synonyms) Refusal(word string) string {
	return s.Refused[strings.ToLower(strings.TrimSpace(word))]
}
