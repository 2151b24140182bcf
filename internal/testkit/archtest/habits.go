package archtest

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// A file or a function beyond these needs a comment with a sentence that begins with reasonForLength: in a file
// anywhere before the first declaration, in a function in its doc comment.
const (
	maxFileLines     = 600
	maxFunctionLines = 75
	maxColumns       = 120 // where a tab is four
	reasonForLength  = "Long because"
)

// checkPackage looks at the name and the doc comment of a package.
func (t *tree) checkPackage(p *pkg) {
	vague := []string{"util", "utils", "common", "helper", "helpers", "types", "manager"}
	name := strings.TrimSuffix(p.files[0].syntax.Name.Name, "_test")
	if slices.Contains(vague, name) || slices.Contains(vague, path.Base(p.dir)) {
		t.problem(p.dir, "the name %s says nothing: call the package after what it provides", name)
	}
	onlyTests := !slices.ContainsFunc(p.files, func(f *file) bool { return !f.test })
	documented := slices.ContainsFunc(p.files, func(f *file) bool {
		return (!f.test || onlyTests) && f.syntax.Doc.Text() != ""
	})
	if !documented {
		t.problem(p.dir, "package %s has no doc comment that says what it promises and what it refuses", name)
	}
}

// checkFile looks at the length of a file and at its functions.
func (t *tree) checkFile(f *file) {
	if f.lines > maxFileLines && !ast.IsGenerated(f.syntax) && !fileHasReason(f.syntax) {
		t.problem(f.path, "%d lines are more than %d: divide it, or say %q before the first declaration", f.lines,
			maxFileLines, reasonForLength)
	}
	for _, line := range f.wide {
		t.problem(fmt.Sprintf("%s:%d", f.path, line), "the line has more than %d columns", maxColumns)
	}
	if f.test || ast.IsGenerated(f.syntax) {
		return
	}
	for _, decl := range f.syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" {
				t.problem(t.at(d), "func init runs at every start: call it where it is needed")
			}
			t.checkLength(d, d.Name.Name, d.Doc)
		case *ast.GenDecl:
			// A function kept in a variable is as long as any other.
			ast.Inspect(d, func(n ast.Node) bool {
				if literal, ok := n.(*ast.FuncLit); ok {
					t.checkLength(literal, "a function literal", d.Doc)
				}
				return true
			})
		}
	}
}

func (t *tree) checkLength(n ast.Node, name string, doc *ast.CommentGroup) {
	lines := t.fset.Position(n.End()).Line - t.fset.Position(n.Pos()).Line + 1
	if lines > maxFunctionLines && !hasReason(doc) {
		t.problem(t.at(n), "%s has %d lines, more than %d: divide it, or say %q in its doc comment", name, lines,
			maxFunctionLines, reasonForLength)
	}
}

func hasReason(group *ast.CommentGroup) bool {
	return group != nil && slices.ContainsFunc(group.List, func(c *ast.Comment) bool {
		return strings.Contains(c.Text, reasonForLength)
	})
}

// fileHasReason does not count the doc comment of the first declaration: its reason is its own.
func fileHasReason(f *ast.File) bool {
	end := f.FileEnd
	var doc *ast.CommentGroup
	for _, decl := range f.Decls {
		if d, ok := decl.(*ast.GenDecl); ok {
			if len(d.Specs) > 0 {
				if _, imports := d.Specs[0].(*ast.ImportSpec); imports {
					continue
				}
			}
			doc = d.Doc
		} else if d, ok := decl.(*ast.FuncDecl); ok {
			doc = d.Doc
		}
		end = decl.Pos()
		break
	}
	return slices.ContainsFunc(f.Comments, func(group *ast.CommentGroup) bool {
		return group != doc && group.Pos() < end && hasReason(group)
	})
}

// wideLines are the numbers of the lines that are too wide. A line with a raw string may be: what it quotes has its own
// lines. So may a line of a test with a long string, which is data.
func wideLines(text []byte, test bool) []int {
	var wide []int
	data := dataLines(text, test)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\n")
		if columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t"); columns > maxColumns && !data[n] {
			wide = append(wide, n)
		}
	}
	return wide
}

// dataLines are the lines on which strings stand that are data.
func dataLines(text []byte, test bool) map[int]bool {
	lines := map[int]bool{}
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return lines
		case kind == token.STRING && (literal[0] == '`' || test && len(literal) > 40):
			first := file.Line(pos)
			for n := range strings.Count(literal, "\n") + 1 {
				lines[first+n] = true
			}
		}
	}
}
