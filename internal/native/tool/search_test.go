package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"omniagent/internal/sys/workspace"
	"omniagent/internal/testkit/hermetic"
)

// searched is a tree of files to search in, and where its user has rules for git.
type searched struct {
	root   string
	config string
	huge   bool // see randomText
}

func (s searched) env(t testing.TB, dir string) *Env {
	t.Helper()
	files, err := workspace.OpenDir(filepath.Join(s.root, dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	excludes := ExcludesFile(func(name string) string { return map[string]string{"XDG_CONFIG_HOME": s.config}[name] })
	return &Env{Files: files, Excludes: excludes}
}

// others runs a program in the tree.
func (s searched) others(t testing.TB, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Join(s.root, dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.config, "XDG_CONFIG_HOME=" + s.config, "LC_ALL=C.UTF-8"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	nothing := cmd.ProcessState.ExitCode() == 1 || strings.HasPrefix(stderr.String(), "No files were searched")
	if err != nil && !nothing {
		t.Fatalf("%s %q: %v: %s", program, args, err, &stderr)
	}
	return string(out)
}

// use runs a tool to its end.
func use(t testing.TB, made Tool, input map[string]any) Result {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	action, err := made.Plan(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return action.Run(context.Background())
}

func needs(t testing.TB, programs ...string) string {
	t.Helper()
	for _, program := range programs {
		if file, err := exec.LookPath(program); err == nil {
			return file
		}
	}
	t.Skipf("%s is not installed", programs[0])
	return ""
}

func put(t testing.TB, root, name string, data string) {
	t.Helper()
	full := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(full); err == nil && info.IsDir() {
		return
	}
	if err := os.WriteFile(full, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// plantSearched makes a tree at random: hidden and ignored files, repositories in repositories or none, and contents of
// every kind.
func plantSearched(t *testing.T, random *rand.Rand) searched {
	s := searched{root: t.TempDir(), config: t.TempDir()}
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	s.huge = random.IntN(2) == 0
	dirs := []string{""}
	for range 5 + random.IntN(8) {
		dirs = append(dirs, pick(dirs...)+pick("a", "b", "src", "build", ".hid", "x y", "node_modules")+"/")
	}
	dirs = slices.Compact(slices.Sorted(slices.Values(dirs)))
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(s.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range dirs {
		for range random.IntN(6) {
			put(t, s.root, dir+pick("a", "m", "main", ".env", "z", "Makefile", "é")+pick("", ".go", ".go", ".txt",
				".log", ".o"), randomText(random, s.huge))
		}
		for _, name := range []string{".gitignore", ".ignore", ".rgignore", ".fdignore"} {
			if random.IntN(5) == 0 {
				put(t, s.root, dir+name, randomIgnores(random))
			}
		}
		if random.IntN(8) == 0 || dir == "" && random.IntN(3) > 0 {
			put(t, s.root, dir+".git/HEAD", "ref: main\nfoo bar\n")
			if random.IntN(2) == 0 {
				put(t, s.root, dir+".git/info/exclude", randomIgnores(random))
			}
		}
		if random.IntN(6) == 0 {
			if err := os.Symlink(pick("a.go", "..", ".", "/etc"), filepath.Join(s.root, filepath.FromSlash(dir),
				"link")); err != nil {
				t.Skip("no symbolic links here")
			}
		}
	}
	if random.IntN(2) == 0 {
		put(t, s.config, "git/ignore", pick("*.log\n", "*.o\n!z.o\n", ".env\n"))
	}
	return s
}

func randomIgnores(random *rand.Rand) string {
	rules := []string{
		"*.log", "*.o", "build", "build/", "/build", "node_modules/", "!a.o", "!*.log", "!.env", ".env", "/a/*", "a/b",
		"**/src", "src/**", "!src/",
		"!.hid/", "/*", "!/a", "x\\ y", "[mz]*", "# no", "", "*.txt ", "m?in.go", "*", "!*.go", "!*/",
	}
	var b strings.Builder
	for range 1 + random.IntN(4) {
		b.WriteString(rules[random.IntN(len(rules))] + "\n")
	}
	return b.String()
}

// randomText is the content of a file. Only with huge a line may be longer than what ripgrep looks at in one go: it
// then looks at more of all files that follow, and so finds the zeros in them earlier.
func randomText(random *rand.Rand, huge bool) string {
	words := []string{
		"foo", "bar", "Foo", "FOO", "foobar", " ", "\t", "x", "xx", "123", "a.b", "(", " é ", "\n", "\n",
		"\n", "\n\n", "\r\n", "fo=\xff=o", "=\xfe=",
	}
	var b strings.Builder
	// A byte that is not text matches . and [^x] as one character here, but not in ripgrep, so none of them is next to
	// a letter.
	b.WriteString("the first line ") // ripgrep looks at the first three bytes alone, and at the lines in them
	for range random.IntN(60) {
		b.WriteString(words[random.IntN(len(words))])
	}
	switch random.IntN(12) {
	case 0:
		return ""
	case 1:
		return b.String() + "\x00" + b.String()
	case 2: // the zero is far behind
		if huge {
			return strings.Repeat("huge", 100_000) + b.String() + "\nfoo"
		}
		return strings.Repeat(b.String()+"\n", 200_000/(b.Len()+1)) + "foo\x00bar\nfoo\n"
	case 3:
		return b.String() + strings.Repeat("long line ", 5_000) + "foo\n" + b.String()
	case 4:
		return strings.Repeat(b.String()+"\n", 300_000/(b.Len()+1))
	case 5:
		var wide []byte
		for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(strings.ToValidUTF8(b.String(), "😀")))...) {
			wide = append(wide, byte(unit), byte(unit>>8))
		}
		return string(wide)
	case 6:
		return "\xef\xbb\xbf" + b.String()
	}
	return b.String()
}

func rounds(t *testing.T, most int, try func(random *rand.Rand)) {
	t.Helper()
	seed := rand.Uint64()
	for i := range most {
		try(rand.New(rand.NewPCG(seed, uint64(i))))
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, i)
		}
	}
}

// someDir is a directory of the tree that no rule hides, or its top. In one that is hidden we see more than others:
// somebody has named it.
func (s searched) someDir(random *rand.Rand, visible string) string {
	dirs := []string{".", "."}
	for _, name := range []string{"a", "b", "src", "build", "a/b", "src/a"} {
		if strings.Contains("\n"+visible, "\n"+name+"/") {
			dirs = append(dirs, name)
		}
	}
	return dirs[random.IntN(len(dirs))]
}

func sortedLines(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	slices.Sort(lines)
	return lines
}

// differ says what is in one list only.
func differ(ours, theirs []string) string {
	left := map[string]int{}
	for _, line := range ours {
		left[line]++
	}
	for _, line := range theirs {
		left[line]--
	}
	var b strings.Builder
	for _, line := range slices.Sorted(maps.Keys(left)) {
		if n := left[line]; n != 0 && b.Len() < 2000 {
			fmt.Fprintf(&b, "%+d %.200q\n", n, line)
		}
	}
	return b.String()
}

// TestGlobFindsWhatFdFinds compares the sets of files in random trees.
func TestGlobFindsWhatFdFinds(t *testing.T) {
	fd := needs(t, "fd", "fdfind")
	total := 0
	rounds(t, hermetic.Times(25, 5), func(random *rand.Rand) {
		s := plantSearched(t, random)
		dir := s.someDir(random, s.others(t, ".", fd, "--strip-cwd-prefix", "-t", "f"))
		result := use(t, Glob(s.env(t, dir)), map[string]any{"pattern": "**/*", "limit": 100_000})
		ours := sortedLines(result.Text)
		theirs := sortedLines(strings.ReplaceAll("\n"+s.others(t, dir, fd, "-t", "f"), "\n./", "\n"))
		theirs = slices.DeleteFunc(theirs, inGit)
		if len(theirs) == 0 {
			theirs = []string{"No files found matching pattern: **/*"}
		}
		if d := differ(ours, theirs); d != "" {
			t.Errorf("in %s:\n%s%s", dir, d, s.listing(t))
		}
		total += len(ours)
	})
	t.Logf("%d files", total)
}

// inGit reports whether a line is of a repository's own files. Where a rule such as !*/ takes back all hidden
// directories ripgrep and fd look into .git too; we do not.
func inGit(line string) bool {
	return strings.HasPrefix(line, ".git/") || strings.Contains(line, "/.git/")
}

// listing shows the tree with its rules, to explain a difference.
func (s searched) listing(t *testing.T) string {
	var b strings.Builder
	err := filepath.WalkDir(s.root, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fmt.Fprintln(&b, strings.TrimPrefix(name, s.root))
		if strings.HasSuffix(name, "ignore") || strings.HasSuffix(name, "exclude") {
			data, _ := os.ReadFile(name)
			fmt.Fprintf(&b, "\t%q\n", data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(filepath.Join(s.config, "git", "ignore"))
	return fmt.Sprintf("%suser: %q", b.String(), data)
}

// TestGrepFindsWhatRipgrepFinds compares every line of the answers in random trees.
func TestGrepFindsWhatRipgrepFinds(t *testing.T) {
	rg := needs(t, "rg")
	total := 0
	rounds(t, hermetic.Times(15, 3), func(random *rand.Rand) {
		s := plantSearched(t, random)
		env := s.env(t, ".")
		for range 4 {
			input, args := randomSearch(random, s.huge)
			result := use(t, Grep(env), input)
			if strings.Contains(result.Text, "(there are more") {
				continue // as far as the answer goes it is compared in another test
			}
			ours := comparable(result.Text)
			theirs := comparable(s.others(t, ".", rg, append([]string{"--color=never", "--no-heading"}, args...)...))
			if d := differ(ours, theirs); d != "" {
				t.Errorf("%v %q:\n%s%s", input, args, d, s.listing(t))
				return
			}
			total += len(ours)
		}
	})
	t.Logf("%d lines", total)
}

// randomSearch is one search, for us and for ripgrep.
func randomSearch(random *rand.Rand, context bool) (input map[string]any, args []string) {
	patterns := []string{
		"foo", "bar", "the first", "Foo", "foo|bar|123", "fo+b", `^foo`, `foo$`, `o\s+b`, `[Ff]oo\b`, `x*`, `^$`,
		`\bx\b`, `a\.b`, `\(`, `(foo|ba)r`, `[0-9]{3}`,
		`^\s*x`, `line$`, `x{2,3}`, "[^a-z\n]foo", `^(the|foo)`, `(?i)foo`, `f[^x]o`, `\Sx`, `line foo`, `\d\d\dx`,
	}
	pattern := patterns[random.IntN(len(patterns))]
	input, args = map[string]any{"pattern": pattern}, []string{"-e", pattern}
	maybe := func(n int, name string, value any, more ...string) {
		if random.IntN(n) == 0 {
			input[name] = value
			args = append(args, more...)
		}
	}
	switch random.IntN(4) {
	case 0:
		input["output_mode"] = "files_with_matches"
		args = append(args, "-l")
	case 1:
		input["output_mode"] = "count"
		args = append(args, "-c")
	default:
		args = append(args, "-n")
		if context { // else ripgrep may find a zero one window later
			maybe(3, "-A", 2, "-A2")
			maybe(3, "-B", 1, "-B1")
		}
	}
	maybe(4, "-i", true, "-i")
	if glob := []string{
		"*.{go,txt}", "!*.go", "**/a/**", "src/*", "a/", "!build", ".env*",
		"[mz]*.go",
	}; random.IntN(3) == 0 {
		one := glob[random.IntN(len(glob))]
		maybe(1, "glob", one, "-g", one)
	}
	maybe(8, "type", "make", "-tmake")
	return input, args
}

// comparable is an answer in a form in which small differences of the two programs do not count: the order of files,
// what a long line holds, bytes that are no text, separators, and the words about binary files.
func comparable(text string) []string {
	binary := regexp.MustCompile(`^(.*?): (WARNING: stopped searching binary file.*|binary from here on.*)$`)
	place := regexp.MustCompile(`^.*?[:-]\d+[:-]`)
	var lines []string
	for line := range strings.SplitSeq(strings.ToValidUTF8(text, "\uFFFD"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if inGit(line) || line == "--" || line == "" || line == "No matches found" || line == "No files found" {
			continue
		}
		line = binary.ReplaceAllString(line, "$1 binary")
		if len(line) > lineShown || strings.Contains(line, "(a line of ") { // we show a part of it
			line = place.FindString(line)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
