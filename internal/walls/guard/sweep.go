package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// sweep visits the whole tree after the walk. It judges the constructs that the walk does not understand, and the
// commands in them from an unknown directory. It asks about what it does not know by name, so a new kind of node is
// never allowed.
//
// Long because it lists all kinds of nodes.
func (w *walker) sweep(file *syntax.File) {
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
		case *syntax.File, *syntax.Stmt, *syntax.BinaryCmd, *syntax.Subshell, *syntax.Block, *syntax.IfClause,
			*syntax.TestClause,
			*syntax.BinaryTest, *syntax.UnaryTest, *syntax.ParenTest, *syntax.Word, *syntax.Lit, *syntax.DblQuoted,
			*syntax.Comment,
			*syntax.CaseItem, *syntax.WordIter, *syntax.CStyleLoop,
			*syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm:
			// Judged by their parent or by their children.
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				w.exported(n.Assigns)
			}
			if !w.visited[n] {
				w.call(n, w.loose)
			}
		case *syntax.Redirect:
			if !w.visited[n] {
				w.redirect(n, w.loose)
			}
		case *syntax.Assign:
			w.assign(n)
		case *syntax.SglQuoted:
			if n.Dollar {
				w.say(Ask, n, "$'…' is not read: write the characters themselves")
			}
		case *syntax.CmdSubst:
			if !w.visited[n] {
				w.say(Ask, n, "a command is substituted in a place that is not judged")
			}
		case *syntax.ProcSubst:
			w.say(Ask, n, "a command runs in parallel, as a file")
		case *syntax.ParamExp:
			w.parameter(n)
		case *syntax.ArithmExp:
			if !closedArithmetic(n.X) {
				w.say(Ask, n, "arithmetic with names or assignments evaluates what they hold")
			}
		case *syntax.ArithmCmd, *syntax.LetClause:
			w.say(Ask, n, "arithmetic evaluates what names hold, and assigns")
		case *syntax.DeclClause:
			w.say(Ask, n, n.Variant.Value+" changes or prints variables")
		case *syntax.FuncDecl:
			w.function(n)
		case *syntax.ForClause:
			w.loop(n)
		case *syntax.WhileClause:
			w.say(Ask, n, "a loop may not end")
		case *syntax.CaseClause:
			w.say(Ask, n, "case is not approved by itself")
		case *syntax.TimeClause:
			// After a pipe, time is a program to bash but a keyword to the parser.
			w.say(Ask, n, "time is a keyword or a program, by what stands before it")
		case *syntax.CoprocClause:
			w.say(Ask, n, "it goes on in the background")
		case *syntax.ExtGlob:
			w.say(Ask, n, "an extended pattern is read otherwise without extglob")
		case *syntax.ArrayExpr, *syntax.ArrayElem:
			w.say(Ask, n, "a list is assigned")
		default:
			w.say(Ask, n, "this construct is not known")
		}
	}
}

func (w *walker) parameter(n *syntax.ParamExp) {
	if harmless(n) {
		return
	}
	why := "the value of a variable is not known before it runs"
	switch {
	case n.Exp != nil && n.Exp.Op == syntax.OtherParamOps:
		why = "${…@…} can execute what the variable holds"
	case n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull):
		why = "${…=…} assigns"
		if n.Param != nil && w.mayNotSet(n.Param.Value) {
			w.say(Deny, n, n.Param.Value+decidesPrograms)
			return
		}
	case n.Excl:
		why = "${!…} takes the variable that another one names"
	}
	w.say(Ask, n, why)
}

// assign judges x=…, before a command, alone, or after declare and similar builtins.
func (w *walker) assign(n *syntax.Assign) {
	name := ""
	if n.Name != nil {
		name = n.Name.Value
	} else if n.Value != nil {
		name, _, _ = strings.Cut(w.readAlone(n.Value).text, "=")
	}
	if w.mayNotSet(name) && !(n.Naked && n.Value == nil) {
		w.say(Deny, n, name+decidesPrograms)
		return
	}
	w.say(Ask, n, "a variable is set")
	value := word{known: n.Value == nil && n.Array == nil}
	if n.Value != nil {
		value = w.readAlone(n.Value)
	}
	w.survey.pieces[len(w.survey.pieces)-1].sets(name, value, w.exports[n])
}

// exported notes that the program behind assignments sees their values.
func (w *walker) exported(all []*syntax.Assign) {
	if w.exports == nil {
		w.exports = map[*syntax.Assign]bool{}
	}
	for _, n := range all {
		w.exports[n] = true
	}
}

const decidesPrograms = " decides what other programs run: no command sets it"

// mayNotSet reports whether no command may set a variable. Behind whole walls any variable may be set: its effect stays
// there.
func (w *walker) mayNotSet(name string) bool { return redirectsPrograms(name) && !w.place.Ground.Walls }

// redirectsPrograms reports whether a variable makes other programs run, load or contact something.
func redirectsPrograms(name string) bool {
	upper := strings.ToUpper(strings.TrimSuffix(name, "+"))
	return does(ofVariable, upper, nil) || slices.ContainsFunc([]string{
		"LD_", "DYLD_", "GIT_", "BASH_FUNC_", "NPM_CONFIG_", "PIP_", "CARGO_", "DOCKER_", "ANTHROPIC_", "OPENAI_",
		"GEMINI_", "CLAUDE_", "CODEX_", "OMNIAGENT_",
	}, func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
}

// function judges a definition. A later command may use any name.
func (w *walker) function(n *syntax.FuncDecl) {
	name, calls := "", 0
	if n.Name != nil {
		name = n.Name.Value
	}
	for inner := range syntax.Preorder(n.Body) {
		switch c := inner.(type) {
		case *syntax.CallExpr:
			if len(c.Args) > 0 && c.Args[0].Lit() == name {
				calls++
			}
		}
	}
	if calls > 1 && bomb(name, n.Body) {
		p := piece{shape: structure, text: clip(slice(w.source, n))}
		p.bar("a function that starts itself without end stops the machine; no mode allows that")
		w.add(p)
		return
	}
	if calls > 1 || calls == 1 && strings.Contains(slice(w.source, n.Body), "&") {
		w.say(Deny, n, "a function that starts itself again and again")
		return
	}
	w.say(Ask, n, "a function may stand in front of any command")
	if name == "echo" || name == "printf" { // so that what they put on a pipe is not known
		w.survey.pieces[len(w.survey.pieces)-1].runsUnknown = true
	}
}

func (w *walker) loop(n *syntax.ForClause) {
	if iter, ok := n.Loop.(*syntax.WordIter); ok && iter.Name != nil && w.mayNotSet(iter.Name.Value) {
		w.say(Deny, n, iter.Name.Value+decidesPrograms)
		return
	}
	w.say(Ask, n, "a loop sets a variable whose value is not known before it runs")
	if iter, ok := n.Loop.(*syntax.WordIter); ok && iter.Name != nil {
		w.survey.pieces[len(w.survey.pieces)-1].sets(iter.Name.Value, word{}, false)
	}
}

// redirect judges a redirection.
func (w *walker) redirect(r *syntax.Redirect, at dirs) {
	w.visited[r] = true
	if r.N != nil && r.N.Value != "0" && r.N.Value != "1" && r.N.Value != "2" {
		w.say(Ask, r, "a redirection of another descriptor than 0, 1 and 2")
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil {
			w.read(r.Hdoc, at) // sweep judges its expansions
		}
		if end := slice(w.source, r.Word); w.inside > 0 || !plainDelimiter(end) || end[0] == '\\' {
			w.say(Ask, r, "a here-document in a substitution, or with an odd end")
		}
		return
	case syntax.WordHdoc:
		got := w.read(r.Word, at)
		if !got.known && !got.data {
			w.say(Ask, r, got.why)
		}
		p := piece{shape: structure, text: clip(slice(w.source, r))}
		if w.secret(&p, got, at); p.never { // xargs and loops open what they read
			w.add(p)
		}
		return
	case syntax.DplIn, syntax.DplOut:
		got := w.read(r.Word, at)
		if got.literal() && slices.Contains([]string{"-", "0", "1", "2"}, got.text) {
			return
		}
		if r.Op == syntax.DplIn || got.literal() && strings.Trim(got.text, "0123456789-") == "" {
			w.say(Ask, r, "the descriptor is not known")
			return
		}
	case syntax.RdrIn:
		w.input(r, at)
		return
	}
	w.output(r, at)
}

// plainDelimiter reports whether the delimiter of a here-document is one plain word: bare, in quotes or behind a
// backslash.
func plainDelimiter(s string) bool {
	if len(s) > 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	} else {
		s = strings.TrimPrefix(s, `\`)
	}
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == ""
}

func (w *walker) input(r *syntax.Redirect, at dirs) {
	got := w.read(r.Word, at)
	paths, why, word := w.reading(got, at)
	p := piece{
		shape: structure, decision: word, text: clip(slice(w.source, r)), why: why, reads: paths,
		never: word == Deny,
	}
	if devicePath(got.text) {
		p.connects()
	}
	w.argument(&p, got, at)
	w.add(p)
}

func devicePath(path string) bool {
	path = strings.ToLower(path)
	return strings.HasPrefix(path, "/dev/tcp/") || strings.HasPrefix(path, "/dev/udp/")
}

// output judges > and everything else that opens a file for writing.
func (w *walker) output(r *syntax.Redirect, at dirs) {
	got := w.read(r.Word, at)
	w.alter(got, at, Alteration{
		Whole: r.Op != syntax.AppOut && r.Op != syntax.AppAll && r.Op != syntax.RdrInOut, Edit: w.written(r),
	})
	p := piece{shape: redirect, text: clip(slice(w.source, r)), inner: w.depth > 0}
	switch {
	case devicePath(got.text):
		p.connects()
	case got.literal() && got.text == "/dev/null" && r.Op != syntax.RdrInOut:
	case !got.literal():
		p.shape, p.decision, p.why = structure, Ask, "the file that is written is not known before it runs"
		if strings.HasPrefix(slice(w.source, r.Word), "/dev/tcp") {
			p.connects()
		}
		w.target(&p, got, change{}, at)
		w.argument(&p, got, at)
		p.expand(w.place, w.survey.line)
		p.writes, p.reads, p.patterns = p.reads, nil, nil
	case at.lost:
		p.shape, p.decision, p.why = structure, Ask, "a file is written in a directory that is not known"
		w.secret(&p, got, at)
		w.target(&p, got, change{}, at)
		if v := w.set.Write(got.text, w.place); v.Decision > Allow && !p.never &&
			w.place.Agents.protectedAnywhere(got.text) {
			p.decision, p.why = Deny, v.Reasons[0].Text
			p.reaches(guarded, p.why)
		}
	default:
		for _, dir := range at.list {
			path := resolve(dir, got.text)
			p.writes = append(p.writes, path)
			w.changes(&p, path, false, change{})
			v := w.set.Write(path, w.place)
			switch {
			case v.Decision == Allow:
				p.say(Ask, "it writes a file")
			case w.place.credential(path, false):
				p.bar(v.Reasons[0].Text)
			case w.place.root(path) != "" || w.place.Agents.protectedAnywhere(path):
				p.decision, p.why = Deny, v.Reasons[0].Text
			default:
				// A file tool is denied there; a command is asked about, because a person may want to write to /tmp.
				p.shape = structure
				p.say(Ask, "it writes a file outside the workspace")
			}
		}
	}
	w.add(p)
}

// protectedAnywhere reports whether the name is protected in every directory.
func (a Agents) protectedAnywhere(path string) bool {
	return a.protectedName(resolve("/", path), "/") != ""
}
