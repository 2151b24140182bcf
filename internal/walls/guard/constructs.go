package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// notPlain is the reason for a question about a construct that runs unasked only behind walls.
const notPlain = "only lists, pipes and groups of plain commands run unasked"

// sweep visits the whole tree after the walk. It asks about each statement except lists, pipes and groups, and judges
// the commands in the others as run from an unknown directory. Commands within words need no judgement here, because
// words that are not literal are asked about where their command is judged.
func (w *walker) sweep(file *syntax.File) {
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
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
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) &&
				n.Param != nil && w.mayNotSet(n.Param.Value) {
				w.say(Deny, n, n.Param.Value+decidesPrograms)
			}
		case *syntax.FuncDecl:
			w.function(n)
		case *syntax.ForClause:
			w.loop(n)
		case *syntax.BinaryCmd, *syntax.Subshell, *syntax.Block:
		case syntax.Command:
			w.say(Ask, n, notPlain)
		}
	}
}

// assign judges an assignment: before a command, alone, or after declare and similar builtins.
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

// exported records that the program behind assignments sees their values.
func (w *walker) exported(all []*syntax.Assign) {
	if w.exports == nil {
		w.exports = map[*syntax.Assign]bool{}
	}
	for _, n := range all {
		w.exports[n] = true
	}
}

const decidesPrograms = " decides what other programs run: no command sets it"

// mayNotSet reports whether no command may set a variable. Behind whole walls any variable may be set, because its
// effect stays there.
func (w *walker) mayNotSet(name string) bool {
	return redirectsPrograms(name) && !w.place.Containment.Walls
}

// redirectsPrograms reports whether a variable makes other programs run, load or contact something.
func redirectsPrograms(name string) bool {
	upper := strings.ToUpper(strings.TrimSuffix(name, "+"))
	return does(ofVariable, upper, nil) || slices.ContainsFunc([]string{
		"LD_", "DYLD_", "GIT_", "BASH_FUNC_", "NPM_CONFIG_", "PIP_", "CARGO_", "DOCKER_", "ANTHROPIC_", "OPENAI_",
		"GEMINI_", "CLAUDE_", "CODEX_", "OMNIAGENT_",
	}, func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
}

// function judges a definition. Any later command may call it by its name.
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
	if name == "echo" || name == "printf" { // then what they write to a pipe is unknown
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
