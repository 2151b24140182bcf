package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"omniagent/internal/testkit/hermetic"
)

func TestPagination(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("default_limit", func(t *testing.T) {
		a := w.run(t, "numbered").must(t, 0)
		if got := a.names(t, "data.items", "name"); len(got) != 20 || got[0] != rowName(0) || got[19] != rowName(19) {
			t.Errorf("%q", got)
		}
		if got := w.hosted(t, nil, "few").must(t, 0).names(t, "data.items", "name"); len(got) != 5 {
			t.Errorf("List.Limit: %q", got)
		}
		for command, want := range map[string]string{"numbered": "20", "few": "5"} {
			if got := w.hosted(t, nil, command, "--schema").must(t, 0).stdout; !strings.Contains(defaultOf(t, got,
				"limit"), want) {
				t.Errorf("the schema of %s says the default of --limit is %s", command, defaultOf(t, got, "limit"))
			}
		}
	})
	t.Run("unlimited", func(t *testing.T) {
		a := w.hosted(t, nil, "numbered", "--limit", "0", "--count", "2500").must(t, 0)
		if got := a.names(t, "data.items", "name"); len(got) != 2500 {
			t.Errorf("%d rows", len(got))
		}
		a.want(t, "meta.truncated", "false")
	})
	t.Run("facts", func(t *testing.T) {
		a := w.hosted(t, nil, "numbered", "--count", "3").must(t, 0)
		a.want(t, "meta.pagination", `{"has_more":false,"next_cursor":null,"returned":3,"total":3,"truncated":false}`)
		if _, there := a.at(t, "meta").(map[string]any)["truncation_hint"]; there {
			t.Error("a hint, and nothing is missing")
		}
		w.hosted(t, nil, "numbered", "--count", "0").must(t, 0).want(t, "data.items", "[]")
		// There is no room for any row. The answer says that there are more, although no cursor leads to them.
		a = w.with("OMNIAGENT_MAX_OUTPUT_BYTES=300").hosted(t, nil, "numbered", "--count", "25").must(t, 0)
		a.want(t, "meta.pagination", `{"has_more":true,"next_cursor":null,"returned":0,"total":25,"truncated":true}`)
		a = w.hosted(t, nil, "numbered", "--limit", "10").must(t, 0)
		for path, want := range map[string]string{
			"total": "25", "total_count": "25", "returned_count": "10", "page_size": "10", "truncated": "true",
			"pagination.total": "25", "pagination.returned": "10", "pagination.truncated": "true",
			"pagination.has_more": "true",
		} {
			a.want(t, "meta."+path, want)
		}
		cursor, _ := a.at(t, "meta.pagination.next_cursor").(string)
		if cursor == "" || cursor != a.at(t, "meta.cursor") || strings.ContainsAny(cursor, "+/=&? ") {
			t.Errorf("the cursor is %q", cursor)
		}
	})
	t.Run("next_page", func(t *testing.T) {
		for _, args := range [][]string{
			{"--limit", "7"},
			{"--limit", "1"},
			{"--limit=25"},
			{},
			{"--limit", "7", "--", "-x"},
		} {
			got, _ := w.pages(t, nil, slices.Concat([]string{"numbered"}, args)...)
			checkWhole(t, got, 25)
			if t.Failed() {
				t.Fatalf("with %q", args)
			}
		}
	})
	t.Run("bad_cursor", func(t *testing.T) { badCursors(t, w) })
}

// TestPagesBesideWriters: rows that come, go or move between two pages make the next page neither repeat nor skip
// others.
func TestPagesBesideWriters(t *testing.T) {
	t.Parallel()
	read := func(names, cursor string) (found, next string) {
		list := []item{}
		for _, name := range names {
			list = append(list, item{Name: string(name)})
		}
		at, ok := readCursor(cursor)
		if cursor != "" && !ok {
			t.Fatalf("the cursor %q", cursor)
		}
		pg := &page{key: "items", id: "name", query: "q", limit: 3, offset: at.offset, around: at.around}
		for _, row := range (&walker{page: pg}).take(ForeignRows(list), "", false) {
			name, _ := row.(object).get("name")
			found += name.(string)
		}
		return found, pg.next()
	}
	for then, want := range map[string]string{
		"abcdefgh":   "def",
		"XYabcdefgh": "def", // others have come
		"defgh":      "def", // those that were read have gone
		"abdefgh":    "def",
		"abcefgh":    "efg",
		"cabdefgh":   "def", // the last one read has moved
		"dabcefgh":   "efg", // the next one has moved
		"ab":         "",
		"efgh":       "h", // nothing tells where it was
	} {
		_, cursor := read("abcdefgh", "")
		if got, _ := read(then, cursor); got != want {
			t.Errorf("%s: %q instead of %q", then, got, want)
		}
	}
	first, cursor := read("aaaaaaaa", "") // not every list has unique names
	second, cursor := read("aaaaaaaa", cursor)
	if third, last := read("aaaaaaaa", cursor); len(first+second+third) != 8 || last != "" {
		t.Errorf("%q, %q, %q, %q", first, second, third, last)
	}
}

func badCursors(t *testing.T, w *world) {
	good := w.hosted(t, nil, "numbered", "--limit", "7").must(t, 0).at(t, "meta.cursor").(string)
	// A cursor stays valid if the limit changes.
	w.hosted(t, nil, "numbered", "--cursor", good, "--limit", "3", "--fields", "name").must(t, 0)
	for _, args := range [][]string{
		{"numbered", "--cursor", "x"},
		{"numbered", "--cursor", good[:len(good)-2]},
		{"numbered", "--cursor", good + "x"},
		{"numbered", "--cursor", good[1:]},
		{"numbered", "--cursor", writeCursor(pageCursor{offset: -1, query: "x"})},
		{"numbered", "--cursor", good, "--count", "30"},
		{"numbered", "--cursor", good, "word"},
		{"few", "--cursor", good},
	} {
		a := w.hosted(t, nil, args...).must(t, 2)
		a.want(t, "error.code", `"INVALID_CURSOR"`)
		if a.at(t, "data") != nil {
			t.Errorf("%q has data", args)
		}
	}
}

// pages follows the cursors to the last page, or the hints if hints is set. It returns the names of all rows and every
// answer.
func (w *world) pages(t testing.TB, hints *bool, args ...string) (names []string, answers []answered) {
	t.Helper()
	real := t.(*testing.T)
	a := w.hosted(real, nil, args...)
	for range 300 {
		a.must(real, 0)
		answers = append(answers, a)
		names = append(names, a.names(real, "data.items", "name")...)
		meta := a.at(real, "meta").(map[string]any)
		if a.at(real, "meta.pagination.has_more") != true {
			return names, answers
		}
		next, _ := meta["truncation_hint"].(string)
		if hints != nil {
			a = w.line(real, next)
			continue
		}
		before := slices.Index(args, "--")
		if before < 0 {
			before = len(args)
		}
		a = w.hosted(real, nil, slices.Concat(args[:before], []string{"--cursor", meta["cursor"].(string)},
			args[before:])...)
	}
	t.Fatal("the pages never end")
	return nil, nil
}

func checkWhole(t *testing.T, got []string, n int) {
	t.Helper()
	if len(got) != n {
		t.Errorf("%d rows, want %d", len(got), n)
	}
	for i, name := range got {
		if name != rowName(i) {
			t.Errorf("row %d is %s", i, name)
			return
		}
	}
}

// defaultOf finds a parameter's default anywhere in a schema.
func defaultOf(t *testing.T, schema, name string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(schema), &v); err != nil {
		t.Fatal(err)
	}
	var find func(v any) string
	find = func(v any) string {
		switch v := v.(type) {
		case map[string]any:
			if flag, ok := v[name].(map[string]any); ok && flag["default"] != nil {
				return fmt.Sprint(flag["default"])
			}
			if v["name"] == name && v["default"] != nil {
				return fmt.Sprint(v["default"])
			}
			for _, inner := range v {
				if found := find(inner); found != "" {
					return found
				}
			}
		case []any:
			for _, inner := range v {
				if found := find(inner); found != "" {
					return found
				}
			}
		}
		return ""
	}
	return find(v)
}

func TestSizeCap(t *testing.T) {
	t.Parallel()
	hermetic.Long(t)
	w := newWorld(t)
	t.Run("whole_elements", func(t *testing.T) {
		a := w.run(t, "numbered", "--limit", "0", "--count", "2048", "--pad", "1024").must(t, 0)
		if len(a.stdout) > 1048576 || len(a.stdout) < 1000000 {
			t.Errorf("%d bytes", len(a.stdout))
		}
		names := a.names(t, "data.items", "name")
		for path, want := range map[string]string{
			"truncated": "true", "total_count": "2048", "returned_count": fmt.Sprint(len(names)),
			"pagination.truncated": "true", "pagination.returned": fmt.Sprint(len(names)),
		} {
			a.want(t, "meta."+path, want)
		}
		if total := a.at(t, "meta.total_bytes").(float64); total < 2<<20 {
			t.Errorf("total_bytes is %v", total)
		}
		checkWhole(t, names, len(names))
		if pad := a.names(t, "data.items", "pad"); len(pad) != len(names) || len(pad[len(pad)-1]) != 1024 {
			t.Error("the last row is not whole")
		}
	})
	t.Run("hint_runs", func(t *testing.T) {
		hints := true
		capped := w.with("OMNIAGENT_MAX_OUTPUT_BYTES=20000")
		got, answers := capped.pages(t, &hints, "numbered", "--limit", "0", "--count", "200", "--pad", "500")
		checkWhole(t, got, 200)
		if len(answers) < 5 {
			t.Errorf("%d answers", len(answers))
		}
		for _, a := range answers {
			if len(a.stdout) > 20000 {
				t.Errorf("%d bytes", len(a.stdout))
			}
		}
		a := capped.hosted(t, nil, "lengthy", "--chars", "50000").must(t, 0)
		whole := w.hosted(t, nil, "lengthy", "--chars", "50000").must(t, 0)
		if again := w.line(t, a.at(t, "meta.truncation_hint").(string)).must(t, 0); again.at(t,
			"data.text") != whole.at(t, "data.text") {
			t.Error("what the hint says does not bring the whole text")
		}
	})
	t.Run("huge_row", func(t *testing.T) { // a row that is too large by itself must not hide those after it
		hints := true
		got, answers := w.with("OMNIAGENT_MAX_OUTPUT_BYTES=9000").pages(t, &hints, "numbered", "--limit", "0",
			"--count", "3", "--pad", "20000")
		checkWhole(t, got, 3)
		if !slices.Contains(answers[0].warned(t), "FIELD_TRUNCATED") ||
			!strings.HasSuffix(answers[0].names(t, "data.items", "pad")[0], cutMark) {
			t.Error("cut in silence")
		}
	})
	t.Run("field", func(t *testing.T) {
		a := w.hosted(t, nil, "lengthy", "--chars", "1500000").must(t, 0)
		text := a.at(t, "data.text").(string)
		if len(a.stdout) > 1048576 || len(a.stdout) < 900000 || !strings.HasSuffix(text, cutMark) ||
			!strings.HasPrefix(lengthyText(1500000), strings.TrimSuffix(text, cutMark)) {
			t.Errorf("%d bytes: %.50q … %q", len(a.stdout), text, text[max(0, len(text)-50):])
		}
		a.want(t, "meta.truncated", "true")
		a.want(t, "meta.truncated_fields", `["text"]`)
		warning := a.at(t, "meta.warnings").([]any)[0].(map[string]any)
		detail, _ := warning["detail"].(map[string]any)
		if warning["code"] != "FIELD_TRUNCATED" || detail["field"] != "text" ||
			detail["original_size"] != float64(len(lengthyText(1500000))) ||
			detail["returned_size"] != float64(len(text)) {
			t.Errorf("%v", warning)
		}
	})
	t.Run("environment", func(t *testing.T) {
		for _, limit := range []int{3000, 8000, 100000} {
			a := w.with(fmt.Sprintf("OMNIAGENT_MAX_OUTPUT_BYTES=%d", limit)).hosted(t, nil, "lengthy", "--chars",
				"120000", "--lines", "2000").must(t, 0)
			if len(a.stdout) > limit || len(a.stdout) < limit/2 {
				t.Errorf("%d bytes, limit %d", len(a.stdout), limit)
			}
		}
		a := w.with("OMNIAGENT_MAX_OUTPUT_BYTES=0").hosted(t, nil, "lengthy", "--chars", "1500000").must(t, 0)
		if a.at(t, "data.text") != lengthyText(1500000) {
			t.Error("0 means no limit, but the list was cut")
		}
	})
}

// Whatever the limits, the pages are the list: each row once, in order, and no answer larger than it may be.
func TestPagesAreTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(0, 30).Draw(rt, "count")
		limit := rapid.IntRange(0, 35).Draw(rt, "limit")
		most := rapid.SampledFrom([]int{0, 5000, 8000, 20000}).Draw(rt, "cap")
		args := []string{
			"numbered", "--limit", fmt.Sprint(limit), "--count", fmt.Sprint(count), "--pad",
			fmt.Sprint(rapid.IntRange(0, 300).Draw(rt, "pad")),
		}
		if n := rapid.SampledFrom([]int{0, 0, 150, 1000}).Draw(rt, "tokens"); n > 0 {
			args = append(args, "--token-limit", fmt.Sprint(n))
		}
		var hints *bool
		if rapid.Bool().Draw(rt, "hints") {
			hints = new(bool)
		}
		got, answers := w.with(fmt.Sprintf("OMNIAGENT_MAX_OUTPUT_BYTES=%d", most)).pages(t, hints, args...)
		for i, name := range got {
			if name != rowName(i) {
				rt.Fatalf("row %d is %s", i, name)
			}
		}
		if len(got) != count {
			rt.Fatalf("%d rows of %d", len(got), count)
		}
		for _, a := range answers {
			if most > 0 && len(a.stdout) > most {
				rt.Fatalf("%d bytes of %d", len(a.stdout), most)
			}
		}
	})
}
