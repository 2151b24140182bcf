package text_test

import (
	"strings"
	"testing"

	"omniagent/internal/kit/text"
)

func TestDecided(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"echo a  b\n\tc\n\nd":                           "echo a  b\n\tc\n\nd",
		"a;" + strings.Repeat(" ", 3000) + "b":          "a;⟨3000 blanks⟩b",
		"a" + strings.Repeat("\n", 501) + "b":           "a\n⟨500 empty lines⟩\nb",
		"a" + strings.Repeat("\n \t", 50) + "\nb":       "a\n⟨50 empty lines⟩\nb",
		"a" + strings.Repeat("\n", 60):                  "a\n⟨60 empty lines⟩",
		"a\n":                                           "a",
		"\n\n" + strings.Repeat("\t", 99) + "x":         "⟨2 empty lines⟩\n⟨99 blanks⟩x",
		"a\u3164\u2800\u200b\u200d\u00a0\u2003\ufe0f":   `a\u3164\u2800\u200b\u200d\u00a0\u2003\ufe0f`,
		"a\U000e0041\x1b[2Jb":                           `a\U000e0041\x1b[2Jb`,
		"a" + strings.Repeat("\u3164\u2800", 500) + "b": "a⟨1000 characters that cannot be seen⟩b",
		"日本 é für":                                      "日本 é für",
	} {
		if got := text.ForDecision(given); got != want {
			t.Errorf("%q: %q, not %q", given, got, want)
		}
	}
}
