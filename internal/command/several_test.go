package command

import (
	"slices"
	"testing"
)

func TestListed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                    nil,
		"words\n\n# a title\n":                nil,
		"- a\n* b\n+ c\n1. d\n2) e\n":         {"a", "b", "c", "d", "e"},
		"- [ ] open\n- [x] done\n- [X] too\n": {"open"},
		"- a\nlazy\n\nwords\n- b\n":           {"a\nlazy", "b"},
		"- a\n\n  more\n\n  ```\n  - code\n  ```\n- b\r\n": {"a\n\nmore\n\n```\n- code\n```", "b"},
		"- a\n  - part\n\t- tab\n# title\n  text\n":        {"a\n- part\n- tab"},
		"```\n- code\n```\n- a\n~~~\n- code\n~~~\n":        {"a"},
		"-no item\n1.no item\n- \n- a\n":                   {"a"},
	} {
		if got := listed(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestContestants(t *testing.T) {
	t.Parallel()
	got, err := contestants("a, b*2,c")
	if want := []string{"a", "b", "b", "c"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", ",", "a,", "a*", "a*0", "a*-1", "a*x", "*2", "a*65"} {
		if got, err := contestants(bad); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

func TestWinner(t *testing.T) {
	t.Parallel()
	row := func(passed bool, files, lines int, took int64) severalRow {
		return severalRow{Passed: passed, Files: &files, Added: lines, Duration: took}
	}
	for want, rows := range map[int][]severalRow{
		-1: {row(false, 1, 1, 1)},
		0:  {row(true, 0, 0, 1)},
		1:  {row(true, 0, 0, 1), row(true, 3, 9, 9)},
		2:  {row(true, 1, 5, 1), row(false, 1, 1, 1), row(true, 2, 4, 9)},
		3:  {row(true, 2, 4, 1), row(true, 1, 4, 3), {Passed: true}, row(true, 1, 4, 2)},
	} {
		if got := winner(rows); got != want {
			t.Errorf("want %d: %d", want, got)
		}
	}
}
