package guard

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// Bash expands a subscript whenever it evaluates a name or arithmetic, also one that was quoted or is in a variable:
//
//	test -v 'a[$(x)]'    let 'a[$(x)]=1'    declare 'a[$(x)]=1'    [[ -v 'a[$(x)]' ]]    y='a[$(x)]'; echo $((y))
//
// So each of these runs a text that may not be known. The texts that are in the line are judged as well.

// evaluates reports whether bash may run something in an argument of a builtin.
func evaluates(argv []word) bool {
	name, args := argv[0].text, argv[1:]
	switch name {
	case "test", "[":
		return testEvaluates(args)
	case "compgen":
		return short(texts(args), "W") &&
			slices.ContainsFunc(args, func(a word) bool { return !a.known || strings.ContainsAny(a.text, "$`") })
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
	case "read", "mapfile", "readarray":
		for i := len(args) - 2; i >= 0; i-- { // values of flags, such as a prompt, are no names
			flag := args[i].text
			if strings.HasPrefix(flag, "-") && strings.ContainsAny(flag[len(flag)-1:], "dinNptuOs") {
				args = slices.Concat(args[:i], args[i+2:])
			}
		}
	default:
		if name != "let" && !does(ofSetting, name, nil) {
			return false
		}
	}
	return slices.ContainsFunc(args, word.evaluated)
}

// testEvaluates reports whether test may look up a name, as -v and -R do.
func testEvaluates(args []word) bool {
	for i, a := range args {
		operator := a.text == "-v" || a.text == "-R" ||
			!a.known && len(args)-i == 2 && (i == 0 || args[i-1].text == "!")
		split := !a.known && !strings.HasPrefix(a.written, `"`) // it may become several words
		if split && a.evaluated() || operator && i+1 < len(args) && args[i+1].evaluated() {
			return true
		}
	}
	return false
}

// evaluated reports whether bash may run something in a word that it takes for a name.
func (w word) evaluated() bool {
	if w.known {
		return subscripted(w.text)
	}
	return w.may == nil || slices.ContainsFunc(w.may, func(text string) bool {
		return strings.Contains(text, anything) || subscripted(text)
	})
}

// subscripted reports whether a text has a subscript other than a number, @ and *, or a list with an expansion.
func subscripted(text string) bool {
	if !strings.ContainsAny(text, "[(") {
		return false
	}
	text = regexp.MustCompile(`\[([0-9]+|[@*])\]`).ReplaceAllString(text, "")
	return regexp.MustCompile(`[A-Za-z0-9_(\s]\[`).MatchString(text) ||
		strings.Contains(text, "(") && strings.ContainsAny(text, "$`")
}

// evaluations judges the constructs of a line in which bash evaluates names and arithmetic and, where one of them or a
// builtin may run a text, the texts in quotes.
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
	switch n := n.(type) {
	case *syntax.ArithmExp:
		return w.arithmetic(n.X)
	case *syntax.ArithmCmd:
		return w.arithmetic(n.X)
	case *syntax.LetClause:
		return slices.ContainsFunc(n.Exprs, w.arithmetic)
	case *syntax.CStyleLoop:
		return w.arithmetic(n.Init) || w.arithmetic(n.Cond) || w.arithmetic(n.Post)
	case *syntax.ArrayElem:
		return w.arithmetic(n.Index)
	case *syntax.Assign:
		return w.arithmetic(n.Index)
	case *syntax.ParamExp:
		return w.arithmetic(n.Index) ||
			n.Slice != nil && (w.arithmetic(n.Slice.Offset) || w.arithmetic(n.Slice.Length)) ||
			n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word.Lit() == "P" ||
			n.Excl && n.Names == 0 && n.Index == nil && w.sweptWord(plain(n)).evaluated()
	case *syntax.UnaryTest:
		one, ok := n.X.(*syntax.Word)
		return (n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar) && ok && w.sweptWord(one).evaluated()
	case *syntax.BinaryTest:
		x, _ := n.X.(*syntax.Word)
		y, _ := n.Y.(*syntax.Word)
		return n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr && (w.expression(x, nil) || w.expression(y, nil))
	case *syntax.DeclClause:
		return w.declares(n)
	case *syntax.Redirect:
		return n.N != nil && strings.Contains(n.N.Value, "[")
	}
	return false
}

// sweptWord reads a word whose commands are judged elsewhere.
func (w *walker) sweptWord(n *syntax.Word) word {
	got := w.readAlone(n)
	if !got.known {
		got.may = w.values(n.Parts, w.loose, 0)
	}
	return got
}

// plain returns the word ${x} for ${!x}.
func plain(p *syntax.ParamExp) *syntax.Word {
	copied := *p
	copied.Excl = false
	return &syntax.Word{Parts: []syntax.WordPart{&copied}}
}

// declares reports whether declare and its like may run a text: a name that is quoted or not known, a reference to
// another name, or an integer whose values are not known.
func (w *walker) declares(n *syntax.DeclClause) bool {
	integers := false
	for _, a := range n.Args {
		switch {
		case a.Name != nil:
			if integers && w.name(a.Name.Value, nil) {
				return true
			}
		case a.Value != nil:
			got := w.sweptWord(a.Value)
			flag := got.known && strings.HasPrefix(got.text, "-")
			integers = integers || flag && strings.Contains(got.text, "i")
			if flag && strings.Contains(got.text, "n") || got.evaluated() {
				return true
			}
		}
	}
	return false
}

// arithmetic reports whether an expression may run a text: one of its names may hold something other than a number.
func (w *walker) arithmetic(x syntax.ArithmExpr) bool {
	found := false
	if x != nil {
		syntax.Walk(x, func(n syntax.Node) bool {
			one, ok := n.(*syntax.Word)
			found = found || ok && w.expression(one, nil)
			return !ok && !found
		})
	}
	return found
}

// expression reports that for a word. seen are the names that are looked at already.
func (w *walker) expression(n *syntax.Word, seen []string) bool {
	return n != nil && w.expressionParts(n.Parts, seen)
}

func (w *walker) expressionParts(parts []syntax.WordPart, seen []string) bool {
	return slices.ContainsFunc(parts, func(part syntax.WordPart) bool {
		text := ""
		switch part := part.(type) {
		case *syntax.Lit:
			text = part.Value
		case *syntax.SglQuoted:
			text = part.Value
		case *syntax.DblQuoted:
			return w.expressionParts(part.Parts, seen)
		case *syntax.ArithmExp:
			return false // a number
		case *syntax.CmdSubst:
			return strings.ContainsAny(slice(w.source, part), `[\`) || // date '+a[…]'
				slices.Contains(w.printed(part, w.loose), anything)
		case *syntax.ParamExp:
			switch {
			case part.Length || part.Excl || part.Param == nil || harmless(part):
				return part.Param == nil
			case part.Repl != nil && w.expression(part.Repl.With, seen),
				part.Exp != nil && w.expression(part.Exp.Word, seen):
				return true
			}
			return w.name(part.Param.Value, seen)
		default:
			return true
		}
		names := strings.FieldsFunc(text, func(c rune) bool {
			return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
		})
		return strings.ContainsAny(text, "$`") ||
			slices.ContainsFunc(names, func(name string) bool { return name[0] > '9' && w.name(name, seen) })
	})
}

// name reports whether a variable may hold an expression that runs a text. What a line does not set comes from the
// environment or, in the text of another command, from that one.
func (w *walker) name(name string, seen []string) bool {
	words, set := w.sets[name]
	switch {
	case slices.Contains(seen, name):
		return false
	case !set:
		return w.depth > 0 || strings.ContainsAny(name, "0123456789@*") && strings.Trim(name, "0123456789@*") == ""
	}
	return slices.ContainsFunc(words, func(one *syntax.Word) bool {
		return one == nil || w.expression(one, append(slices.Clone(seen), name))
	})
}
