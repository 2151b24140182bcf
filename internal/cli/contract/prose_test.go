package contract

import (
	"strings"
	"testing"
	"time"

	"omniagent/internal/term/cells"
)

// TestTableFits: a table is as wide as the screen, the column that identifies a row is never cut, and times are told as
// a distance from now. Without a screen nothing is changed.
func TestTableFits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("日本語 and more ", 12)
	rows := []any{
		object{{"id", strings.Repeat("x", 40)}, {"title", long}, {"at", "2026-11-22T10:00:00Z"}, {"note", "short"}},
		object{{"id", "y"}, {"title", "z"}, {"at", "2026-11-22T11:59:30.5Z"}, {"note", long}},
	}
	var wide, fits strings.Builder
	writeTable(&wide, rows, nil, view{})
	if !strings.Contains(wide.String(), long[:len(long)-1]) ||
		!strings.Contains(wide.String(), "2026-11-22T10:00:00Z") {
		t.Errorf("something is lost:\n%s", wide.String())
	}
	writeTable(&fits, rows, nil, view{width: 100, now: now, whole: "id"})
	for line := range strings.Lines(fits.String()) {
		if w := cells.Width(strings.TrimSuffix(line, "\n")); w > 100 {
			t.Errorf("%d columns: %s", w, line)
		}
	}
	for _, want := range []string{strings.Repeat("x", 40) + "  ", "2 hours ago", "just now", "…"} {
		if !strings.Contains(fits.String(), want) {
			t.Errorf("no %q in\n%s", want, fits.String())
		}
	}
	var names strings.Builder
	writeTable(&names, []any{object{{"day", "2026-11-22"}, {"a_long_name", number(3)}, {"what", "ten letters"}}}, nil,
		view{width: 33})
	if names.String() != "DAY         A_LONG_…  WHAT\n2026-11-22  3         ten letters\n" {
		t.Errorf("values are cut before a name is:\n%s", names.String())
	}
	names.Reset()
	writeTable(&names, []any{object{{"a_long_name", number(3)}, {"what", strings.Repeat("twenty letters ", 3)}}}, nil,
		view{width: 33})
	if names.String() != "A_LONG_NAME  WHAT\n3            twenty letters twen…\n" {
		t.Errorf("a name is cut though a value is cut anyway:\n%s", names.String())
	}
	var told strings.Builder
	writeTable(&told, []any{object{
		{"ok", false},
		{"error", object{{"code", "X"}, {"message", "it is not there"}}},
		{"counts", object{{"lines", []any{}}, {"_source", "external"}}},
	}}, nil, view{})
	if told.String() != "OK  ERROR\nno  it is not there\n" {
		t.Errorf("an error, and what says nothing:\n%s", told.String())
	}
	if strings.Contains(fits.String(), "……") {
		t.Errorf("cut twice:\n%s", fits.String())
	}
	for d, want := range map[time.Duration]string{
		0: "just now", time.Minute: "1 minute ago", 59 * time.Minute: "59 minutes ago", time.Hour: "1 hour ago",
		25 * time.Hour: "1 day ago", 6 * 24 * time.Hour: "6 days ago",
		8 * 24 * time.Hour: now.Add(-8 * 24 * time.Hour).Local().Format("2006-01-02"),
	} {
		if got := ago(d, now.Add(-d)); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

// TestDirectoriesInATable: directories are cut in the middle, and begin with ~ in the home directory.
func TestDirectoriesInATable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	rows := []any{
		object{{"id", strings.Repeat("x", 20)}, {"cwd", "/home/dia/project/first"}, {"task", "add a test"}},
		object{{"id", "y"}, {"cwd", "/home/dia/project/another"}, {"task", "add a test"}},
		object{{"id", "z"}, {"cwd", "/home/dia"}, {"task", "add a test"}},
	}
	writeTable(&b, rows, nil, view{width: 44, whole: "id", home: "/home/dia"})
	for _, want := range []string{"~/p…ct/first", "~/p…/another", "z                     ~    "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestFlowing: what is broken is indented like the text behind the first columns.
func TestFlowing(t *testing.T) {
	t.Parallel()
	text := "ok    name    what was found out about it, in a long sentence\n  They do not stop: this and that and " +
		"more\nx\n"
	want := "ok    name    what was found out about\n              it, in a long sentence\n" +
		"  They do not stop: this and that and\n  more\nx\n"
	const command = "Take back: omniagent undo --run run-1 --cwd /a/long/path\n" // it is typed as it is
	if got := (view{width: 40, program: "omniagent"}).flowing(text + command); got != want+command {
		t.Errorf("%s", got)
	}
	if got := (view{}).flowing(text); got != text {
		t.Errorf("%s", got)
	}
}

// TestStatusIsCutLast checks that a table of 80 columns shows a status in full.
func TestStatusIsCutLast(t *testing.T) {
	var b strings.Builder
	writeTable(&b, []any{object{
		{"run_id", "run-06h2uq4os2l6kkbagoid7rmj04"},
		{"status", "needs_input"},
		{"age", "59m"},
		{"cwd", "/srv/code/project/of/somebody"},
		{"task", "mend the tests of the parser"},
		{"note", "May the tests be changed as well?"},
	}}, nil, view{width: 80, whole: "run_id"})
	if shown := b.String(); !strings.Contains(shown, "needs_input") {
		t.Errorf("%s", shown)
	}
	for line := range strings.Lines(b.String()) {
		if cells.Width(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("too wide: %s", line)
		}
	}
}
