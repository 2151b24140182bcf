package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// mayStart lists what may start programs by itself, packages and all below them: the product starts its children with
// process, sandbox tries on a child of its own what the kernel can enforce, and the others only serve tests and
// measurements.
func mayStart() []string {
	return []string{"sys/process", "walls/sandbox", "testkit", "bench"}
}

// mayPlan lists the packages that start agents, a person's own command line, or stages of this program in directories
// of their choice. All others start programs by process.Programs.
func mayPlan() []string {
	return []string{
		"agents/cli", "agents/relay", "cli/runs", "host/shim", "repo/fork", "walls/policy", "walls/sandbox",
		"walls/shell", "work/rehearsal", "bench/around", "bench/sandbox",
	}
}

// checkCalls looks for what no file outside tests may do: change the directory of the process, which belongs to all
// goroutines; give a text to a shell, which would read more in it than was meant; start a program without the guard
// that ends it.
func (t *tree) checkCalls(p *pkg, f *file) {
	if f.test {
		return
	}
	for _, spec := range f.syntax.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); path == "os/exec" && !among(mayStart(), p.name) {
			t.problem(t.at(spec), "%s imports os/exec: start programs with process, which guards them", p.name)
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if (n.Sel.Name == "Chdir" || n.Sel.Name == "Fchdir") && p.name != "walls/sandbox" {
				// A stage of the sandbox is a process of its own.
				t.problem(t.at(n), "%s changes the directory of the whole process: join paths to the one that is meant",
					n.Sel.Name)
			}
		case *ast.CallExpr:
			if called(n, "process", "Start") && !slices.Contains(mayPlan(), p.name) {
				t.problem(t.at(n),
					"%s calls process.Start: a program that is not an agent is started by process.Programs", p.name)
			}
			if p.name != "llm/modelserver" { // its calls are those of a model to an agent's tools; it starts nothing
				t.checkShell(n, n.Args)
			}
		case *ast.CompositeLit:
			mayChoose := p.name == "cli/command" || p.name == "cli/runs"
			if isType(n, "process", "Spec") && hasKey(n, "Dir") && !mayChoose {
				t.problem(t.at(n), "%s chooses a directory for a program that is not an agent: it has one of its own",
					p.name)
			}
			if p.name != "llm/modelserver" {
				t.checkShell(n, n.Elts)
			}
		}
		return true
	})
}

// among reports whether a package is one of those, or lies below one.
func among(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return name == n || strings.HasPrefix(name, n+"/") })
}

// called reports whether a call is of a function of a package.
func called(n *ast.CallExpr, pkg, name string) bool { return isSelector(n.Fun, pkg, name) }

// isType reports whether a literal is of a type of a package.
func isType(n *ast.CompositeLit, pkg, name string) bool { return isSelector(n.Type, pkg, name) }

func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func hasKey(n *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := pair.Key.(*ast.Ident)
		return ok && key.Name == name
	})
}

// checkShell finds a shell beside the option that makes it read a text.
func (t *tree) checkShell(n ast.Node, list []ast.Expr) {
	shell := ""
	for _, e := range list {
		literal, ok := e.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		word, _ := strconv.Unquote(literal.Value)
		base := strings.TrimSuffix(strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:]), ".exe")
		switch {
		case slices.Contains([]string{"sh", "bash", "dash", "zsh", "cmd", "powershell", "pwsh"}, base):
			shell = word
		case shell != "" && slices.Contains([]string{"-c", "/c", "-lc", "-command"}, strings.ToLower(word)):
			t.problem(t.at(n), "%s %s reads a text as commands: give the program and its arguments as a list", shell,
				word)
			return
		}
	}
}
