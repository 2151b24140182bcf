package runs

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"omniagent/internal/work/run"
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
		"- a\n- \n- b\n1.\n\nwords\n":                      {"a", "b"},
		"\uFEFF- a\n- b\n":                                 {"a", "b"},
		"- [ ]\n- [x]\n* * *\n- - -\n---\n- a\n":           {"a"},
		"<!--\n- old\n-->\n- a\n<!-- - b -->\n- c\n":       {"a", "c"},
	} {
		if got, _ := left(listed(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	_, before := left(listed("- same\n- same\n"))
	if _, after := left(listed("- [x] same\n- same\n")); after[0] != before[1] {
		t.Error("the second of two equal tasks has another name once the first is ticked")
	}
}

// TestQueuedTasksAreDoneAgain checks that a task is done again if its process was killed while the run was queued.
func TestQueuedTasksAreDoneAgain(t *testing.T) {
	t.Parallel()
	store := run.Store{Dir: filepath.Join(t.TempDir(), "runs")}
	r, err := store.Create(t.Context(), run.Task{Text: "go", Agents: []string{"a"}, Dir: t.TempDir()})
	if err == nil {
		err = r.Inherit(run.Record{}) // it is written
	}
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{Tasks: map[string]booked{"key": {Run: r.ID}}}
	if _, known := l.known(t.Context(), store, "key"); !known {
		t.Error("it waits, and is begun a second time")
	}
	if err := r.Release(); err != nil {
		t.Fatal(err)
	}
	if row, known := l.known(t.Context(), store, "key"); known {
		t.Errorf("it is never done: %+v", row)
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

// TestReadable checks that the records of an attempt that resumes a session are read only once it is known where they
// begin.
func TestReadable(t *testing.T) {
	t.Parallel()
	for want, list := range map[bool][]run.Attempt{
		true:  {{Session: "s"}, {Session: "s", Resumed: true, First: 7}, {Resumed: true, Ended: time.Now()}},
		false: {{}, {Session: "s", Resumed: true}},
	} {
		for _, a := range list {
			if readable(a) != want {
				t.Errorf("%+v", a)
			}
		}
	}
}
