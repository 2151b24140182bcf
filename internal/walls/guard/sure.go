package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Edit returns what a command makes of the content of a file; exists says whether the file existed.
type Edit = func(content []byte, exists bool) (made []byte, is, ok bool)

// sureness is whether the part of a line that is being judged has run, if the line succeeded.
type sureness struct {
	runs bool             // it has certainly run
	ends bool             // the line succeeds only if the part does
	own  *word            // the program of the simple command that is being judged; nil: none
	puts *syntax.Redirect // the only redirection of that command's output
	text string           // what it prints, without its here-documents
	told bool             // text is everything that it prints
}

// within judges a part of a line by look.
func (w *walker) within(runs, ends bool, look func()) {
	before := w.sure
	w.sure = sureness{runs: runs && before.runs, ends: ends && before.ends}
	look()
	w.sure = before
}

// leaves reports whether a part may end the shell, or change the meaning of later words.
func leaves(s *syntax.Stmt) (may bool) {
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			may = true
		case *syntax.CallExpr:
			may = may || len(n.Args) > 0 && (n.Args[0].Lit() == "" || slices.Contains([]string{
				".", "alias", "break", "builtin", "command", "continue", "enable", "eval", "exec", "exit", "kill",
				"logout", "return", "set", "shopt", "source", "suspend", "trap",
			}, n.Args[0].Lit()))
		}
		return !may
	})
	return may
}

// prints records the output of a simple command that is about to be judged.
func (w *walker) prints(s *syntax.Stmt) {
	w.sure.runs = w.sure.runs && !s.Background && !s.Coprocess && !s.Disown
	w.sure.ends = w.sure.ends && !s.Negated
	var from *syntax.Redirect
	for _, r := range s.Redirs {
		switch {
		case r.Op == syntax.Hdoc || r.Op == syntax.WordHdoc:
			from = r
		case r.N != nil && r.N.Value == "2" && (r.Op == syntax.RdrOut || r.Op == syntax.AppOut):
		case r.N == nil && w.sure.puts == nil && slices.Contains([]syntax.RedirOperator{
			syntax.RdrOut, syntax.RdrClob, syntax.AppOut,
		}, r.Op):
			w.sure.puts = r
		default:
			w.sure.puts = nil
			return
		}
	}
	if c, ok := s.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 && len(c.Assigns) == 0 {
		w.sure.text, w.sure.told = w.plainOutput(readEach(c, w.readAlone), from)
	}
}

// plainOutput returns what the simplest commands print, in the same way in every shell.
func (w *walker) plainOutput(argv []word, from *syntax.Redirect) (text string, ok bool) {
	for _, a := range argv {
		if !a.literal() {
			return "", false
		}
	}
	args := texts(argv[1:])
	all := strings.Join(args, " ")
	switch argv[0].text {
	case ":", "true":
		return "", true
	case "echo":
		return all + "\n", !strings.HasPrefix(all, "-") && !strings.Contains(all, `\`)
	case "printf":
		all = strings.ReplaceAll(all, `\n`, "\n")
		return all, len(args) == 1 && !strings.HasPrefix(all, "-") && !strings.ContainsAny(all, `\%`)
	case "cat":
		if len(args) > 0 || from == nil || from.Op != syntax.Hdoc {
			return "", false
		}
		if from.Hdoc == nil {
			return "", true
		}
		quoted := strings.ContainsAny(slice(w.source, from.Word), `'"\`)
		text = from.Hdoc.Lit()
		return text, text != "" && (quoted || !strings.Contains(text, `\`))
	}
	return "", false
}

// written returns the edit of a redirection, or nil if it is unknown.
func (w *walker) written(r *syntax.Redirect) Edit {
	text := []byte(w.sure.text)
	switch {
	case r != w.sure.puts || !w.sure.told:
		return nil
	case r.Op == syntax.AppOut:
		return func(content []byte, _ bool) ([]byte, bool, bool) {
			return append(slices.Clip(content), text...), true, true
		}
	}
	return func([]byte, bool) ([]byte, bool, bool) { return text, true, true }
}

// touched is the edit of touch.
func touched(content []byte, _ bool) ([]byte, bool, bool) { return content, true, true }

// removed is the edit of rm.
func removed([]byte, bool) ([]byte, bool, bool) { return nil, false, true }

// shellSure returns the sureness of a text that a shell gets: bash -c TEXT.
func (w *walker) shellSure(argv []word) sureness {
	runs := w.sure.runs && w.sure.own == &argv[0] && len(argv) == 3 && isShell(argv[0].text) &&
		slices.Contains([]string{"-c", "-lc"}, argv[1].text)
	return sureness{runs: runs, ends: w.sure.ends}
}
