package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("count", func(t *testing.T) {
		whole := w.hosted(t, nil, "lengthy").must(t, 0)
		a := w.run(t, "lengthy", "--token-count").must(t, 0)
		a.want(t, "data", "null")
		data, _, _ := strings.Cut(strings.TrimPrefix(whole.stdout, `{"ok":true,"data":`), `,"error":null`)
		a.want(t, "meta.token_count", fmt.Sprint(tokens(len(data))))
		few := w.hosted(t, nil, "lengthy", "--token-count", "--fields", "title").must(t, 0)
		few.want(t, "meta.token_count", fmt.Sprint(tokens(len(`{"title":"a title"}`))))
	})
	t.Run("limit", func(t *testing.T) {
		for _, n := range []int{30, 50, 200} {
			a := w.run(t, "lengthy", "--token-limit", fmt.Sprint(n)).must(t, 0)
			data, _, _ := strings.Cut(strings.TrimPrefix(a.stdout, `{"ok":true,"data":`), `,"error":null`)
			if !json.Valid([]byte(data)) || tokens(len(data)) > n || len(data) < n*bytesPerToken/2 {
				t.Errorf("%d tokens: %d: %s", n, tokens(len(data)), data)
			}
			if text := a.at(t, "data.text").(string); !strings.HasSuffix(text, cutMark) ||
				!strings.HasPrefix(lengthyText(1000), strings.TrimSuffix(text, cutMark)) {
				t.Errorf("%q", text)
			}
			a.want(t, "meta.truncated", "true")
			a.want(t, "meta.token_limit", fmt.Sprint(n))
			a.want(t, "data.title", `"a title"`)
		}
		a := w.hosted(t, nil, "lengthy", "--token-limit", "100000").must(t, 0)
		if a.at(t, "data.text") != lengthyText(1000) || slices.Contains(keysOf(a.at(t, "meta")), "truncated") {
			t.Error("cut though there is room")
		}
	})
	t.Run("offset", func(t *testing.T) {
		whole := w.hosted(t, nil, "lengthy").must(t, 0)
		for _, n := range []int{33, 50, 171} {
			text := ""
			for _, part := range w.walk(t, "lengthy", "--token-limit", fmt.Sprint(n)) {
				text += strings.TrimSuffix(part.at(t, "data.text").(string), cutMark)
			}
			if text != whole.at(t, "data.text") {
				t.Errorf("%d tokens at a time: %q", n, text)
			}
			lines := []string{}
			for _, part := range w.walk(t, "lengthy", "--chars", "1", "--lines", "300", "--token-limit",
				fmt.Sprint(n)) {
				for _, line := range part.at(t, "data.lines").([]any) {
					lines = append(lines, line.(string))
				}
			}
			if len(lines) != 300 ||
				!slices.IsSortedFunc(lines, func(a, b string) int { return number3(a) - number3(b) }) {
				t.Errorf("%d tokens at a time: %q", n, lines)
			}
		}
	})
	t.Run("rows", func(t *testing.T) { // only whole rows are left out, and the cursor continues with those
		a := w.hosted(t, nil, "numbered", "--token-offset", "20").must(t, 0)
		got := a.names(t, "data.items", "name")
		next := w.line(t, a.at(t, "meta.truncation_hint").(string)).must(t, 0).names(t, "data.items", "name")
		if got[0] == rowName(0) || got[len(got)-1] != rowName(19) || len(next) != 5 || next[0] != rowName(20) {
			t.Errorf("%q then %q", got, next)
		}
	})
	// A limit without room for anything must not lead to the same call again and again.
	t.Run("too_little", func(t *testing.T) {
		a := w.hosted(t, nil, "lengthy", "--token-limit", "5").must(t, 0)
		if hint := a.at(t, "meta.truncation_hint").(string); !strings.Contains(hint, "--token-limit 10") {
			t.Error(hint)
		}
	})
}

func number3(line string) (n int) { _, _ = fmt.Sscanf(line, "line %d", &n); return n }

// walk follows the hints until nothing is missing.
func (w *world) walk(t *testing.T, args ...string) (parts []answered) {
	t.Helper()
	a := w.hosted(t, nil, args...)
	for range 500 {
		parts = append(parts, a.must(t, 0))
		hint, more := a.at(t, "meta").(map[string]any)["truncation_hint"].(string)
		if !more {
			return parts
		}
		a = w.line(t, hint)
	}
	t.Fatal("it never ends")
	return nil
}

// anyTree is what a result may hold.
func anyTree(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just(any(nil)), rapid.Bool().AsAny(), rapid.String().AsAny(), rapid.StringN(0, 400, -1).AsAny(),
		rapid.Map(rapid.Int64(), func(n int64) any { return json.Number(fmt.Sprint(n)) }),
		rapid.Map(rapid.Float64(), func(f float64) any { return shortest(f, 64) }),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	inner := anyTree(depth - 1)
	lists := rapid.Map(rapid.SliceOfN(inner, 0, 6), func(list []any) any { return list })
	return rapid.OneOf(append(leaves, lists, lists, // more than one chance in eight, or most trees are a leaf
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z"é\\]{0,8}`), inner, 0, 6), func(m map[string]any) any {
			o := object{}
			for _, name := range slices.Sorted(maps.Keys(m)) {
				o = append(o, member{name, m[name]})
			}
			return o
		}))...)
}

// Whatever the tree and the budget: what was cut is a valid tree within the budget and says what it lost, and what fits
// is not touched.
func TestCutFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree := (&walker{unmask: true}).tree(map[string]any{
			"a": anyTree(4).Draw(t, "a"), "b": anyTree(3).Draw(t, "b"),
			"c": anyTree(2).Draw(t, "c"),
		})
		before := string(appendJSON(nil, tree))
		budget := rapid.IntRange(0, 1200).Draw(t, "budget")
		k := &cutter{}
		after := appendJSON(nil, k.fit(tree, budget, ""))
		switch {
		case !json.Valid(after):
			t.Fatalf("%s", after)
		case len(after) > max(budget, nullSize):
			t.Fatalf("%d bytes of %d: %s", len(after), budget, after)
		case (string(after) != before) != (len(k.fields) > 0):
			t.Fatalf("%s becomes %s, and is told %v", before, after, k.fields)
		case len(before) <= budget && string(after) != before:
			t.Fatalf("it had room: %s becomes %s", before, after)
		case string(appendJSON(nil, tree)) != before:
			t.Fatal("the tree itself was changed")
		}
	})
}

// Whatever the text or list: what is skipped ends exactly where the answer before was cut.
func TestSkippingMeetsTheCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, _ := (&walker{unmask: true}).tree(rapid.StringN(0, 300, -1).Draw(t, "text")).(string)
		list, _ := (&walker{unmask: true}).tree(rapid.SliceOfN(rapid.SampledFrom([]any{
			1, 22, 333, "é", nil, true,
			"longer text",
		}), 0, 60).Draw(t, "list")).([]any)
		for _, whole := range []any{text, list} {
			var texts string
			items := []any{}
			for offset, rounds := 0, 0; ; rounds++ {
				if rounds > 400 {
					t.Fatal("it never ends")
				}
				kept := (&cutter{}).fit(skip(whole, offset), rapid.IntRange(30, 100).Draw(t, "budget"), "")
				kept, next := resume(whole, kept, offset)
				switch kept := kept.(type) {
				case string:
					texts += strings.TrimSuffix(kept, cutMark)
				case []any:
					items = append(items, kept...)
				}
				if next <= offset {
					break
				}
				offset = next
			}
			if s, is := whole.(string); is && s != texts {
				t.Fatalf("%q is not %q", texts, s)
			}
			if l, is := whole.([]any); is && !reflect.DeepEqual(l, items) {
				t.Fatalf("%v is not %v", items, l)
			}
		}
	})
}
