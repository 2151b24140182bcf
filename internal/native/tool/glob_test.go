package tool

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGlobAsBash holds random patterns against bash with globstar, in a tree without rules.
func TestGlobAsBash(t *testing.T) {
	bash := needs(t, "bash")
	s := searched{root: t.TempDir(), config: t.TempDir()}
	for _, dir := range []string{"", "a/", "a/b/", "a/b/a/", "b/", ".h/", "a/.h/", "src/", "src/a b/"} {
		for _, name := range []string{"a", "b.go", "ab.go", "c.ts", "d.tsx", ".e", ".e.go", "é.go", "a]", "{x}", "B"} {
			if info, err := os.Stat(filepath.Join(s.root, dir+name)); err != nil || !info.IsDir() {
				if dir == "" && name == "a" || dir == "a/b/" && name == "a" {
					continue
				}
				put(t, s.root, dir+name, "")
			}
		}
	}
	env := s.env(t, ".")
	parts := []string{
		"*", "**", "a", "b", "*.go", "*.{ts,tsx}", "?", "??", "[ab]*", "[!a]*", ".*", ".h", "src", "*b*", "{a,b}",
		"{a/b,src}", "a\\ b", "?.go", "[é].go",
		"*[.]go", "**.go", "a]", "{,a}b.go", "[[:upper:]]", "{a,{b,c}.*}", "*.{go,[tx]*}", "é*", "a?b", "\\{x\\}", "[a",
		"[]a]",
	}
	var patterns []string
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for range 300 {
		var names []string
		for range 1 + random.IntN(4) {
			names = append(names, parts[random.IntN(len(parts))])
		}
		patterns = append(patterns, strings.Join(names, "/"))
	}
	var script strings.Builder
	script.WriteString("shopt -s globstar nullglob extglob\n")
	for i, p := range patterns {
		fmt.Fprintf(&script, "for f in %s; do [ -f \"$f\" ] && printf '%d %%s\\n' \"$f\"; done\n", p, i)
	}
	cmd := exec.Command(bash)
	cmd.Dir, cmd.Env, cmd.Stdin = s.root, []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")},
		strings.NewReader(script.String())
	out, _ := cmd.Output() // the status is that of the last file
	theirs := make([][]string, len(patterns))
	for line := range strings.Lines(string(out)) {
		number, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var i int
		if _, err := fmt.Sscan(number, &i); err != nil {
			t.Fatal(err)
		}
		theirs[i] = append(theirs[i], name)
	}
	total := 0
	for i, p := range patterns {
		slices.Sort(theirs[i])
		want := slices.Compact(theirs[i])
		got := sortedLines(use(t, Glob(env), map[string]any{"pattern": p, "limit": 10_000}).Text)
		if len(want) == 0 {
			want = []string{"No files found matching pattern: " + p}
		}
		if d := differ(got, want); d != "" {
			t.Errorf("%s:\n%s", p, d)
		}
		total += len(theirs[i])
	}
	t.Logf("%d patterns, %d files", len(patterns), total)
}

func TestGlobAnswers(t *testing.T) {
	s := searched{root: t.TempDir(), config: t.TempDir()}
	began := time.Now().Add(-time.Hour)
	for i, name := range []string{
		".git/HEAD", ".gitignore", "a.go", "b/b.go", "b/build/c.go", "b/.env", ".github/w/ci.yml",
		"node_modules/x/index.js", "node_modules/x/x.log",
		"node_modules/.bin/run.js", "b/x.log", "z.go", "node_modules/x/.gitignore", "node_modules/x/deep/y.js",
	} {
		put(t, s.root, name, map[string]string{
			".gitignore":                "node_modules/\n*.log\nbuild/\n.env\n",
			"node_modules/x/.gitignore": "deep/\n",
		}[name])
		if err := os.Chtimes(filepath.Join(s.root, name), began, began.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	env := s.env(t, ".")
	const more = "\n(these are the newest 1 of 2 files; a narrower pattern, or a larger limit, shows the others)"
	for _, test := range []struct{ pattern, path, want string }{
		{"**/*.go", "", "z.go\nb/b.go\na.go"}, // the newest first
		{"*.go", "", "z.go\na.go"},
		{"./*.go", ".", "z.go\na.go"},
		{"*.go", "b", "b/b.go"},
		{"b/*.go", "", "b/b.go"},
		{"../*.go", "b", "z.go\na.go"},
		{s.root + "/b/*.go", "", "b/b.go"},
		{"*.zzz", "", "No files found matching pattern: *.zzz"},
		{"nowhere/*.go", "", "No files found matching pattern: nowhere/*.go"},
		{"a.go/*", "", "No files found matching pattern: a.go/*"},
		{"a.go", "", "a.go"},
		{"b", "", "No files found matching pattern: b"},
		{"b/", "", "b/b.go"},
		{".gitignore", "", ".gitignore"},
		{".*", "", ".gitignore"},
		// A name that is written out is found, also where a rule or a dot hides it; a rule that hides it says nothing
		// of what it holds.
		{".github/**", "", ".github/w/ci.yml"},
		{"**/*.yml", "", "No files found matching pattern: **/*.yml"},
		{"*/w/*.yml", "", "No files found matching pattern: */w/*.yml"},
		{".*/w/*.yml", "", ".github/w/ci.yml"},
		{"node_modules/**", "", "node_modules/x/x.log\nnode_modules/x/index.js"},
		{"node_modules/x/deep/*", "", "node_modules/x/deep/y.js"},
		{"**/node_modules/*/*.js", "", "node_modules/x/index.js"},
		{"{node_modules,b}/**/*.{js,go}", "", "node_modules/x/index.js\nb/b.go"},
		{"**/build/*.go", "", "b/build/c.go"},
		{"**/buil?/*.go", "", "No files found matching pattern: **/buil?/*.go"},
		{"**/.env", "", "b/.env"},
		{"**/.e*", "", "No files found matching pattern: **/.e*"},
		{"**/*", "node_modules", "node_modules/x/x.log\nnode_modules/x/index.js"},
		{".git/*", "", ".git/HEAD"},
	} {
		input := map[string]any{"pattern": test.pattern}
		if test.path != "" {
			input["path"] = test.path
		}
		if got := use(t, Glob(env), input); got.Text != test.want || got.Failed {
			t.Errorf("%s in %q:\n%s\nwant\n%s", test.pattern, test.path, got.Text, test.want)
		}
	}
	if got := use(t, Glob(env), map[string]any{"pattern": "*.go", "limit": 1}).Text; got != "z.go"+more {
		t.Error(got)
	}
	if got := use(t, Glob(env), map[string]any{"pattern": "*.go", "limit": 2}).Text; got != "z.go\na.go" {
		t.Error(got)
	}
}

func TestGlobSaysWhatIsWrong(t *testing.T) {
	env := small(t)
	for raw, want := range map[string]string{
		`{}`:                                 `"pattern" is missing`,
		`{"pattern":""}`:                     "it is empty",
		`{"pattern":"a/*/../b"}`:             `".." can only be at its beginning`,
		`{"pattern":"../../x/*"}`:            "outside the workspace",
		`{"pattern":"/etc/*"}`:               "outside the workspace",
		`{"pattern":"*","path":"/etc"}`:      "outside the workspace",
		`{"pattern":"*","limit":0}`:          `"limit"`,
		`{"pattern":7}`:                      `"pattern" must be a string`,
		`{"pattern":"` + manyBraces() + `"}`: "more than 512 patterns",
	} {
		if _, err := Glob(env).Plan(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", raw, err, want)
		}
	}
	for path, want := range map[string]string{"a.go": "a.go is a file", "nowhere": "nowhere"} {
		if got := use(t, Glob(env), map[string]any{"pattern": "*", "path": path}); !got.Failed ||
			!strings.Contains(got.Text, want) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func manyBraces() string { return strings.Repeat("{a,b}", 30) }

// TestGlobKeepsTheNewest of more files than it holds at a time.
func TestGlobKeepsTheNewest(t *testing.T) {
	s := searched{root: t.TempDir(), config: t.TempDir()}
	const files = 2500
	began := time.Now().Add(-time.Hour)
	for i := range files {
		name := fmt.Sprintf("%04d", i*7919%files)
		put(t, s.root, name, "")
		if err := os.Chtimes(filepath.Join(s.root, name), began,
			began.Add(time.Duration(i)*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	got := strings.Split(use(t, Glob(s.env(t, ".")), map[string]any{"pattern": "*"}).Text, "\n")
	if len(got) != globUsual+1 || !strings.Contains(got[globUsual], "the newest 100 of 2500 files") {
		t.Fatalf("%d lines, the last is %q", len(got), got[len(got)-1])
	}
	for i, name := range got[:globUsual] {
		if want := fmt.Sprintf("%04d", (files-1-i)*7919%files); name != want {
			t.Fatalf("line %d is %s, want %s", i, name, want)
		}
	}
}

func FuzzGlobPattern(f *testing.F) {
	for _, seed := range []string{
		"**/*.go", "{a,b}/{c", "[", "[]", "\\", "a/../b", "/", "//", "./", "{{a,b},c}",
		"**/**", "[[:x:]]", "é?",
	} {
		f.Add(seed, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, pattern, file string) {
		g, err := parseGlob(pattern)
		if err != nil {
			return
		}
		spots := g.start()
		names := strings.Split(file, "/")
		for _, name := range names[:len(names)-1] {
			if name != "" {
				spots = g.directory(spots, name, entryFlags{hidden: name[0] == '.'})
			}
		}
		g.file(spots, names[len(names)-1], entryFlags{})
	})
}

func FuzzGrepPattern(f *testing.F) {
	for _, seed := range []string{
		"a", "(?i)k", "a|b", "^$", `\s+`, "[^a]", "(", `\bx\b`, "a{2,5}", `\x{fffd}`, "(?s).",
		"ſ",
	} {
		f.Add(seed, "a\nb\r\n\nk\xff")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		p, err := parseGrep(pattern, false, false)
		if err != nil {
			return
		}
		var hints needleHints
		for from := 0; from < len(text); {
			begin, end, match := p.find([]byte(text), from, &hints)
			if begin < 0 {
				break
			}
			if begin < from || end < begin || begin+match > end || strings.Contains(text[begin:end], "\n") {
				t.Fatalf("%q in %q from %d: %d %d %d", pattern, text, from, begin, end, match)
			}
			from = end + 1
		}
	})
}
