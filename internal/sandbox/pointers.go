package sandbox

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Git's configuration names further files from which git runs something: a directory of hooks, included configuration,
// programs of filters. A repository in the workspace has a configuration of its own.

const (
	mostIncludes     = 32      // files of configuration that are read for one repository
	longestConfig    = 1 << 20 // bytes of such a file
	mostDirectories  = 20000   // that are looked at for repositories
	deepRepositories = 8       // levels of directories
	fewRepositories  = 12      // in which all names are protected
)

// Repositories returns the work trees beneath root that have a git directory of their own, without root itself. whole
// is false if there are more directories than it looks at. Packages that npm installed are passed over.
func Repositories(root string) (found []string, whole bool) {
	whole = true
	seen := 0
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case path == root || err != nil && entry == nil:
			return nil
		case entry.Name() == ".git" && entry.Type()&fs.ModeSymlink == 0:
			if dir := filepath.Dir(path); dir != root {
				found = append(found, dir)
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir():
		case entry.Name() == "node_modules":
			return fs.SkipDir
		case seen >= mostDirectories || strings.Count(path[len(root):], string(filepath.Separator)) > deepRepositories:
			whole = false
			return fs.SkipDir
		default:
			seen++
		}
		return nil
	})
	return found, whole
}

// GitPointers returns the paths beneath root that git's configuration there, or one of the user's, names as hooks,
// configuration or programs.
func GitPointers(root string, user []string) (paths []string) {
	p := Policy{Root: root, GitConfig: user}
	all := p.pointers(root, "")
	if up := enclosing(root); up != "" {
		all = append(all, p.pointers(root, up)...)
	}
	for _, k := range all {
		paths = append(paths, k.path())
	}
	return paths
}

// many reports whether there are too many repositories to look for each protected name in each of them whenever a
// command begins. What does not exist there is not protected then.
func (p Policy) many() bool { return len(p.Repositories) > fewRepositories }

// nested returns the names that commands cannot change in a repository beneath a workspace: what git runs there, and
// the protected names.
func (p Policy) nested(root, tree string) (all []kept) {
	rel, err := filepath.Rel(root, tree)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return nil
	}
	if info, err := os.Lstat(filepath.Join(tree, ".git")); err == nil && info.Mode().IsRegular() {
		all = append(all, kept{base: root, name: filepath.Join(rel, ".git")})
	}
	for _, dir := range p.repository(tree) {
		if info, err := os.Lstat(filepath.Join(tree, dir)); err == nil && info.IsDir() {
			all = append(all, gitNames(root, filepath.Join(rel, dir))...)
		}
	}
	for _, name := range p.Protected {
		if strings.HasPrefix(name, ".git/") && name != ".git/info/attributes" {
			continue // gitNames knows better what git itself has to write
		}
		name = filepath.Join(rel, filepath.Clean(name))
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil || !p.many() {
			all = append(all, kept{base: root, name: name})
		}
	}
	return append(append(all, bareName(root, rel)...), p.pointers(root, rel)...)
}

// pointers returns what the configuration of a work tree names, as far as commands could write it.
func (p Policy) pointers(root, rel string) (all []kept) {
	tree := filepath.Join(root, rel)
	files := slices.Clone(p.GitConfig)
	for _, dir := range p.repository(tree) {
		files = append(files, filepath.Join(tree, dir, "config"), filepath.Join(tree, dir, "config.worktree"))
	}
	add := func(path string, lock bool) {
		for _, base := range append([]string{root}, p.Write...) {
			if name, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(name) {
				all = append(all, kept{base: base, name: name, lock: lock})
				return
			}
		}
	}
	for i := 0; i < len(files) && i < mostIncludes; i++ {
		for _, s := range gitSettings(files[i]) {
			switch {
			case s.key == "core.hookspath":
				add(homely(s.value, tree), false)
			case s.key == "core.attributesfile":
				add(homely(s.value, tree), false)
			case s.key == "include.path" || strings.HasPrefix(s.key, "includeif.") && strings.HasSuffix(s.key, ".path"):
				path := homely(s.value, filepath.Dir(files[i]))
				add(path, true)
				files = append(files, path)
			case runs(s.key):
				for _, word := range words(s.value) {
					path := homely(word, tree)
					if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
						add(path, false)
					}
				}
			}
		}
	}
	return all
}

// homely makes a path of a configuration absolute.
func homely(path, base string) string {
	if rest, found := strings.CutPrefix(path, "~/"); found {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return absolute(path, base)
}

// runs reports whether the value of a key is a command.
func runs(key string) bool {
	if strings.HasPrefix(key, "alias.") || strings.HasPrefix(key, "pager.") {
		return true
	}
	return slices.Contains([]string{
		"alternaterefscommand", "askpass", "clean", "cmd", "command", "difffilter", "driver", "editor", "external",
		"fsmonitor", "gitproxy", "helper", "packobjectshook", "pager", "process", "program", "receivepack", "smudge",
		"sshcommand", "textconv", "tocmd", "cccmd", "headercmd", "update", "uploadpack",
	}, key[strings.LastIndexByte(key, '.')+1:])
}

// words returns the words of a command that may be files.
func words(command string) []string {
	return strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\n'\"!;|&()<>=`$", r) })
}

// setting is a line of a configuration; the key is in lower case.
type setting struct{ key, value string }

// gitSettings returns the settings of a file. What git would not accept is read as well as possible.
func gitSettings(path string) (all []setting) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a command may have put a pipe there
	if err != nil {
		return nil
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(file, longestConfig))
	section := ""
	for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\\\n", "")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, rest, found := strings.Cut(line[1:], "]")
			for found && strings.Count(name, `"`)%2 == 1 && strings.Contains(rest, "]") { // the name has a bracket
				more, after, _ := strings.Cut(rest, "]")
				name, rest = name+"]"+more, after
			}
			name = strings.NewReplacer(`"`, "", " ", ".", "\t", ".").Replace(strings.TrimSpace(name))
			section, line = strings.ToLower(name), strings.TrimSpace(rest)
		}
		key, value, found := strings.Cut(line, "=")
		if key = strings.ToLower(strings.TrimSpace(key)); !found || key == "" || key[0] == '#' || key[0] == ';' {
			continue
		}
		all = append(all, setting{section + "." + key, gitValue(strings.TrimSpace(value))})
	}
	return all
}

// gitValue returns a value without quotes, escapes and the comment behind it.
func gitValue(s string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(strings.NewReplacer("n", "\n", "t", "\t", "b", "\b").Replace(s[i : i+1])[0])
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}
