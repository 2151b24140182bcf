package contract

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"omniagent/internal/kit/text"
)

func TestShape(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("binary", func(t *testing.T) {
		raw := []byte("\x00\xff\x10text")
		a := w.hosted(t, nil, "show", "binary").must(t, 0)
		a.want(t, "data.bytes.type", `"binary"`)
		a.want(t, "data.bytes.encoding", `"base64"`)
		a.want(t, "data.bytes.size_bytes", fmt.Sprint(len(raw)))
		if back, err := base64.StdEncoding.DecodeString(a.at(t, "data.bytes.value").(string)); err != nil ||
			!bytes.Equal(back, raw) {
			t.Errorf("%q, %v", back, err)
		}
		w.hosted(t, nil, "show", "binary", "--binary-mode", "hex").must(t, 0).want(t, "data.bytes.value",
			fmt.Sprintf(`"%x"`, raw))
		skipped := w.hosted(t, nil, "show", "binary", "--binary-mode", "skip").must(t, 0)
		skipped.want(t, "data.bytes.value", `""`)
		skipped.want(t, "data.bytes.size_bytes", fmt.Sprint(len(raw)))
		w.hosted(t, nil, "show", "binary", "--binary-mode", "octal").must(t, 2)
	})
	t.Run("locale", func(t *testing.T) {
		var first string
		for _, locale := range []string{"de_DE.UTF-8", "en_US.UTF-8", "C", "tr_TR.UTF-8"} {
			a := w.with("LC_ALL="+locale, "LANG="+locale).run(t, "show", "numbers", "--stable-output").must(t, 0)
			if first == "" {
				first = a.stdout
			}
			if a.stdout != first {
				t.Errorf("%s:\n%s\n%s", locale, a.stdout, first)
			}
		}
		a := w.hosted(t, nil, "show", "numbers").must(t, 0)
		a.want(t, "data",
			`{"big":9223372036854776000,"fine":-1500,"float":0.1,"half":0.5,"large":1e+21,"odd":"1}, {","took":1500,"when":"2026-01-02T03:04:05Z","yes":true}`)
		if !strings.Contains(first, `"big":9223372036854775809,`) ||
			!regexp.MustCompile(`"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`).MatchString(a.stdout) {
			t.Errorf("%s", a.stdout)
		}
	})
	t.Run("long_strings", func(t *testing.T) {
		want := "https://h.example/" + strings.Repeat("a/b-", 45) + "end"
		narrow := w.with("COLUMNS=40")
		for _, args := range [][]string{
			{"show", "url"},
			{"show", "url", "--width", "40"},
			{"show", "url", "--output", "plain"},
			{"show", "url", "--output", "tsv"},
		} {
			if a := narrow.run(t, args...); !strings.Contains(a.stdout, want) {
				t.Errorf("%q: %s", args, a.stdout)
			}
		}
	})
	t.Run("map_order", func(t *testing.T) {
		first := w.hosted(t, nil, "show", "many", "--stable-output").must(t, 0).stdout
		if names := regexp.MustCompile(`"k\d+"`).FindAllString(first, -1); len(names) != 100 ||
			!slices.IsSorted(names) {
			t.Errorf("%q", names)
		}
		for range 100 {
			if again := w.hosted(t, nil, "show", "many", "--stable-output").stdout; again != first {
				t.Fatalf("%s\n%s", first, again)
			}
		}
		if got := string(appendJSON(nil,
			(&walker{}).tree(map[string]int{"a": 1, "\x1b[mb": 2}))); got != `{"a":1,"b":2}` {
			t.Errorf("sorted by what they were: %s", got)
		}
		same := map[string]int{"a": 1, "a\x1b[m": 2, "a\x1b[0m": 3, "a\x1b[1m": 4}
		one := string(appendJSON(nil, (&walker{}).tree(same)))
		for range 100 {
			if again := string(appendJSON(nil, (&walker{}).tree(same))); again != one {
				t.Fatalf("names that look alike: %s, %s", one, again)
			}
		}
	})
	t.Run("nil_lists", func(t *testing.T) {
		a := w.run(t, "show", "nil").must(t, 0)
		a.want(t, "data", `{"list":[],"map":{},"pointer":null,"whole":{"child":null,"list":[]}}`)
		w.hosted(t, nil, "numbered", "--count", "0").must(t, 0).want(t, "data", `{"items":[],"note":"n"}`)
		w.hosted(t, nil, "lengthy", "--chars", "0").must(t, 0).want(t, "data",
			`{"lines":[],"text":"","title":"a title"}`)
		w.hosted(t, nil, "show", "full").must(t, 0).want(t, "data.whole", `{"child":null,"list":[1],"maybe":"x"}`)
	})
	t.Run("stable_keys", func(t *testing.T) {
		for _, pair := range [][2][]string{
			{{"numbered", "--count", "0"}, {"numbered", "--count", "9"}},
			{{"lengthy", "--chars", "0"}, {"lengthy", "--chars", "100", "--lines", "3"}},
			{{"show", "nil"}, {"show", "full"}},
		} {
			empty, full := w.hosted(t, nil, pair[0]...).must(t, 0), w.hosted(t, nil, pair[1]...).must(t, 0)
			for _, path := range []string{"data", "meta"} {
				if !slices.Equal(keysOf(empty.at(t, path)), keysOf(full.at(t, path))) {
					t.Errorf("%q: %s has %q, and then %q", pair[1], path, keysOf(empty.at(t, path)),
						keysOf(full.at(t, path)))
				}
			}
		}
	})
}

// unclean finds what could move a cursor or break a line.
func unclean(s string) bool {
	clean, _ := text.Clean(s)
	return clean != s || !utf8.ValidString(s) || strings.Contains(s, "\r")
}

// eachString visits every string of an answer, names too, as a reader has them after decoding.
func eachString(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			eachString(item, visit)
		}
	case map[string]any:
		for name, item := range v {
			visit(name)
			eachString(item, visit)
		}
	}
}

func TestSanitise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	oddDir := w.dir + "/d\x1b[31m\xff"
	calls := map[string][]string{
		"data": {"show", "odd"}, "warnings": {"tell", "--text", odd, "--verbose"}, "errors": {
			"tell", "--fail",
			"--text", odd,
		}, "argument": {"show", odd},
		"flag": {"ok", "--x\x1b[31m\x9b1m\xff"}, "command": {"ok\x1b[31m"}, "debug": {
			"tell", "--debug", "--text",
			odd + "\xff",
		}, "hint": {"numbered", odd},
		"payload": {"make", "--raw-payload", `{"x[31m":1,"name":"x\u001b[2J"}`}, "panic": {
			"panic",
			"--debug",
		}, "cwd": {"ok", "--cwd", oddDir}, "help": {"ok", "--help"},
	}
	t.Run("escapes", func(t *testing.T) {
		for name, args := range calls {
			a := w.hosted(t, nil, args...)
			if a.envelope == nil {
				t.Errorf("%s: %q", name, a.stdout)
			}
			validEnvelope(t, a.stdout)
			eachString(a.envelope, func(s string) {
				if unclean(s) {
					t.Errorf("%s: %q", name, s)
				}
			})
			for _, stream := range []string{a.stdout, a.stderr} {
				if strings.ContainsAny(stream, "\x1b\u009b\r\x07") || !utf8.ValidString(stream) {
					t.Errorf("%s: %q", name, stream)
				}
			}
		}
		if got := w.hosted(t, nil, "show", "odd").at(t, "data.text"); got != "abcdefg" {
			t.Errorf("what is left is %q", got)
		}
		for _, format := range []string{"plain", "tsv", "jsonl"} {
			if a := w.hosted(t, nil, "show", "odd", "--output", format); unclean(a.stdout) ||
				!strings.Contains(a.stdout, "abcdefg") {
				t.Errorf("%s: %q", format, a.stdout)
			}
		}
	})
	t.Run("invalid_utf8", func(t *testing.T) {
		a := w.run(t, "show", "invalid").must(t, 0)
		if got := a.at(t, "data.bad"); got != "a\ufffdb\ufffd\ufffd\ufffdc" {
			t.Errorf("%q", got)
		}
		a.want(t, "data.fine", `"é"`)
		if !slices.Contains(a.warned(t), "ENCODING_REPLACED") {
			t.Fatalf("%q", a.warned(t))
		}
		detail := a.at(t, "meta.warnings").([]any)[0].(map[string]any)["detail"]
		if fields := keysOf(detail); !slices.Equal(fields, []string{"bad", "nul"}) ||
			detail.(map[string]any)["bad"] != 4.0 {
			t.Errorf("%v", detail)
		}
		if warned := w.hosted(t, nil, "show", "full").must(t, 0).warned(t); len(warned) > 0 {
			t.Errorf("clean data: %q", warned)
		}
	})
	t.Run("nul", func(t *testing.T) {
		a := w.run(t, "show", "invalid").must(t, 0)
		if got := a.at(t, "data.nul"); got != "a\ufffdb" {
			t.Errorf("%q", got)
		}
		if strings.Contains(a.stdout, `\u0000`) || strings.Contains(a.stdout, "\x00") {
			t.Error(a.stdout)
		}
	})
	t.Run("line_ends", func(t *testing.T) {
		for _, args := range [][]string{
			{"show", "odd"},
			{"tell", "--fail", "--text", "a\r\nb", "--verbose"},
			{"ok", "--help"},
			{},
			{"ok", "--help", "--output", "plain"},
			{"numbered", "--output", "tsv"},
		} {
			if a := w.run(t, args...); strings.Contains(a.stdout+a.stderr, "\r") || !strings.HasSuffix(a.stdout, "\n") {
				t.Errorf("%q: %q %q", args, a.stdout, a.stderr)
			}
		}
	})
}

func TestTrustTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tagged := func(t *testing.T, v any, want bool) {
		t.Helper()
		o := v.(map[string]any)
		trusted, said := o["_trusted"]
		if (o["_source"] == "external" && said && trusted == false) != want || !want && said {
			t.Errorf("%v", o)
		}
	}
	t.Run("object", func(t *testing.T) {
		a := w.run(t, "foreign").must(t, 0)
		tagged(t, a.at(t, "data.page"), true)
		tagged(t, a.at(t, "data.own"), false)
		tagged(t, a.at(t, "data"), false)
		a.want(t, "data.page.value", `"from outside"`)
		a.want(t, "meta.external_content", "true")
		if !slices.Contains(a.warned(t), "INJECTION_SUSPECTED") {
			t.Errorf("%q", a.warned(t))
		}
		if own := w.hosted(t, nil, "ok").must(t, 0); slices.Contains(keysOf(own.at(t, "meta")), "external_content") ||
			len(own.warned(t)) > 0 {
			t.Errorf("own data: %s", own.stdout)
		}
	})
	t.Run("rows", func(t *testing.T) {
		for _, args := range [][]string{{"foreign"}, {"foreign", "--fields", "name"}} {
			a := w.hosted(t, nil, args...).must(t, 0)
			rows := a.at(t, "data.items").([]any)
			if len(rows) != 2 {
				t.Fatalf("%v", rows)
			}
			for _, row := range rows {
				tagged(t, row, true)
			}
			tagged(t, a.at(t, "data.line"), true)
			a.want(t, "data.line.value", `"said"`)
		}
		if a := w.hosted(t, nil, "foreign", "--output", "jsonl"); strings.Count(a.stdout, `"_trusted":false`) != 2 {
			t.Errorf("%s", a.stdout)
		}
	})
	t.Run("off", func(t *testing.T) {
		a := w.run(t, "foreign", "--no-injection-protection", "--yes").must(t, 0)
		if strings.Contains(a.stdout, `"_trusted"`) || strings.Contains(a.stdout, `"_source"`) {
			t.Error(a.stdout)
		}
		a.want(t, "data.line", `"said"`)
		a.want(t, "meta.injection_protection", "false")
		if !slices.Contains(a.warned(t), "INJECTION_PROTECTION_OFF") {
			t.Errorf("%q", a.warned(t))
		}
		if log := w.auditLog(t); !strings.Contains(log, `"--no-injection-protection"`) {
			t.Error(log)
		}
	})
	t.Run("acknowledged", func(t *testing.T) {
		a := w.run(t, "foreign", "--no-injection-protection").must(t, 2)
		a.want(t, "error.code", `"CONFIRMATION_REQUIRED"`)
		a.want(t, "data", "null")
		on := func(h *Host) { h.StdinTerminal, h.StdoutTerminal = true, true }
		if a := w.hosted(t, on, "foreign", "--no-injection-protection", "--output", "json"); a.code != 0 {
			t.Errorf("on a terminal: %s", a.stdout)
		}
		if a := w.with("CI=1").hosted(t, on, "foreign", "--no-injection-protection"); a.code != 2 {
			t.Errorf("on a terminal that nobody watches: %s", a.stdout)
		}
	})
}

// encoding/json reads what the encoder writes back unchanged.
func TestEncoderRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree := (&walker{unmask: true}).tree(map[string]any{
			"a":       anyTree(4).Draw(t, "a"),
			"é\"\\\n": anyTree(3).Draw(t, "b"),
		})
		encoded := appendJSON(nil, tree)
		decoder := json.NewDecoder(bytes.NewReader(encoded))
		decoder.UseNumber()
		var back any
		if err := decoder.Decode(&back); err != nil {
			t.Fatalf("%v: %s", err, encoded)
		}
		if want := exact(tree); !reflect.DeepEqual(back, want) {
			t.Fatalf("%v\n%v\n%s", back, want, encoded)
		}
	})
	for _, f := range []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64,
		math.Copysign(0, -1),
	} {
		if b := appendJSON(nil, (&walker{}).tree(f)); !json.Valid(b) {
			t.Errorf("%v: %s", f, b)
		}
	}
}

// exact is a tree as a decoder with UseNumber would give it.
func exact(v any) any {
	switch v := v.(type) {
	case object:
		m := map[string]any{}
		for _, member := range v {
			m[member.name] = exact(member.value)
		}
		return m
	case []any:
		list := []any{}
		for _, item := range v {
			list = append(list, exact(item))
		}
		return list
	}
	return v
}

// BenchmarkList encodes a list of about a megabyte and says how many times as long that takes as encoding/json alone,
// which cleans, masks and pages nothing.
func BenchmarkList(b *testing.B) {
	rows := []numbered{}
	for i := range 5000 {
		rows = append(rows, numbered{rowName(i), i, strings.Repeat("some words of text, /a/path/to.file and 1.2.3; ",
			3)})
	}
	var ours, theirs int64
	for b.Loop() {
		theirs += elapsed(func() { _, _ = json.Marshal(map[string]any{"items": rows}) })
		ours += elapsed(func() {
			w := &walker{page: &page{key: "items"}}
			_ = appendJSON(nil, w.tree(struct {
				Items Rows[numbered] `json:"items"`
			}{RowsOf(rows)}))
		})
	}
	b.ReportMetric(float64(ours)/float64(theirs), "×json")
}
