package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// withoutPaths are the packages that reach files through a workspace.Dir and in no other way: what a model asks for
// goes through them, and a path can lead elsewhere between a look at it and its use.
func withoutPaths() []string { return []string{"native/tool", "sys/ignore", "native/engine"} }

// checkPaths finds what reaches a file by its path. Of package os only what looks at no file is left, so that a
// function that it gets one day is forbidden as well.
func (t *tree) checkPaths(p *pkg, f *file) {
	if f.test || !slices.Contains(withoutPaths(), p.name) {
		return
	}
	say := func(n ast.Node, what string) {
		t.problem(t.at(n), "%s uses %s: a file is reached beneath the root by its descriptor, through workspace.Dir",
			p.name, what)
	}
	names := map[string]string{} // what a package is called in this file
	for _, spec := range f.syntax.Imports {
		from, _ := strconv.Unquote(spec.Path.Value)
		switch from {
		case "syscall", "io/ioutil", "golang.org/x/sys/unix", "golang.org/x/sys/windows":
			say(spec, from)
		case "os", "path/filepath":
		default:
			continue
		}
		name := path.Base(from)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			say(spec, from)
		}
		names[name] = path.Base(from)
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && names[x.Name] != "" && reaches(names[x.Name], selector.Sel.Name) {
			say(selector, names[x.Name]+"."+selector.Sel.Name)
		}
		return true
	})
}

// reaches reports whether a name of a package reaches files by their paths.
func reaches(from, name string) bool {
	if from == "filepath" {
		return slices.Contains([]string{"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"}, name)
	}
	if from != "os" {
		return true
	}
	for _, beginning := range []string{"Err", "Is", "Mode", "O_"} {
		if strings.HasPrefix(name, beginning) {
			return false
		}
	}
	return !slices.Contains([]string{"DirEntry", "File", "FileInfo", "FileMode", "LinkError", "PathError", "SameFile"},
		name)
}
