package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// CheckSource looks for each named test in the source below root, and for each field that a row names in the
// declaration, contract.Command.
func CheckSource(rows []Row, root string) []string {
	var wrong []string
	source := sources{root: root, tests: map[string]map[string]testFunc{}}
	types := structs(filepath.Join(root, "internal", "cli", "contract"))
	for _, row := range rows {
		for _, test := range row.Proof {
			if why := source.missing(test); why != "" {
				wrong = append(wrong, fmt.Sprintf("line %d: %s: %s", row.Line, row.ID, why))
			}
		}
		for _, path := range row.Fields() {
			if !hasField(types, "Command", strings.Split(path, ".")) {
				wrong = append(wrong, fmt.Sprintf("line %d: %s: contract.Command has no field %s", row.Line, row.ID,
					path))
			}
		}
	}
	return wrong
}

// sources reads each package of tests once.
type sources struct {
	root  string
	tests map[string]map[string]testFunc
}

// testFunc is what can be told of a test without running it.
type testFunc struct {
	literals map[string]bool // every string of its file, as a subtest's name
	open     bool            // some names of subtests are not in the file
}

func (s *sources) missing(t Test) string {
	funcs, ok := s.tests[t.Package]
	if !ok {
		funcs = testFuncs(filepath.Join(s.root, filepath.FromSlash(t.Package)))
		s.tests[t.Package] = funcs
	}
	fn, ok := funcs[t.Func]
	if !ok {
		return fmt.Sprintf("%s does not exist", Test{Package: t.Package, Func: t.Func})
	}
	if t.Sub == "" || fn.open {
		return "" // what ran will tell
	}
	for _, name := range strings.Split(t.Sub, "/") {
		if !fn.literals[name] {
			return fmt.Sprintf("%s: its file has no subtest %q", t, name)
		}
	}
	return ""
}

// testFuncs are the tests of one directory. A file that does not parse has none: the compiler will say more.
func testFuncs(dir string) map[string]testFunc {
	found := map[string]testFunc{}
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		literals, tables := namesIn(tree), tablesOf(tree)
		for _, decl := range tree.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Body != nil {
				found[fn.Name.Name] = testFunc{literals, !settled(fn.Body, tables)}
			}
		}
	}
	return found
}

// namesIn are all string literals of a file, written as the testing package writes the name of a subtest.
func namesIn(tree *ast.File) map[string]bool {
	all := map[string]bool{}
	ast.Inspect(tree, func(n ast.Node) bool {
		if text, ok := literal(n); ok {
			all[strings.ReplaceAll(text, " ", "_")] = true
		}
		return true
	})
	return all
}

func literal(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// tablesOf are the names in a file that stand for a composite literal: the tables that tests range over.
func tablesOf(tree *ast.File) map[string]bool {
	tables := map[string]bool{}
	note := func(name, value ast.Expr) {
		id, ok := name.(*ast.Ident)
		if _, lit := value.(*ast.CompositeLit); ok && lit {
			tables[id.Name] = true
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if len(n.Lhs) == len(n.Rhs) {
				for i := range n.Lhs {
					note(n.Lhs[i], n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i := range n.Values {
				note(n.Names[i], n.Values[i])
			}
		}
		return true
	})
	return tables
}

// settled tells whether every subtest that the body starts takes its name from a literal or from a table of literals. A
// body that starts none leaves it to a function that it calls, whose names cannot be told.
func settled(body ast.Node, tables map[string]bool) bool {
	var names []ast.Expr
	ranged := map[string]bool{} // variables of loops over a table
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			_, table := n.X.(*ast.CompositeLit)
			if id, ok := n.X.(*ast.Ident); ok {
				table = tables[id.Name]
			}
			for _, v := range []ast.Expr{n.Key, n.Value} {
				if id, ok := v.(*ast.Ident); ok && table {
					ranged[id.Name] = true
				}
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Run" && len(n.Args) == 2 {
				names = append(names, n.Args[0])
			}
		}
		return true
	})
	return len(names) > 0 && !slices.ContainsFunc(names, func(e ast.Expr) bool {
		if _, ok := literal(e); ok {
			return false
		}
		if sel, ok := e.(*ast.SelectorExpr); ok {
			e = sel.X
		}
		id, ok := e.(*ast.Ident)
		return !ok || !ranged[id.Name]
	})
}

// structs are the struct types of the package in dir.
func structs(dir string) map[string]*ast.StructType {
	types := map[string]*ast.StructType{}
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					types[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return types
}

// hasField follows the path from the named type through pointers, slices and embedded structs.
func hasField(types map[string]*ast.StructType, name string, path []string) bool {
	s := types[name]
	if s == nil {
		return false
	}
	for _, field := range s.Fields.List {
		next := element(field.Type)
		if len(field.Names) == 0 && hasField(types, next, path) {
			return true
		}
		if !slices.ContainsFunc(field.Names, func(id *ast.Ident) bool { return id.Name == path[0] }) {
			continue
		}
		return len(path) == 1 || hasField(types, next, path[1:])
	}
	return false
}

func element(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return element(e.X)
	case *ast.ArrayType:
		return element(e.Elt)
	case *ast.MapType:
		return element(e.Value)
	}
	return ""
}
