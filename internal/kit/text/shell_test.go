package text

import "testing"

func TestShell(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"":                      nil,
		"git log --format=%H":   {"git", "log", "--format=%H"},
		`'' 'it'\''s' 'a b'`:    {"", "it's", "a b"},
		"'a;b' '$HOME' 'ä' '*'": {"a;b", "$HOME", "ä", "*"},
	} {
		if got := Shell(words...); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}
