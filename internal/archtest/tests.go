package archtest

import (
	"go/ast"
	"strconv"
)

// checkSamples looks for names in a call of hermetic.Sample that no test of the package has: a test that was renamed
// would silently leave the sample.
func (t *tree) checkSamples(p *pkg) {
	tests := map[string]bool{}
	for _, f := range p.files {
		for _, d := range f.syntax.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && f.test {
				tests[d.Name.Name] = true
			}
		}
	}
	for _, f := range p.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name, ok := call.Fun.(*ast.SelectorExpr); !ok || name.Sel.Name != "Sample" || len(call.Args) < 2 {
				return true
			}
			for _, arg := range call.Args[1:] {
				if literal, ok := arg.(*ast.BasicLit); ok {
					if name, err := strconv.Unquote(literal.Value); err == nil && !tests[name] {
						t.problem(t.at(literal), "there is no test %s in this package", name)
					}
				}
			}
			return true
		})
	}
}
