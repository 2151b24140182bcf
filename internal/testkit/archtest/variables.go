package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	Export     string // file with the types of the compiled package
	GoFiles    []string
	Module     *struct{ Main bool }
	Error      *struct{ Err string }
}

// checkVariables looks for package variables that can be changed. What an initialiser returns is known only to a type
// checker; it takes the types of imported packages from the compiler's export data.
func (t *tree) checkVariables() error {
	out, err := t.goList(nil, "-e", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module,Error", "./...")
	if err != nil {
		return err
	}
	exports := map[string]string{}
	var own []listed
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		exports[l.ImportPath] = l.Export
		if l.Module == nil || !l.Module.Main {
			continue
		}
		if l.Error != nil {
			t.problem(l.ImportPath, "does not build: %s", strings.ReplaceAll(strings.TrimSpace(l.Error.Err), "\n",
				"; "))
			continue
		}
		own = append(own, l)
	}
	imports := importer.ForCompiler(t.fset, "gc", func(name string) (io.ReadCloser, error) {
		if exports[name] == "" {
			return nil, fmt.Errorf("no export data of %s", name)
		}
		return os.Open(exports[name])
	})
	for _, l := range own {
		t.checkPackageVariables(l, imports)
	}
	return nil
}

func (t *tree) checkPackageVariables(l listed, imports types.Importer) {
	dir := "."
	if l.ImportPath != t.module {
		dir = strings.TrimPrefix(l.ImportPath, t.module+"/")
	}
	p := t.packages[dir]
	if p == nil || len(l.GoFiles) == 0 {
		return
	}
	var syntax []*ast.File
	for _, f := range p.files {
		if slices.Contains(l.GoFiles, path.Base(f.path)) {
			syntax = append(syntax, f.syntax)
		}
	}
	config := types.Config{Importer: imports}
	checked, err := config.Check(l.ImportPath, t.fset, syntax, nil)
	if err != nil {
		t.problem(l.ImportPath, "does not build: %v", err)
		return
	}
	for _, name := range checked.Scope().Names() {
		v, ok := checked.Scope().Lookup(name).(*types.Var)
		if !ok {
			continue
		}
		if kind := mutable(v.Type()); kind != "" {
			place := t.fset.Position(v.Pos())
			t.problem(fmt.Sprintf("%s:%d", place.Filename, place.Line),
				"the variable %s is %s, which anybody can change: make it a constant, an array, a function or a field",
				name, kind)
		}
	}
}

// mutable names the kind of a type whose values change in place, "" for the others.
func mutable(typ types.Type) string {
	if named, ok := types.Unalias(typ).(*types.Named); ok && named.Obj().Pkg() != nil {
		if from := named.Obj().Pkg().Path(); from == "sync" || from == "sync/atomic" {
			if _, isStruct := named.Underlying().(*types.Struct); isStruct {
				return "a " + from + "." + named.Obj().Name()
			}
		}
	}
	switch u := typ.Underlying().(type) {
	case *types.Map:
		return "a map"
	case *types.Slice:
		return "a slice"
	case *types.Pointer:
		return "a pointer"
	case *types.Chan:
		return "a channel"
	case *types.Array:
		return mutable(u.Elem())
	}
	return ""
}
