package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// TestGrepPatternAsLineByLine holds the search in whole texts against regexp on each line.
func TestGrepPatternAsLineByLine(t *testing.T) {
	found := 0
	rounds(t, hermetic.Times(400, 80), func(random *rand.Rand) {
		pattern, fold := randomPattern(random, 3), random.IntN(3) == 0
		p, err := parseGrep(pattern, fold, false)
		if err != nil {
			t.Fatalf("%q: %v", pattern, err)
		}
		flags := "(?m)"
		if fold {
			flags = "(?mi)"
		}
		plain := regexp.MustCompile(flags + pattern)
		text := randomLines(random)
		var ours, want []int
		var hints needleHints
		for from := 0; ; {
			begin, end, match := p.find([]byte(text), from, &hints)
			if begin < 0 {
				break
			}
			if match < 0 || begin+match > end || end < from {
				t.Fatalf("%q in %q: %d %d %d", pattern, text, begin, end, match)
			}
			ours = append(ours, begin)
			from = end + 1
		}
		at := 0
		for line := range strings.Lines(text) {
			if plain.MatchString(strings.TrimSuffix(line, "\n")) {
				want = append(want, at)
			}
			at += len(line)
		}
		if !slices.Equal(ours, want) {
			t.Errorf("%q (fold %v) in %q: lines at %v, want %v; needles %d", pattern, fold, text, ours, want,
				len(p.needles))
		}
		found += len(want)
	})
	t.Logf("%d lines", found)
}

func randomPattern(random *rand.Rand, depth int) string {
	atoms := []string{
		"a", "b", "ab", "kA", "K", "s", "bS", "abc", ".", "[ab]", "[^a]", `\s`, `\S`, `\w`, `\b`, "^",
		"$", "aab", "[Kk]b", "x", `\.`, `(?s:.)`, `\A`, `\z`, "ſ", "\\D",
	}
	if depth == 0 || random.IntN(4) == 0 {
		return atoms[random.IntN(len(atoms))]
	}
	sub := func() string { return randomPattern(random, depth-1) }
	switch random.IntN(8) {
	case 0:
		return "(" + sub() + "|" + sub() + ")"
	case 1:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"}[random.IntN(7)]
	case 2:
		return "(?i:" + sub() + ")"
	case 3:
		return sub() + "|" + sub() + "|" + sub()
	default:
		return sub() + sub()
	}
}

func randomLines(random *rand.Rand) string {
	words := []string{
		"a", "b", "ab", "A", "K", "\u212a", "k", "s", "ſ", "S", "abc", " ", "\n", "\n", "\r\n", ".", "x",
		"1", "\n\n",
	}
	var b strings.Builder
	for range random.IntN(40) {
		b.WriteString(words[random.IntN(len(words))])
	}
	if random.IntN(150) == 0 { // beyond what is looked at in one go
		return strings.Repeat(b.String(), 1+20_000/(b.Len()+1))
	}
	return b.String()
}

// TestNeedles: what a pattern cannot match without.
func TestNeedles(t *testing.T) {
	for pattern, want := range map[string]string{
		"MarshalJSON": "=MarshalJSON", `func \w+Error\(`: "Error(", "(foo|bar+z)x": "foo ba", "a*": "", "(abc)?d": "",
		"(abc)+d": "abc", "x{3}": "", "abc{0}": "ab",
		"(?i)Context": "~context", "(?i)mask": "~ma", "(?i)kk": "", "foo|.": "", `\bTODO\b`: "TODO", "ab|abc": "ab",
		"func.*interface": "interface", "^": "",
	} {
		p, err := parseGrep(pattern, false, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range p.needles {
			mark := ""
			if n.fold {
				mark = "~"
			}
			if p.exact {
				mark = "="
			}
			got = append(got, mark+string(n.text))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
}

func TestGrepTypesAreRipgreps(t *testing.T) {
	rg := needs(t, "rg")
	known := 0
	for line := range strings.Lines(searched{root: t.TempDir(), config: t.TempDir()}.others(t, ".", rg,
		"--type-list")) {
		name, globs, _ := strings.Cut(strings.TrimSpace(line), ": ")
		ours := grepType(name)
		if len(ours) == 0 {
			continue
		}
		known++
		for glob := range strings.SplitSeq(globs, ", ") {
			if !slices.Contains(ours, glob) {
				t.Errorf("type %s has no %s", name, glob)
			}
		}
	}
	if known < 70 {
		t.Errorf("only %d types have names of ripgrep", known)
	}
}

// small is a tree whose answers stand in the tests.
func small(t *testing.T) *Env {
	s := searched{root: t.TempDir(), config: t.TempDir()}
	put(t, s.root, ".git/HEAD", "")
	put(t, s.root, ".gitignore", "out/\n*.log\n")
	put(t, s.root, "a.go", "package a\n\nfunc A() {\n\treturn\n}\n\nfunc B() {}\r\n")
	put(t, s.root, "b/b.go", "package b\nfunc C() {}")
	put(t, s.root, "b/x.log", "func D\n")
	put(t, s.root, "out/o.go", "func O() {}\n")
	put(t, s.root, "out/x.log", "func X\n")
	put(t, s.root, ".hid/h.go", "func H() {}\n")
	put(t, s.root, "bin", "func one\n\x00func two\nfunc three\n")
	put(t, s.root, "long.js", strings.Repeat("x", 3000)+"func L"+strings.Repeat("é", 3000)+"\n")
	put(t, s.root, "bad.txt", "func \xff\n")
	return s.env(t, ".")
}

// in is an input with the pattern "func".
func in(more ...any) map[string]any {
	input := map[string]any{"pattern": "func"}
	for i := 0; i+1 < len(more); i += 2 {
		input[fmt.Sprint(more[i])] = more[i+1]
	}
	return input
}

// Long because it is a table.
func TestGrepAnswers(t *testing.T) {
	env := small(t)
	const long = "… " + "xx" // the beginning of what is shown of the long line
	for _, test := range []struct {
		input map[string]any
		want  string
	}{
		{in("glob", "*.go"), "a.go:3:func A() {\na.go:7:func B() {}\nb/b.go:2:func C() {}"},
		{in("glob", "*.go", "-n", false), "a.go:func A() {\na.go:func B() {}\nb/b.go:func C() {}"},
		{in("glob", "*.go", "-n", "true"), "a.go:3:func A() {\na.go:7:func B() {}\nb/b.go:2:func C() {}"},
		{in("path", "a.go", "-C", 1), "a.go-2-\na.go:3:func A() {\na.go-4-\treturn\n--\na.go-6-\na.go:7:func B() {}"},
		{in("path", "a.go", "-A", 1), "a.go:3:func A() {\na.go-4-\treturn\n--\na.go:7:func B() {}"},
		{
			in("path", "a.go", "-B", 3),
			"a.go-1-package a\na.go-2-\na.go:3:func A() {\na.go-4-\treturn\na.go-5-}\na.go-6-\na.go:7:func B() {}",
		},
		{
			in("glob", "*.go", "-A", 1),
			"a.go:3:func A() {\na.go-4-\treturn\n--\na.go:7:func B() {}\n--\nb/b.go:2:func C() {}",
		},
		{in("output_mode", "files_with_matches"), "a.go\nb/b.go\nbad.txt\nlong.js"},
		{in("output_mode", "count", "type", "go"), "a.go:2\nb/b.go:1"},
		{in("output_mode", "count", "type", "golang", "path", "b"), "b/b.go:1"},
		{in("path", "out"), "out/o.go:1:func O() {}\nout/x.log:1:func X"},
		{in("path", ".hid"), ".hid/h.go:1:func H() {}"},
		{in("path", "b/x.log"), "b/x.log:1:func D"},
		{in("path", "b", "glob", "*.log"), "b/x.log:1:func D"},
		{in("path", "bin"), "bin: binary, so what matches from here on is not shown"},
		{in("path", "bad.txt"), "bad.txt:1:func \uFFFD"},
		{in("glob", "*.go, *.txt !a.go"), "b/b.go:2:func C() {}\nbad.txt:1:func \uFFFD"},
		{in("glob", "b/**"), "b/b.go:2:func C() {}\nb/x.log:1:func D"},
		{
			in("glob", "*.go", "head_limit", 2),
			"a.go:3:func A() {\na.go:7:func B() {}\n(there are more; a narrower pattern, path or glob, or an offset, " +
				"shows them)",
		},
		{in("glob", "*.go", "head_limit", 3), "a.go:3:func A() {\na.go:7:func B() {}\nb/b.go:2:func C() {}"},
		{in("glob", "*.go", "offset", 1, "head_limit", "2"), "a.go:7:func B() {}\nb/b.go:2:func C() {}"},
		{in("glob", "*.go", "offset", 9), "No lines beyond offset 9: the answer has 3"},
		{in("glob", "*.go", "pattern", "nothing"), "No matches found"},
		{in("output_mode", "files_with_matches", "pattern", "nothing"), "No files found"},
		{in("pattern", `a\n\nfunc`, "multiline", true), "a.go:1:package a\na.go:2:\na.go:3:func A() {"},
		{in("pattern", `\{.return`, "multiline", true), "No matches found"},
		{in("pattern", `\{..return\n`, "multiline", true), "a.go:3:func A() {\na.go:4:\treturn"},
		{in("pattern", "^$", "path", "a.go"), "a.go:2:\na.go:6:"},
		{in("pattern", "FUNC a", "-i", true), "a.go:3:func A() {"},
		{in("pattern", `B\(\) \{\}$`), "No matches found"}, // as ripgrep: the line ends in \r
	} {
		if got := use(t, Grep(env), test.input); got.Text != test.want || got.Failed {
			t.Errorf("%v:\n%s\nwant\n%s", test.input, got.Text, test.want)
		}
	}
	got := use(t, Grep(env), in("path", "long.js")).Text
	if !strings.HasPrefix(got, "long.js:1:"+long) || !strings.Contains(got, "xfunc Lé") ||
		!strings.HasSuffix(got, "é … (a line of 9006 bytes)") {
		t.Errorf("the long line: %s", got)
	}
}

func TestGrepSaysWhatIsWrong(t *testing.T) {
	env := small(t)
	for _, test := range []struct {
		input map[string]any
		want  string
	}{
		{map[string]any{}, `"pattern" is missing`},
		{in("pattern", "foo(?=bar)"), "lookahead and lookbehind"},
		{in("pattern", `(a)\1`), `backreferences, \1`},
		{in("pattern", "a("), "missing closing ): a("},
		{in("pattern", `a\nb`), `"multiline": true`},
		{in("pattern", ""), "it is empty"},
		{in("type", "klingon"), `"type" must be one of asciidoc`},
		{in("output_mode", "all"), "content, files_with_matches or count"},
		{in("head_limit", -1), `"head_limit"`},
		{in("offset", 1_000_000), `"offset" must be less than`},
		{in("path", "../elsewhere"), "outside the workspace"},
	} {
		raw, _ := json.Marshal(test.input)
		if _, err := Grep(env).Plan(raw); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", raw, err, test.want)
		}
	}
	for _, raw := range []string{
		"", "null", "[]", `"x"`, `{"pattern":7}`, `{"pattern":"x","-A":"many"}`,
		`{"pattern":"x","glob":{}}`, "{",
	} {
		if _, err := Grep(env).Plan(json.RawMessage(raw)); err == nil {
			t.Errorf("%s: no error", raw)
		}
	}
	if got := use(t, Grep(env), in("path", "b/bb.go")); !got.Failed || !strings.Contains(got.Text, "b/bb.go") {
		t.Errorf("a missing file: %+v", got)
	}
}

// TestGrepPages: pages of an answer are the answer, whichever goroutine found what first.
func TestGrepPages(t *testing.T) {
	s := searched{root: t.TempDir(), config: t.TempDir()}
	for i := range 300 {
		put(t, s.root, fmt.Sprintf("d%d/f%03d.txt", i%7, i), strings.Repeat("func\nother\nother\nother\n", i%9))
	}
	env := s.env(t, ".")
	for _, more := range [][]any{{}, {"-A", 1}, {"output_mode", "files_with_matches"}, {"output_mode", "count"}} {
		whole := use(t, Grep(env), in(more...)).Text
		var pages []string
		for offset := 0; ; offset += 100 {
			page := use(t, Grep(env), in(append(slices.Clone(more), "offset", offset, "head_limit", 100)...)).Text
			text, note, cut := strings.Cut(page, "\n(there are more")
			pages = append(pages, text)
			if _, _, again := strings.Cut(note, "(there"); again {
				t.Fatalf("two notes: %s", page)
			}
			if !cut {
				break
			}
		}
		if got := strings.Join(pages, "\n"); got != whole {
			t.Errorf("%v: %d bytes in %d pages, want %d bytes", more, len(got), len(pages), len(whole))
		}
	}
}

func TestGrepAnswerIsLimited(t *testing.T) {
	s := searched{root: t.TempDir(), config: t.TempDir()}
	for i := range 40 {
		put(t, s.root, fmt.Sprintf("f%02d.txt", i), strings.Repeat("a line with func in it\n", 2000))
	}
	got := use(t, Grep(s.env(t, ".")), in()).Text
	if len(got) > resultLimit+200 || len(got) < resultLimit-200 || !strings.HasSuffix(got, "shows them)") {
		t.Errorf("%d bytes, that end in %q", len(got), got[max(0, len(got)-100):])
	}
	for i, line := range strings.Split(got, "\n")[:2500] {
		if want := fmt.Sprintf("f%02d.txt:%d:a line with func in it", i/2000, i%2000+1); line != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
}

// TestSearchEndsWithItsContext: nothing is left running, and the answer says so.
func TestSearchEndsWithItsContext(t *testing.T) {
	s := searched{root: t.TempDir(), config: t.TempDir()}
	for i := range 200 {
		put(t, s.root, fmt.Sprintf("d%d/f%d.txt", i%20, i), strings.Repeat("a line\n", 40_000))
	}
	env := s.env(t, ".")
	for name, made := range map[string]Tool{"Grep": Grep(env), "Glob": Glob(env)} {
		action, err := made.Plan(json.RawMessage(`{"pattern":"(z|[^a]*)*y{3}$"}`))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		if name == "Glob" {
			cancel()
		} else {
			time.AfterFunc(20*time.Millisecond, cancel)
		}
		began := time.Now()
		result := action.Run(ctx)
		if took := time.Since(began); !result.Failed || !strings.Contains(result.Text, "was ended") ||
			took > hermetic.Patience {
			t.Errorf("%s: after %v %+v", name, took, result)
		}
		cancel()
	}
}

func TestGrepWide(t *testing.T) {
	s := searched{root: t.TempDir(), config: t.TempDir()}
	line := "func 😀 é\n"
	for name, big := range map[string]bool{"le.txt": false, "be.txt": true} {
		data := []byte{0xff, 0xfe}
		if big {
			data = []byte{0xfe, 0xff}
		}
		for range 10_000 {
			for _, unit := range []uint16{'f', 'u', 'n', 'c', ' ', 0xd83d, 0xde00, ' ', 0xe9, '\n'} {
				if big {
					data = append(data, byte(unit>>8), byte(unit))
				} else {
					data = append(data, byte(unit), byte(unit>>8))
				}
			}
		}
		put(t, s.root, name, string(append(data, 'x'))) // half a character
	}
	want := "be.txt:10000\nle.txt:10000"
	if got := use(t, Grep(s.env(t, ".")), in("pattern", "^"+strings.TrimSpace(line)+"$", "output_mode",
		"count")).Text; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestGrepLeavesOutWhatCannotBeHeld(t *testing.T) {
	s := searched{root: t.TempDir(), config: t.TempDir()}
	put(t, s.root, "a.txt", "func\n")
	file, err := os.Create(filepath.Join(s.root, "large.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(scanWhole + 1); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	want := "a.txt:1:func\n(files: 1 are larger than 4 MiB, and were not searched for a pattern over several lines)"
	if got := use(t, Grep(s.env(t, ".")), in("multiline", true)).Text; got != want {
		t.Error(got)
	}
}

// TestGrepContextAcrossWindows: what a file is read in makes no difference to what is shown of it.
func TestGrepContextAcrossWindows(t *testing.T) {
	p, err := parseGrep("func", false, false)
	if err != nil {
		t.Fatal(err)
	}
	for pad := range 24 {
		size, far := 100, scanWindow/100-6+pad%12 // lines, so that what follows lies at the end of the first window
		if pad >= 12 {
			size, far = scanWindow/2+1, pad-12 // one line a window
		}
		line := strings.Repeat("x", size-1) + "\n"
		for _, marks := range []string{"f....f", "f...f", "..f.f..", "f", "....f......f", "ff", "f.f.f.f.f.f.f"} {
			lines := slices.Repeat([]string{line}, far)
			for _, mark := range marks {
				lines = append(lines, map[rune]string{'f': "func\n", '.': line}[mark])
			}
			lines = append(lines, slices.Repeat([]string{line}, 20)...)
			show := &grepShow{mode: grepContent, numbers: true, before: 3, after: pad % 3, limit: grepLimit}
			out, s := &grepLines{show: show, path: "p"}, scanner{pattern: p}
			if err := s.scan(context.Background(), strings.NewReader(strings.Join(lines, "")), false, out); err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Join(out.lines, "\n"), plainContext(lines, show.before, show.after); got != want {
				t.Fatalf("%s after %d lines:\n%s\nwant\n%s", marks, far, got, want)
			}
		}
	}
}

// plainContext is what a search with context shows, found in the simplest way.
func plainContext(lines []string, before, after int) string {
	var b strings.Builder
	last := -1
	for i, line := range lines {
		near := slices.ContainsFunc(lines[max(0, i-after):min(len(lines), i+before+1)],
			func(l string) bool { return l == "func\n" })
		if !near {
			continue
		}
		if last >= 0 && i > last+1 {
			b.WriteString("--\n")
		}
		mark := "-"
		if line == "func\n" {
			mark = ":"
		}
		fmt.Fprintf(&b, "p%s%d%s%s\n", mark, i+1, mark, clipLine([]byte(strings.TrimSuffix(line, "\n")), 0))
		last = i
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TestGrepForgetsALongLine: a file is judged by itself, whatever was searched before it.
func TestGrepForgetsALongLine(t *testing.T) {
	p, err := parseGrep("func", false, false)
	if err != nil {
		t.Fatal(err)
	}
	s := scanner{pattern: p}
	scan := func(text string) *grepLines {
		out := &grepLines{show: &grepShow{mode: grepCount}}
		if err := s.scan(context.Background(), strings.NewReader(text), false, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	late := strings.Repeat("func\n", scanWindow/5+1) + "\x00"
	for range 2 {
		if out := scan(late); out.count == 0 || !out.binary {
			t.Errorf("%+v", out)
		}
		if out := scan(strings.Repeat("x", scanWindow*5/2) + "func"); out.count != 1 {
			t.Errorf("%+v", out)
		}
		if out := scan("func\x00" + late); out.count != 0 {
			t.Errorf("%+v", out)
		}
		if out := scan(strings.Repeat("x", scanLine) + "\nfunc\nfunc"); out.count != 2 {
			t.Errorf("%+v", out)
		}
	}
}
