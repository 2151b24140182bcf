package ignore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// Two things are left out where git does not do what its manual says. A ** right behind the literal beginning of a rule
// with a slash is taken for one between slashes (a**/b), and \/ is not quite a slash (**\/b). ripgrep does as the
// manual says, and so do we.

// names of the tree in which rules are tried, one level.
func names() []string {
	return []string{"a", "b", "ab", "abc", "a.o", ".h", "x y", "B", "a]", "é", "x "}
}

// TestAsGit holds random rules, in files at every place, against git check-ignore.
func TestAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	git(t, root, "", "init", "-q")
	dirs, paths := plant(t, root)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range hermetic.Times(400, 60) {
		tryRules(t, root, dirs, paths, randomFiles(random, dirs))
	}
}

// TestAsGitOn keeps the rules at which one can go wrong.
func TestAsGitOn(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	git(t, root, "", "init", "-q")
	dirs, paths := plant(t, root)
	for _, rules := range []string{
		"a", "/a", "a/", "/a/", "a/b", "a/*", "a/**", "**/a", "a/**/b", "**", "*", "/*", "**/", "/**", "/", "//", "!",
		"!/", "a//b", "//a",
		"**/**/a", "a/**/**", "a/**/**/b", "a**", "**a", "a/**b", "***", "***/b", "a/***/b", "[ab]", "[!a]", "[^a]",
		"[a-c]", "[c-a]",
		"[]a]", "[]-b]", "a[]]", "[a", "a[", "[a/b]", "[[:alpha:]]", "[[:nope:]]", "[[:alpha]", "[[:upper:]-z]", "[a-]",
		"[\\]a]", "[--b]",
		"?", "??", "a?c", "\\a", "a\\", "\\!a", "\\#a", "#a", "x y", "x\\ ", "x ", "x\\  ", "a ", "a  \t", "*.o\n!a.o",
		"a\n!a/b", "a/*\n!a/b",
		"/*\n!/a\n/a/*\n!/a/b", "*\n!*/", "!a\na", "a\r\nb\r", "\ufeffa", "a\\/b", "a\\/", "*\\/b", "é", "??\n!ab",
		"[é]", ".*", "*h",
		"*/b", "*/*", "a/?", "?/b", "B", "b", "\\", "[\\", "[a-\\]]", "*a*b*c", "*.*", "[!-z]", "[a-c-e]", "[[]", "[]]",
		"a/b/", "a/b/**", "**/b/**", "**/ab/a", "/**/b", "a/", "!a/\na/", "ab*/", "/ab?", "/ab?/a", "a/b/c/d", "*/",
		"!*\n*", " a", "\ta",
	} {
		tryRules(t, root, dirs, paths, map[string]string{".gitignore": rules})
		tryRules(t, root, dirs, paths, map[string]string{"a/.gitignore": rules, ".gitignore": "b\n*.o"})
	}
}

// plant makes the tree and returns its directories, "" for the top, and all its paths.
func plant(t *testing.T, root string) (dirs, paths []string) {
	t.Helper()
	dirs = []string{""}
	for depth := range 3 {
		for _, dir := range append([]string{}, dirs...) {
			if strings.Count(dir, "/") != depth && dir != "" || depth > 0 && dir == "" {
				continue
			}
			for i, name := range names() {
				path := dir + name
				paths = append(paths, path)
				if i < 4 && depth < 2 {
					check(t, os.Mkdir(filepath.Join(root, path), 0o700))
					dirs = append(dirs, path+"/")
				} else {
					check(t, os.WriteFile(filepath.Join(root, path), nil, 0o600))
				}
			}
		}
	}
	return dirs, paths
}

func randomFiles(random *rand.Rand, dirs []string) map[string]string {
	files := map[string]string{".gitignore": randomRules(random)}
	for range random.IntN(4) {
		files[dirs[random.IntN(len(dirs))]+".gitignore"] = randomRules(random)
	}
	if random.IntN(3) == 0 {
		files[".git/info/exclude"] = randomRules(random)
	}
	if random.IntN(3) == 0 {
		files[".git/user/git/ignore"] = randomRules(random)
	}
	return files
}

func randomRules(random *rand.Rand) string {
	pieces := []string{
		"a", "b", "ab", "c", ".o", ".h", "B", "é", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[^b-z]", "[[:upper:]]",
		"[", "]", "\\", " ", ".",
		"/**/", "**/", "/**", "x\\ ", "x y", "-",
	}
	odd := regexp.MustCompile(`^!?/?[^*?[\\]*[^*?[\\/]\*\*|\\/`)
	var all strings.Builder
	for range 1 + random.IntN(5) {
		var b strings.Builder
		if random.IntN(4) == 0 {
			b.WriteByte('!')
		}
		if random.IntN(5) == 0 {
			b.WriteByte('/')
		}
		for range 1 + random.IntN(4) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		if random.IntN(4) == 0 {
			b.WriteByte('/')
		}
		b.WriteString([]string{"\n", "\n", "\r\n", " \n"}[random.IntN(4)])
		if !odd.MatchString(b.String()) {
			all.WriteString(b.String())
		}
	}
	return all.String()
}

// tryRules puts the files in place, asks git and us, and takes them away again.
func tryRules(t *testing.T, root string, dirs, paths []string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		check(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
		defer os.Remove(filepath.Join(root, name))
	}
	out := git(t, root, strings.Join(paths, "\x00"), "check-ignore", "-z", "--stdin", "--no-index")
	theirs := map[string]bool{}
	for name := range strings.SplitSeq(out, "\x00") {
		theirs[name] = true
	}
	scopes, ignored := map[string]*Scope{}, map[string]bool{}
	for _, dir := range dirs { // those above come first
		f := Files{Git: Parse([]byte(files[dir+".gitignore"]))}
		if dir == "" {
			f.Repository = true
			f.Exclude, f.User = Parse([]byte(files[".git/info/exclude"])), Parse([]byte(files[".git/user/git/ignore"]))
		}
		scopes[dir] = scopes[above(dir)].Enter(strings.TrimSuffix(dir, "/"), f)
	}
	for _, path := range paths {
		_, isDir := scopes[path+"/"]
		up := above(path)
		ignored[path] = ignored[strings.TrimSuffix(up, "/")] || scopes[up].Match(path, isDir) == Ignored
		if ignored[path] != theirs[path] {
			t.Errorf("%q: ignored %v, for git %v, with %q", path, ignored[path], theirs[path], files)
			return
		}
	}
}

// above is the directory of a path, with a slash.
func above(path string) string {
	path = strings.TrimSuffix(path, "/")
	return path[:strings.LastIndexByte(path, '/')+1]
}

func git(t *testing.T, root, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + root, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"XDG_CONFIG_HOME=" + filepath.Join(root, ".git", "user"),
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); err != nil && code != 1 { // 1: nothing is ignored
		t.Fatal(fmt.Errorf("git %v: %w: %s", args, err, &stderr))
	}
	return string(out)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
