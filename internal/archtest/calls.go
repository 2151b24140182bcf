package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// mayStart are the rooms that may start programs by themselves: process is the one that the product starts its children
// with, sandbox tries on a child of its own what the kernel can enforce, and the others only serve tests and
// measurements.
func mayStart() []string {
	return []string{"process", "sandbox", "archtest", "emulator", "measure", "bench", "agenttest", "hermetic"}
}

// checkCalls looks for what no file outside tests may do: change the directory of the process, which belongs to all
// goroutines; give a text to a shell, which would read more in it than was meant; start a program without the guard
// that ends it.
func (t *tree) checkCalls(p *pkg, f *file) {
	if f.test {
		return
	}
	room, _, _ := strings.Cut(p.name, "/")
	for _, spec := range f.syntax.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); path == "os/exec" && !slices.Contains(mayStart(), room) {
			t.problem(t.at(spec), "%s imports os/exec: start programs with process, which guards them", p.name)
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if (n.Sel.Name == "Chdir" || n.Sel.Name == "Fchdir") && p.name != "sandbox" { // a stage is a process alone
				t.problem(t.at(n), "%s changes the directory of the whole process: join paths to the one that is meant",
					n.Sel.Name)
			}
		case *ast.CallExpr:
			if room != "modelserver" { // its calls are those of a model to an agent's tools; it starts nothing
				t.checkShell(n, n.Args)
			}
		case *ast.CompositeLit:
			if room != "modelserver" {
				t.checkShell(n, n.Elts)
			}
		}
		return true
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
