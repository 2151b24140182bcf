package archtest

import (
	"go/ast"
	"strconv"
	"strings"
)

// checkTests looks for calls of hermetic that would silently do nothing: Sample with the name of a test that the
// package does not have, and Long or Times in a function that is not a test, where scripts/test does not look for them.
func (t *tree) checkTests(p *pkg) {
	tests := map[string]bool{}
	for _, f := range p.files {
		for _, d := range f.syntax.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && f.test {
				tests[d.Name.Name] = true
			}
		}
	}
	for _, f := range p.files {
		for _, d := range f.syntax.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok || !f.test {
				continue
			}
			ast.Inspect(function, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					t.checkHermetic(call, function.Name.Name, tests)
				}
				return true
			})
		}
	}
}

func (t *tree) checkHermetic(call *ast.CallExpr, function string, tests map[string]bool) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if x, ok := selector.X.(*ast.Ident); !ok || x.Name != "hermetic" {
		return
	}
	switch selector.Sel.Name {
	case "Long", "Times":
		if !strings.HasPrefix(function, "Test") {
			t.problem(t.at(call), "%s calls hermetic.%s: call it in the test function, where scripts/test finds it",
				function, selector.Sel.Name)
		}
	case "Sample":
		for _, arg := range call.Args[1:] {
			if literal, ok := arg.(*ast.BasicLit); ok {
				if name, err := strconv.Unquote(literal.Value); err == nil && !tests[name] {
					t.problem(t.at(literal), "there is no test %s in this package", name)
				}
			}
		}
	}
}
