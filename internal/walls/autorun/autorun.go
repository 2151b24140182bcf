// Package autorun decides which files of a workspace only a person changes, because something runs or obeys them later
// without being asked: a shell that enters the directory, git, an editor, an agent, a REPL or a build tool that a
// person starts for another purpose, or the next login.
//
// There is one policy. Tools for files ask a person about such a file, the walls refuse it to a command at the moment
// of the write, a fork keeps it back, and the end of a turn names it. It has three parts:
//
//	a name on the list, or of an agent, at any depth   .git/hooks, .vscode, mise.toml   Policy.Named
//	a new name with a dot at the top                   anything but the harmless ones   Policy.Fresh
//	what these name, and where links of HOME lead      scripts/env.sh of .envrc         Pointers, FromHome
//
// The second part lists what is harmless: known names, names that git ignored when the policy was made, and names that
// existed then. It need not list what future tools will run.
package autorun

import (
	_ "embed" // the names
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/ignore"
	"omniagent/internal/sys/workspace"
)

//go:embed names.txt
var names string

//go:embed harmless.txt
var harmless string

// Names returns the listed names, relative to any directory of a workspace. A directory stands for all below it.
func Names() []string { return strings.Fields(names) }

// Policy is the policy for one directory.
type Policy struct {
	Root  string   // without links
	Names []string // besides the listed ones: what agents obey
	// Kept returns further protected paths: see Pointers and Home; nil: there are no others
	Kept func() []string

	listed  []string // all names; nil: not made yet
	ignores []rules
	known   map[string]bool // names with a dot at the top that existed when the policy was made
}

// rules are those of one ignore file, for a directory at or above the root.
type rules struct {
	dir, text string
	parsed    *ignore.Rules
}

// mostKnown is how many existing names with a dot at the top are remembered.
const mostKnown = 4096

// For makes the policy of a directory as it is now. excludes is the user's own file of what git ignores, or empty.
func For(root string, more []string, excludes string) Policy {
	p := Policy{Root: root, Names: more, known: map[string]bool{}}
	p.listed = p.all()
	for _, entry := range read(root) {
		if dotted(entry.Name()) && !isHarmless(entry.Name()) {
			p.remember(entry.Name(), entry.IsDir())
		}
	}
	p.readIgnored(excludes)
	return p
}

func read(dir string) []os.DirEntry {
	entries, _ := os.ReadDir(dir)
	return entries
}

func (p Policy) remember(rel string, dir bool) {
	if len(p.known) >= mostKnown || rel == ".git" {
		return
	}
	p.known[rel] = true
	if !dir {
		return
	}
	for _, entry := range read(filepath.Join(p.Root, filepath.FromSlash(rel))) {
		p.remember(path.Join(rel, entry.Name()), entry.IsDir())
	}
}

// longestIgnored is how many bytes of an ignore file are read.
const longestIgnored = 1 << 18

// readIgnored reads git's ignore rules, the weakest first.
func (p *Policy) readIgnored(excludes string) {
	top := p.Root
	for filepath.Dir(top) != top && !exists(filepath.Join(top, ".git")) {
		top = filepath.Dir(top)
	}
	if !exists(filepath.Join(top, ".git")) {
		return
	}
	add := func(dir, file string) {
		if text, err := workspace.ReadFile(file, longestIgnored); err == nil && len(text) > 0 {
			p.ignores = append(p.ignores, rules{dir, string(text), ignore.Parse(text)})
		}
	}
	if excludes != "" {
		add(top, excludes)
	}
	add(top, filepath.Join(top, ".git", "info", "exclude"))
	var dirs []string
	for dir := p.Root; pathname.Within(top, dir); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	for _, dir := range slices.Backward(dirs) {
		add(dir, filepath.Join(dir, ".gitignore"))
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Words encodes the policy for Of, in a process that does not read the workspace.
func (p Policy) Words() []string {
	words := []string{p.Root}
	for _, r := range p.ignores {
		words = append(words, r.dir, r.text)
	}
	words = append(words, "")
	for name := range p.known {
		words = append(words, name)
	}
	return words
}

// Of decodes the Words of a policy. The result lacks the names of agents.
func Of(words []string) Policy {
	p := Policy{known: map[string]bool{}}
	if len(words) == 0 {
		return p
	}
	p.Root, words = words[0], words[1:]
	for len(words) > 1 && words[0] != "" {
		p.ignores = append(p.ignores, rules{words[0], words[1], ignore.Parse([]byte(words[1]))})
		words = words[2:]
	}
	for _, name := range words {
		p.known[name] = true
	}
	return p
}

// IgnoringAs returns the policy with the ignore rules of an earlier one: the current rules may have been written by
// what is judged.
func (p Policy) IgnoringAs(earlier Policy) Policy {
	p.ignores = earlier.ignores
	return p
}

// all returns the listed names and those of agents.
func (p Policy) all() []string {
	if p.listed != nil {
		return p.listed
	}
	return slices.Concat(Names(), p.Names)
}

// Named returns the listed name that a path in the workspace has or lies below, at any depth, or "". A workspace may
// contain other repositories.
func (p Policy) Named(full string) string {
	rel, err := filepath.Rel(p.Root, full)
	if err != nil {
		return full
	}
	slash := "/" + filepath.ToSlash(Fold(rel)) + "/"
	for _, name := range p.all() {
		if strings.Contains(slash, "/"+strings.ToLower(name)+"/") {
			return name
		}
	}
	// NTFS has git~1 as a second name of .git.
	if strings.HasSuffix(slash, "/.git/") || strings.Contains(slash, "/git~1/") {
		return ".git"
	}
	return ""
}

// Fresh reports whether a path has a dot at the top of the workspace, and is neither harmless nor ignored by git, and
// did not exist when the policy was made. Only creating such a path needs a question.
func (p Policy) Fresh(full string) bool {
	return p.mayBeDotted(full) && !p.known[p.top(full)] && p.FreshTree(full)
}

// FreshTree is Fresh for a directory that is moved there with its content: whether it existed does not count.
func (p Policy) FreshTree(full string) bool {
	rel, within := pathname.In(p.Root, full)
	if !within || rel == "." {
		return false
	}
	rel = filepath.ToSlash(rel)
	top, _, _ := strings.Cut(rel, "/")
	return dotted(Fold(top)) && Fold(top) != ".git" && !isHarmless(rel) && !p.isIgnored(rel)
}

// FreshDirectory is Fresh for a directory that is created empty: one that may contain harmless names, such as .github,
// may be created.
func (p Policy) FreshDirectory(full string) bool {
	if !p.Fresh(full) {
		return false
	}
	for pattern := range strings.FieldsSeq(harmless) {
		if strings.HasPrefix(pattern, p.top(full)+"/") {
			return false
		}
	}
	return true
}

// mayBeDotted rules out most paths cheaply, since every write of a command is judged.
func (p Policy) mayBeDotted(full string) bool {
	rest, found := strings.CutPrefix(full, p.Root)
	return found && len(rest) > 1 && os.IsPathSeparator(rest[0]) && (rest[1] == '.' || rest[1] >= 0x80)
}

func dotted(name string) bool { return strings.HasPrefix(name, ".") }

// isHarmless reports whether a path, or a directory above it, is on the list.
func isHarmless(rel string) bool {
	elements := strings.Split(rel, "/")
	for pattern := range strings.FieldsSeq(harmless) {
		depth := strings.Count(pattern, "/") + 1
		if len(elements) < depth {
			continue
		}
		if same, err := path.Match(pattern, strings.Join(elements[:depth], "/")); err == nil && same {
			return true
		}
	}
	return false
}

// isIgnored reports whether git ignored a path, or a directory above it.
func (p Policy) isIgnored(rel string) bool {
	for end := 0; end < len(rel); {
		next := strings.IndexByte(rel[end+1:], '/')
		if end += 1 + next; next < 0 {
			end = len(rel)
		}
		full := filepath.Join(p.Root, filepath.FromSlash(rel[:end]))
		for _, r := range slices.Backward(p.ignores) {
			at, _ := pathname.In(r.dir, full)
			verdict := r.parsed.Match(filepath.ToSlash(at), true)
			if verdict == ignore.Ignored {
				return true
			}
			if verdict != ignore.None {
				break
			}
		}
	}
	return false
}

// Fold maps names to one form if some file system treats them as the same. It removes case, the dots and spaces at the
// end and the text after a colon, which Windows ignores, and the invisible characters that macOS ignores.
func Fold(path string) string {
	elements := strings.Split(strings.ToLower(path), string(filepath.Separator))
	for i, e := range elements {
		if head, _, _ := strings.Cut(e, ":"); head != "" {
			e = head
		}
		e = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return r
		}, e)
		elements[i] = e
		if trimmed := strings.TrimRight(e, ". "); trimmed != "" {
			elements[i] = trimmed
		}
	}
	return strings.Join(elements, string(filepath.Separator))
}

// Why returns why only a person may create or change a path, or "". isNew says that nothing exists there yet.
func (p Policy) Why(full string, isNew bool) string {
	if name := p.Named(full); name != "" {
		return name + DecidesLater
	}
	if p.Kept != nil {
		for _, kept := range p.Kept() {
			if pathname.Within(Fold(kept), Fold(full)) {
				return kept + KeptBecause
			}
		}
	}
	if isNew && p.Fresh(full) {
		return p.top(full) + freshName
	}
	return ""
}

// Once returns the policy for many paths: it evaluates Kept only once.
func (p Policy) Once() Policy {
	if p.Kept != nil {
		kept := p.Kept()
		p.Kept = func() []string { return kept }
	}
	return p
}

// RunsLater reports whether a changed path below the root is run or obeyed later by itself. added says that it did not
// exist before. Unlike Why it needs no policy from before the change.
func (p Policy) RunsLater(rel string, added bool) bool {
	full := filepath.Join(p.Root, filepath.FromSlash(rel))
	return p.Why(full, false) != "" || added && p.FreshTree(full)
}

// Sentence tells a person in one line which changed files are run later by themselves.
func Sentence(names []string) string {
	const most = 5
	shown := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return "Some changed files run by themselves later: " + shown
}

// Beneath returns a protected name that lies below a path, whether or not it exists, or "".
func (p Policy) Beneath(full string) string {
	full = Fold(full)
	for _, name := range p.all() {
		if path := filepath.Join(p.Root, filepath.FromSlash(name)); pathname.Within(full, Fold(path)) {
			return name
		}
	}
	if p.Kept != nil {
		for _, kept := range p.Kept() {
			if pathname.Within(full, Fold(kept)) {
				return kept
			}
		}
	}
	return ""
}

func (p Policy) top(full string) string {
	rel, _ := pathname.In(p.Root, full)
	return filepath.ToSlash(rel)
}

// The reasons, behind a name.
const (
	DecidesLater = " is protected, because it decides what is run or obeyed later"
	KeptBecause  = " is protected: a protected file names it, or a link leads to it from where it is run later"
	freshName    = " is a new name with a dot at the top of the workspace: some tool may run or obey it later by itself"
)
