package autorun

import (
	_ "embed" // the names
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/workspace"
)

//go:embed followed.txt
var followed string

const (
	mostWords    = 64      // of a command that are looked at
	mostFollowed = 200     // files whose words are followed in one workspace
	mostTexts    = 4000    // words of them
	longestText  = 1 << 18 // bytes of such a file that are read
	deepScripts  = 3       // how often a script that one of them names is followed in turn
	deepFollowed = 2       // levels of a directory whose files are followed
)

// Pointers returns the files of the workspace that protected files name: the script that .envrc reads, the interpreter
// in an editor's settings, what a hook calls. tree is the directory with the protected files, the workspace or below
// it. more are further files or directories that are followed; agents are names that agents obey. It follows words as
// they are written, and the words of scripts that it finds.
func Pointers(root, tree string, agents, more []string) []string {
	f := newFollower(root, tree)
	for _, name := range strings.Fields(followed) {
		f.all(filepath.Join(tree, filepath.FromSlash(name)), deepFollowed, false)
	}
	listed := Names()
	for _, name := range agents {
		if slices.Contains(listed, name) {
			continue
		}
		f.all(filepath.Join(tree, filepath.FromSlash(name)), deepFollowed, true)
	}
	for _, path := range more {
		f.all(path, 1, false)
	}
	return f.paths
}

type follower struct {
	root, tree string
	seen       map[string]bool // files that were read
	words      int             // that were looked at
	found      map[string]bool
	paths      []string
	links      map[string]string // where links lead; "": there is no link
}

func newFollower(root, tree string) *follower {
	return &follower{
		root: root, tree: tree, seen: map[string]bool{}, found: map[string]bool{}, links: map[string]string{},
	}
}

// all follows a file, or the files in a directory. With settings, it follows only settings files: the others are text
// for a model.
func (f *follower) all(path string, levels int, settings bool) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case info.Mode().IsRegular():
		if !settings || isSettings(path) {
			f.file(path, deepScripts)
		}
	case info.IsDir() && levels > 0:
		for _, entry := range read(path) {
			if len(f.seen) < mostFollowed && !strings.HasSuffix(entry.Name(), ".sample") {
				f.all(filepath.Join(path, entry.Name()), levels-1, settings)
			}
		}
	}
}

func isSettings(path string) bool {
	return slices.Contains([]string{".json", ".jsonc", ".toml", ".yaml", ".yml"}, strings.ToLower(filepath.Ext(path)))
}

// file follows the words of a file, and of the scripts that they name.
func (f *follower) file(path string, depth int) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if f.seen[path] || len(f.seen) >= mostFollowed {
		return
	}
	f.seen[path] = true
	text, err := workspace.ReadFile(path, longestText)
	if err != nil {
		return
	}
	var scripts []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' || strings.HasPrefix(line, "//") {
			continue
		}
		if f.words += 1 + strings.Count(line, " "); f.words > mostTexts {
			return
		}
		words := split(separated(line))
		for _, base := range slices.Compact([]string{f.tree, filepath.Dir(path)}) {
			scripts = append(scripts, f.keep(filesOf(words, base, runs))...)
		}
		f.keep(sourced(words, f.tree))
	}
	for _, script := range scripts {
		if depth > 1 && isScript(script) {
			f.file(script, depth-1)
		}
	}
}

// separated replaces the separators in settings by spaces.
func separated(line string) string {
	return strings.NewReplacer(
		",", " ", "[", " ", "]", " ", "{", " ", "}", " ", ": ", " ", ":-", " ", ":$", " $",
	).Replace(line)
}

// keep records the paths that lead into the workspace, and returns them.
func (f *follower) keep(paths []string) (inside []string) {
	for _, path := range paths {
		at, ok := f.enters(path)
		if !ok || at == f.root || at == f.tree || f.found[at] {
			continue
		}
		f.found[at] = true
		f.paths, inside = append(f.paths, at), append(inside, at)
	}
	return inside
}

// isScript reports whether a file is a script of a shell, which names what it reads as plainly as .envrc does.
func isScript(path string) bool {
	if slices.Contains([]string{".sh", ".bash", ".zsh", ".fish", ".envrc"}, filepath.Ext(path)) {
		return true
	}
	file, _, err := workspace.OpenRegular(path)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, 64)
	n, _ := file.Read(begin)
	line, _, _ := strings.Cut(string(begin[:n]), "\n")
	return strings.HasPrefix(line, "#!") && strings.Contains(line, "sh")
}

// sourced returns the files that a shell line would read if they existed.
func sourced(words []string, base string) (files []string) {
	for i := range words {
		if i == 0 || !slices.Contains(readers(), words[i-1]) || !strings.ContainsAny(words[i], "./") {
			continue
		}
		path := ExpandHome(words[i], base)
		if name, rest, found := strings.Cut(words[i], "/"); found && name != "" && strings.ToUpper(name) == name &&
			strings.Trim(name, ".~") != "" { // a variable
			path = filepath.Join(base, rest)
		}
		if !exists(path) {
			files = append(files, path)
		}
	}
	return files
}

// readers returns the words of shells that precede a file which is read as a script, or tested for existence first.
func readers() []string {
	return []string{
		".", "source", "source_if_exists", "source_env", "source_env_if_exists", "dotenv", "dotenv_if_exists",
		"-e", "-f", "-r", "-s", "-x",
	}
}

// runs reports whether a word of settings or of a script may name what is run: one with a slash, unless it is data, or
// one after a program that runs files. A plain name such as package.json is looked for by a package manager, and the
// shell looks for a program of that name elsewhere.
func runs(words []string, i int) bool {
	if i > 0 && (slices.Contains(readers(), words[i-1]) ||
		slices.Contains(strings.Fields(interpreters), words[i-1])) {
		return true
	}
	return strings.Contains(words[i], "/") &&
		!slices.Contains(strings.Fields(ofData), strings.ToLower(filepath.Ext(words[i])))
}

const (
	// words that run the file named by the next word
	interpreters = "sh bash zsh fish node bun deno tsx ts-node python python3 ruby perl php lua Rscript -m -C " +
		"--require --import --loader import require include"
	// extensions of files that nobody runs
	ofData = ".json .jsonc .json5 .lock .md .txt .toml .yaml .yml .mod .sum .xml .csv .svg .png .html .css .log"
)

func split(line string) []string {
	all := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n'\"!;|&()<>=`$", r) })
	return all[:min(len(all), mostWords)]
}

// spellings returns the paths that a word may mean: as it is, or after a variable or a substitution.
func spellings(word, base string) []string {
	paths := []string{ExpandHome(word, base)}
	if _, rest, found := strings.Cut(word, "/"); found {
		paths = append(paths, filepath.Join(base, rest))
		if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(strings.Trim(word, "{}"), "HOME") {
			paths = append(paths, filepath.Join(home, rest))
		}
	}
	return paths
}

// Files returns the files that the words of a command name: as they are, in a directory that another word names,
// behind a variable or a substitution, such as "$(git rev-parse --show-toplevel)/tools/x", and as interpreters complete
// names.
func Files(command, tree string) []string {
	return filesOf(split(command), tree, func([]string, int) bool { return true })
}

// filesOf returns the files that words name in tree. It completes words for which counts is true, as interpreters do.
func filesOf(words []string, tree string, counts func([]string, int) bool) (files []string) {
	dirs := []string{tree}
	for i, word := range words {
		for _, dir := range dirs {
			paths := []string{ExpandHome(word, dir)}
			if dir == tree {
				paths = spellings(word, dir)
			}
			if counts(words, i) {
				paths = append(paths, completed(paths[0])...)
			}
			for _, path := range paths {
				switch info, err := os.Stat(path); {
				case err != nil:
				case info.Mode().IsRegular():
					if counts(words, i) {
						files = append(files, path)
					}
				case info.IsDir() && path != tree && dir == tree:
					dirs = append(dirs, path)
				}
			}
		}
	}
	return files
}

// completed returns the files that interpreters and make look for by such a name: node tools/x, python3 -m tools.x,
// make -C tools.
func completed(path string) (files []string) {
	for _, extension := range []string{".js", ".mjs", ".cjs", ".py", ".sh"} {
		files = append(files, path+extension)
	}
	dir, name := filepath.Split(path)
	files = append(files, filepath.Join(dir, strings.ReplaceAll(name, ".", "/"))+".py")
	for _, inside := range []string{"Makefile", "makefile", "GNUmakefile", "index.js", "__main__.py"} {
		files = append(files, filepath.Join(path, inside))
	}
	return files
}

// ExpandHome makes a path of a configuration absolute, from a base; ~ and ~name are home directories.
func ExpandHome(path, base string) string {
	name, rest, found := strings.Cut(path, "/")
	switch {
	case !found || !strings.HasPrefix(name, "~"):
	case name == "~":
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	default:
		if u, err := user.Lookup(name[1:]); err == nil {
			return filepath.Join(u.HomeDir, rest)
		}
	}
	return pathname.From(base, path)
}

// enters follows the links of a path until it is in the workspace, and returns the rest unchanged, since links within
// the workspace are judged by their own names.
func (f *follower) enters(path string) (string, bool) {
	for range mostLinks {
		if path = filepath.Clean(path); pathname.Within(f.root, path) {
			return path, true
		}
		next := ""
		for end := 1; end <= len(path) && next == ""; end++ {
			if end < len(path) && path[end] != filepath.Separator {
				continue
			}
			if target := f.leads(path[:end]); target != "" {
				next = filepath.Join(pathname.From(filepath.Dir(path[:end]), target), path[end:])
			}
		}
		if path = next; path == "" {
			break
		}
	}
	return "", false
}

// mostLinks is how many links the kernel follows.
const mostLinks = 40

// leads returns the target of a symbolic link, or "" if the path is not one.
func (f *follower) leads(path string) string {
	target, known := f.links[path]
	if !known {
		target, _ = os.Readlink(path)
		f.links[path] = target
	}
	return target
}
