package guard

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash expands a subscript whenever it evaluates a name or an arithmetic expression, even if it was quoted or comes
// from a variable:
//
//	test -v 'a[$(x)]'    let 'a[$(x)]=1'    declare 'a[$(x)]=1'    [[ -v 'a[$(x)]' ]]    y='a[$(x)]'; echo $((y))
//
// So each of these may run an unknown text, unless only numbers and plain names are evaluated. Texts in quotes in the
// line are judged as well.

// evaluates reports whether bash may run something in an argument of a builtin.
func evaluates(argv []word) bool {
	name, args := argv[0].text, argv[1:]
	switch name {
	case "test", "[":
		return testEvaluates(args)
	case "printf":
		if len(args) > 0 && args[0].text == "--" {
			args = args[1:]
		}
		if len(args) > 0 && args[0].literal() && !strings.HasPrefix(args[0].text, "-v") &&
			!regexp.MustCompile(`%[-+ #0-9.*]*n`).MatchString(args[0].text) { // %n assigns
			return false
		}
	case "wait":
		if !short(texts(args), "p") {
			return false
		}
	default:
		if name != "let" && name != "compgen" && !does(ofSetting, name, nil) {
			return false
		}
	}
	return slices.ContainsFunc(args, word.subscripted)
}

// testEvaluates reports whether test may look up a name, as -v and -R do.
func testEvaluates(args []word) bool {
	for i, a := range args {
		operator := a.text == "-v" || a.text == "-R" ||
			!a.known && len(args)-i == 2 && (i == 0 || args[i-1].text == "!")
		split := !a.known && !strings.HasPrefix(a.written, `"`) // it may become several words
		if split && a.subscripted() || operator && i+1 < len(args) && args[i+1].subscripted() {
			return true
		}
	}
	return false
}

// subscripted reports whether a word that bash takes for a name may have a subscript, or be an array.
func (w word) subscripted() bool {
	if w.known {
		return strings.ContainsAny(w.text, "[(")
	}
	return w.may == nil || slices.ContainsFunc(w.may, func(text string) bool {
		return strings.Contains(text, anything) || strings.ContainsAny(text, "[(")
	})
}

// evaluations asks about the constructs of a line in which bash evaluates names and arithmetic. If one of them or a
// builtin may run a text, it also judges the texts in quotes.
func (w *walker) evaluations(file *syntax.File) {
	for n := range syntax.Preorder(file) {
		if w.nodeEvaluates(n) {
			w.evaluates = true
			w.add(piece{
				shape: structure, decision: Ask, text: clip(slice(w.source, n)),
				why: "bash runs what is in a subscript when it evaluates a name", runsUnknown: true,
			})
		}
	}
	if !w.evaluates || w.depth >= maxInner {
		return
	}
	for n := range syntax.Preorder(file) {
		one, ok := n.(*syntax.Word)
		if !ok {
			continue
		}
		text := w.readAlone(one).text
		if !strings.Contains(text, "$(") && !strings.Contains(text, "`") {
			continue
		}
		document, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Document(strings.NewReader(text))
		if err != nil || document == nil {
			continue
		}
		for n := range syntax.Preorder(document) {
			if c, ok := n.(*syntax.CmdSubst); ok && len(c.Stmts) > 0 {
				inner := walker{set: w.set, place: w.place, survey: w.survey, depth: w.depth + 1}
				inner.text(text[c.Stmts[0].Pos().Offset():c.Stmts[len(c.Stmts)-1].End().Offset()], w.loose)
			}
		}
	}
}

// nodeEvaluates reports whether bash may run a text in a node.
func (w *walker) nodeEvaluates(n syntax.Node) bool {
	named := func(x syntax.Node) bool {
		one, ok := x.(*syntax.Word)
		return ok && !w.sweptWord(one).subscripted()
	}
	switch n := n.(type) {
	case *syntax.ArithmExp:
		return !closedArithmetic(n.X)
	case *syntax.ArithmCmd:
		return !closedArithmetic(n.X)
	case *syntax.LetClause, *syntax.CStyleLoop:
		return true
	case *syntax.ArrayElem:
		return n.Index != nil && !closedArithmetic(n.Index)
	case *syntax.Assign:
		return n.Index != nil && !closedArithmetic(n.Index)
	case *syntax.ParamExp:
		return expansionEvaluates(n)
	case *syntax.UnaryTest:
		return (n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar) && !named(n.X)
	case *syntax.BinaryTest:
		return n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr && !(number(n.X) && number(n.Y))
	case *syntax.DeclClause:
		return slices.ContainsFunc(n.Args, func(a *syntax.Assign) bool {
			if a.Name != nil || a.Value == nil {
				return false
			}
			got := w.sweptWord(a.Value) // a flag, or a name that is quoted or not known
			return got.subscripted() || strings.HasPrefix(got.text, "-") && strings.ContainsAny(got.text, "in")
		})
	case *syntax.Redirect:
		return n.N != nil && strings.Contains(n.N.Value, "[")
	}
	return false
}

// expansionEvaluates is nodeEvaluates for ${…}.
func expansionEvaluates(n *syntax.ParamExp) bool {
	closed := func(x syntax.ArithmExpr) bool { return x == nil || closedArithmetic(x) }
	if one, ok := n.Index.(*syntax.Word); !ok || one.Lit() != "@" && one.Lit() != "*" {
		if !closed(n.Index) {
			return true
		}
	}
	return n.Slice != nil && !(closed(n.Slice.Offset) && closed(n.Slice.Length)) ||
		n.Exp != nil && n.Exp.Op == syntax.OtherParamOps || n.Excl && n.Names == 0 && n.Index == nil
}

// number reports whether a word in [[ ]] is a number.
func number(x syntax.TestExpr) bool {
	one, ok := x.(*syntax.Word)
	if !ok || len(one.Parts) != 1 {
		return false
	}
	part, ok := one.Parts[0].(*syntax.ParamExp)
	return closedArithmetic(one) || ok && harmless(part) && strings.Contains("?#$!", part.Param.Value)
}

// sweptWord reads a word without judging the commands in it, which are judged elsewhere.
func (w *walker) sweptWord(n *syntax.Word) word {
	got := w.readAlone(n)
	if !got.known {
		got.may = w.values(n.Parts, w.loose, 0)
	}
	return got
}
