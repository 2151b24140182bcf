package tool

import "testing"

// TestTitleOfACommand: a question about code shows it as it is indented.
func TestTitleOfACommand(t *testing.T) {
	for want, given := range map[string][2]string{
		`printf 'def f():    x'`: {"\n  printf 'def f():    x'\nmore", ""},
		`two  words`:             {"ls", "two  words"},
		"Run a command":          {"\n", " "},
	} {
		if got := commandTitle(given[0], given[1]); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
