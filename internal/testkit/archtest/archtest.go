// Package archtest keeps the house in order: it holds the source to the map in docs/architecture.md and to the habits
// that a compiler does not check.
//
// Check promises to report, on every platform's files alike: a folder without a line in the map and a line without a
// package; a copy of the map that differs; an import of a folder that stands higher, or of what serves only tests; a
// package without a doc comment or with a name that says nothing; func init; a variable of a package that can be
// changed (this one as the running platform builds it); a call that changes the directory of the process, a child that
// is a shell, and os/exec where children have no guard; a file reached by its path where only a workspace.Dir may; a
// long file or function without its reason; a module linked into a program but not listed in
// testdata/dependencies.txt, or listed and not linked; a direct requirement in go.mod without a reason.
// It refuses to judge a tree that does not parse; a package that does not build is a problem.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// tree is a module as it lies on the disk.
type tree struct {
	root     string
	module   string
	fset     *token.FileSet
	packages map[string]*pkg // by folder relative to root, with slashes; "." is the root
	folders  []folder        // from the highest to the lowest
	problems []string
}

// pkg is one folder with Go files, of all platforms.
type pkg struct {
	dir   string
	name  string // without internal/; the module's own name for the root
	files []*file
}

type file struct {
	path   string // relative to the root, with slashes
	syntax *ast.File
	lines  int
	wide   []int // numbers of the lines that are too wide
	test   bool
}

// Check returns all that is wrong in the module at root, one line a problem, sorted.
func Check(root string) ([]string, error) {
	t, err := load(root)
	if err != nil {
		return nil, err
	}
	for _, p := range t.packages {
		t.checkPackage(p)
		t.checkImports(p)
		t.checkTests(p)
		for _, f := range p.files {
			t.checkFile(f)
			t.checkCalls(p, f)
			t.checkPaths(p, f)
		}
	}
	t.checkFolders()
	if err := t.checkMaps(); err != nil {
		return nil, err
	}
	if err := t.checkVariables(); err != nil {
		return nil, err
	}
	if err := t.checkDependencies(); err != nil {
		return nil, err
	}
	if err := t.checkRequirements(); err != nil {
		return nil, err
	}
	sort.Strings(t.problems)
	return t.problems, nil
}

// load walks the tree itself rather than to ask go list: so it sees the files of all platforms, and the cache of go
// test knows which folders and files the result depends on.
func load(root string) (*tree, error) {
	t := &tree{root: root, fset: token.NewFileSet(), packages: map[string]*pkg{}}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(mod), "\n") {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			t.module = strings.TrimSpace(name)
		}
	}
	if t.module == "" {
		return nil, fmt.Errorf("%s/go.mod names no module", root)
	}
	if t.folders, err = readFolders(root); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && skipped(name, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(d.Name(), "_") || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		return t.add(name)
	})
	return t, err
}

// skipped reports whether the go command would not look into a folder either.
func skipped(name, base string) bool {
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(name, "go.mod")) // a module of its own
	return err == nil
}

func (t *tree) add(name string) error {
	rel, err := filepath.Rel(t.root, name)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(rel)
	p := t.packages[dir]
	if p == nil {
		p = &pkg{dir: dir, name: t.nameOf(dir)}
		t.packages[dir] = p
	}
	p.files = append(p.files, &file{
		path: rel, syntax: syntax, test: strings.HasSuffix(rel, "_test.go"),
		lines: strings.Count(strings.TrimSuffix(string(src), "\n"), "\n") + 1,
		wide:  wideLines(src, strings.HasSuffix(name, "_test.go")),
	})
	return nil
}

// nameOf is what a package is called in a problem.
func (t *tree) nameOf(dir string) string {
	if dir == "." {
		return t.module
	}
	return strings.TrimPrefix(dir, "internal/")
}

func (t *tree) problem(place, format string, args ...any) {
	t.problems = append(t.problems, place+": "+fmt.Sprintf(format, args...))
}

// at is the place of a node, as an editor understands it.
func (t *tree) at(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}
