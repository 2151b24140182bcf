package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is what is known about a word before bash expands it.
type word struct {
	text string // what the program gets, as far as known
	// known: text is everything. A pattern counts as known, but not the names that match it.
	known   bool
	pattern bool
	pipe    bool   // the name of a pipe from a command: <(…)
	why     string // why it is not known
	written string
	may     []string // patterns for the values of an unknown word, see values; nil: anything
}

func (w word) literal() bool { return w.known && !w.pattern }

// mayBe returns the word if it is known, and otherwise patterns of what it may be, at least one.
func (w word) mayBe() []string {
	switch {
	case w.known:
		return []string{w.text}
	case len(w.may) == 0:
		return []string{anything}
	}
	return w.may
}

// readEach reads the words of a command.
func readEach(c *syntax.CallExpr, read func(*syntax.Word) word) []word {
	all := make([]word, len(c.Args))
	for i, arg := range c.Args {
		all[i] = read(arg)
	}
	return all
}

// reader reads one word.
type reader struct {
	b       strings.Builder
	w       word
	brace   bool
	between bool // a brace has a separator
}

func (r *reader) unknown(why string) {
	if r.w.known {
		r.w.known, r.w.why = false, why
	}
}

// read reads a word. home is what ~ becomes.
func read(w *syntax.Word, source, home string) word {
	r := &reader{w: word{known: true, written: slice(source, w)}}
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			r.bare(p.Value, i == 0, i == len(w.Parts)-1, home)
		case *syntax.SglQuoted:
			if p.Dollar {
				r.unknown("$'…' is not read: write the characters themselves")
				continue
			}
			r.b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				r.unknown(`$"…" is translated by the shell`)
				continue
			}
			r.quoted(p)
		default:
			r.expansion(part)
		}
	}
	if r.brace && r.between {
		r.unknown("what is in braces is expanded: write it out")
	}
	r.w.text = r.b.String()
	if r.w.text == "[" && r.w.written == "[" {
		r.w.pattern = false // the command, or its name
	}
	return r.w
}

// bare reads text without quotes.
func (r *reader) bare(s string, first, last bool, home string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i+1 == len(s) {
				r.unknown("a backslash ends the word")
				return
			}
			i++
			r.b.WriteByte(s[i])
		case '*', '?', '[':
			r.w.pattern = true
			r.b.WriteByte(c)
		case '~':
			if first && i == 0 {
				r.tilde(s, last, home)
				continue
			}
			if i == 0 || s[i-1] == '=' || s[i-1] == ':' {
				r.unknown("~ is expanded there, or not")
			}
			r.b.WriteByte(c)
		case '$':
			if !last || i+1 < len(s) {
				r.unknown("a lone $ in the middle of a word")
			}
			r.b.WriteByte(c)
		case '`', '(', ')', '|', '&', ';', '<', '>', '"', '\'':
			r.unknown("a character that the shell reads otherwise")
		case '{':
			r.brace = true
			r.b.WriteByte(c)
		case ',', '.':
			r.between = r.between || c == ',' || i+1 < len(s) && s[i+1] == '.'
			r.b.WriteByte(c)
		default:
			r.b.WriteByte(c)
		}
	}
}

// tilde reads ~ at the beginning: alone or before a slash it is the home directory.
func (r *reader) tilde(s string, last bool, home string) {
	if home != "" && (len(s) == 1 && last || len(s) > 1 && s[1] == '/') {
		r.b.WriteString(home)
		return
	}
	r.unknown("~ with a name is not known here")
}

// quoted reads "…".
func (r *reader) quoted(q *syntax.DblQuoted) {
	for i, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			r.expansion(part)
			continue
		}
		s := lit.Value
		for j := 0; j < len(s); j++ {
			switch c := s[j]; {
			case c == '\\' && j+1 < len(s) && strings.IndexByte("$`\"\\", s[j+1]) >= 0:
				j++
				r.b.WriteByte(s[j])
			case c == '`':
				r.unknown("a character that the shell reads otherwise")
			case c == '$' && (j+1 < len(s) && strings.IndexByte(" |)/.,:", s[j+1]) < 0 || j+1 == len(s) &&
				i+1 < len(q.Parts)):
				r.unknown("a lone $ in the middle of a word")
			default:
				r.b.WriteByte(c)
			}
		}
	}
}

// expansion reads a part that bash replaces.
func (r *reader) expansion(part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.ParamExp:
		r.unknown("the value of a variable is not known before it runs")
	case *syntax.CmdSubst:
		r.unknown("what the inner command prints is not known before it runs")
	case *syntax.ArithmExp:
		r.unknown("the result of the arithmetic is not known before it runs")
	case *syntax.ProcSubst:
		r.w.pipe = r.w.pipe || p.Op == syntax.CmdIn
		r.unknown("the name of the pipe is not known before it runs")
	default:
		r.unknown("an extended pattern is read otherwise without extglob")
	}
}

// harmless reports whether an expansion only yields a value that is not secret, such as $?.
func harmless(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Excl || p.Length || p.Width || p.IsSet || p.Flags != nil || p.NestedParam != nil ||
		p.Index != nil || p.Slice != nil ||
		p.Repl != nil || p.Names != 0 || p.Exp != nil || len(p.Modifiers) > 0 || p.Split != 0 || p.GlobSubst != 0 ||
		p.RcExpand != 0 {
		return false
	}
	switch p.Param.Value {
	case "?", "#", "$", "!", "PWD", "OLDPWD", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID":
		return true
	}
	return false
}

// closedArithmetic reports whether an expression has only numbers. A name would itself be evaluated as an expression,
// in which a subscript can run commands.
func closedArithmetic(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case *syntax.Word:
		lit := x.Lit()
		return lit != "" && len(lit) < 19 && strings.Trim(lit, "0123456789") == ""
	case *syntax.ParenArithm:
		return closedArithmetic(x.X)
	case *syntax.UnaryArithm:
		return (x.Op == syntax.Minus || x.Op == syntax.Plus || x.Op == syntax.Not || x.Op == syntax.BitNegation) &&
			!x.Post && closedArithmetic(x.X)
	case *syntax.BinaryArithm:
		switch x.Op {
		case syntax.Add, syntax.Sub, syntax.Mul, syntax.Quo, syntax.Rem, syntax.Eql, syntax.Gtr, syntax.Lss, syntax.Neq,
			syntax.Leq, syntax.Geq,
			syntax.And, syntax.Or, syntax.Xor, syntax.Shr, syntax.Shl, syntax.AndArit, syntax.OrArit:
			return closedArithmetic(x.X) && closedArithmetic(x.Y)
		}
	}
	return false
}

func slice(source string, n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(source) || from >= to {
		return ""
	}
	return source[from:to]
}
