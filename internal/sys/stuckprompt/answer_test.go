package stuckprompt_test

import (
	"slices"
	"strings"
	"testing"

	"omniagent/internal/sys/stuckprompt"
)

// TestQuestions: what an answer asks, and whether it does nothing else.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		only         bool
		open         []string
	}{
		{"one question", "Which colour do you want?", true, []string{"Which colour do you want?"}},
		{
			"context, then a question", "The repository has two files, `a.yml` and `b.yml`. Which one should I change?",
			true,
			[]string{"Which one should I change?"},
		},
		{
			"options", "I can go two ways:\n\n1. Rewrite the parser\n2. Patch the lexer\n\n" +
				"**Which one do you prefer?**\n", true,
			[]string{"Which one do you prefer?"},
		},
		{
			"options below", "Which colour do you want?\n\n- red\n- blue\n\nLet me know and I'll start.\n", true,
			[]string{"Which colour do you want?"},
		},
		{
			"several questions", "Before I start, I need a few details:\n\n1. Which database do you use?\n" +
				"2. Where does it run?\n", true,
			[]string{"Which database do you use?", "Where does it run?"},
		},
		{"a request", "Please tell me which colour you want.", true, []string{"Please tell me which colour you want."}},
		{
			"leave for something", "I need your approval before I delete 40 files. Shall I go on?", true,
			[]string{"Shall I go on?"},
		},
		{
			"no work yet", "I haven't changed anything yet. Should I use tabs or spaces?", true,
			[]string{"Should I use tabs or spaces?"},
		},
		{"a denial", "No files have been changed so far. Which one is meant?", true, []string{"Which one is meant?"}},
		{"a heading", "# Farben\nWhich one do you want?", true, []string{"Which one do you want?"}},
		{
			"the last ones", strings.Repeat("- Who?\n", 3) + strings.Repeat("- Why?\n", 8), true,
			slices.Repeat([]string{"Why?"}, 8),
		},
		{"another language", "Welche Farbe möchtest du?", true, []string{"Welche Farbe möchtest du?"}},
		{"wide marks", "どの色がいいですか？", true, []string{"どの色がいいですか？"}},

		{"no question", "I updated README.md.", false, nil},
		{"empty", "", false, nil},
		{"polite end", "I've updated README.md and the tests pass. Anything else?", false, []string{"Anything else?"}},
		{
			"offer after work", "Updated the parser.\n\nShall I also update the docs?", false,
			[]string{"Shall I also update the docs?"},
		},
		{
			"list of work", "Changes:\n- Added `a.go`\n- Removed `b.go`\n\nWhich version should I bump to?", false,
			[]string{"Which version should I bump to?"},
		},
		{
			"a finding and an offer", "The bug is in foo.go, line 12. Do you want me to fix it?", false,
			[]string{"Do you want me to fix it?"},
		},
		{"only polite", "Is there anything else?", false, []string{"Is there anything else?"}},
		{"code", "Run this:\n\n```sh\nread -p 'Which colour?'\necho Why?\n```\n", false, nil},
		{"indented code", "Run this:\n\n    echo Why?\n    echo Who?\n", false, nil},
		{"quoted line", "> Which colour do you want?\n\nblue\n", false, nil},
		{"quoted words", "The program asks \"Which colour?\" and `Why?` too.", false, nil},
		{"address", "See https://example.com/find?", false, nil},
		{
			"rhetorical", "Why did it fail? The lock was held.\n\nThe build is green.\n", false, nil,
		},
		{
			"questions that are answered", "These were answered before:\n- Question: Overwrite it? [y/N]\n  Answer: yn\n",
			false,
			[]string{"Question: Overwrite it?"},
		},
		{"a mark within a sentence", "The regex is foo? and bar.", false, nil},
		{"a question that it answers", "What did I do? I looked and nothing had to change.", false, []string{"What did I do?"}},
		{"a question, then a fact", "Which version is it? The lock file says 1.2.", false, []string{"Which version is it?"}},
		{
			"a question, then a request", "Which colour do you want? Let me know and I'll start.", true,
			[]string{"Which colour do you want?"},
		},
		{"another language, with work", "He creado el archivo. ¿Algo más?", false, []string{"¿Algo más?"}},
		{
			"a report of much", strings.Repeat("This is a fact about it. ", 4) + "Which one?", false,
			[]string{"Which one?"},
		},
		{
			"abbreviations", "It is in two files, e.g. in a, i.e. in b. It is in one more, e.g. in c. Which one?", true,
			[]string{"Which one?"},
		},
		{
			"a long list", "Options:\n" + strings.Repeat("- one of them\n", 80) + "\nWhich one?", false,
			[]string{"Which one?"},
		},
		{"long", strings.Repeat("A word about it, and of another. ", 60) + "Which one?", false, []string{"Which one?"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			open, only := stuckprompt.Questions(c.answer)
			if only != c.only || !slices.Equal(open, c.open) {
				t.Errorf("%v, %q; want %v, %q", only, open, c.only, c.open)
			}
		})
	}
}
