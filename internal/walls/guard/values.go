package guard

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// anything is a pattern element that stands for any elements, or for none.
const anything = "**"

// mostValues limits the patterns of one word. With more, the word may be anything.
const mostValues = 32

// sets returns the words that a text assigns to each variable, in any order. A nil word is an unknown value.
func sets(file *syntax.File) map[string][]*syntax.Word {
	all := map[string][]*syntax.Word{}
	add := func(name *syntax.Lit, words ...*syntax.Word) {
		if name != nil {
			all[name.Value] = append(all[name.Value], words...)
		}
	}
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Append || n.Array != nil || n.Index != nil || n.Value == nil {
				add(n.Name, nil)
			} else {
				add(n.Name, n.Value)
			}
		case *syntax.ForClause:
			if iter, ok := n.Loop.(*syntax.WordIter); ok && iter.InPos.IsValid() {
				add(iter.Name, iter.Items...)
			} else if ok {
				add(iter.Name, nil)
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 && does(ofSetting, n.Args[0].Lit(), nil) {
				for _, arg := range n.Args[1:] {
					add(&syntax.Lit{Value: strings.TrimPrefix(arg.Lit(), "-v")}, nil)
				}
			}
		}
	}
	return all
}

// roams returns where the shell may be during a part of a text, or after it, if the order of its commands is unknown.
func (w *walker) roams(n syntax.Node, at dirs) dirs {
	for n := range syntax.Preorder(n) {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			continue
		}
		to, moved := w.moved(readEach(call, w.sweptWord), at)
		at = at.or(to)
		at.lost = at.lost || moved
	}
	return at
}

// values returns patterns for the possible values of a word. The element anything stands for an unknown part.
func (w *walker) values(parts []syntax.WordPart, at dirs, depth int) (all []string) {
	for _, one := range braced(parts) {
		all = append(all, w.valuesOf(one, at, depth)...)
	}
	if len(all) == 0 || len(all) > mostValues {
		return []string{anything}
	}
	return all
}

func (w *walker) valuesOf(parts []syntax.WordPart, at dirs, depth int) []string {
	all := []string{""}
	for i, part := range parts {
		var next []string
		switch part := part.(type) {
		case *syntax.Lit:
			text := part.Value
			if rest, home := strings.CutPrefix(text, "~"); home && i == 0 && (rest == "" || rest[0] == '/') {
				text = w.place.Home + rest
			}
			text = strings.ReplaceAll(text, "=~/", "="+w.place.Home+"/")
			if next = []string{strings.ReplaceAll(text, `\`, "")}; strings.Contains(text, "{") {
				next = []string{anything}
			}
		case *syntax.SglQuoted:
			next = []string{part.Value}
		case *syntax.DblQuoted:
			next = w.valuesOf(part.Parts, at, depth)
		case *syntax.ParamExp:
			next = w.variable(part, at, depth)
		case *syntax.CmdSubst:
			next = w.printed(part, at)
		case *syntax.ArithmExp:
			next = []string{"*"}
		case *syntax.ExtGlob:
			next = []string{"*", ".*"}
		default:
			next = []string{anything}
		}
		if len(all)*len(next) > mostValues {
			return []string{anything}
		}
		var joined []string
		for _, head := range all {
			for _, tail := range next {
				joined = append(joined, head+tail)
			}
		}
		all = joined
	}
	for _, value := range slices.Clone(all) { // without quotes it is split
		if fields := strings.Fields(value); len(fields) > 1 {
			all = append(all, fields...)
		}
	}
	return all
}

// variable returns patterns for the possible values of a variable.
func (w *walker) variable(p *syntax.ParamExp, at dirs, depth int) (all []string) {
	unknown := []string{anything}
	plain := *p
	plain.Exp = nil
	switch {
	case depth > 4 || p.Param == nil || p.Excl || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0:
		return unknown
	case p.Length:
		return []string{"*"}
	case p.Exp == nil && p.Param.Value == "PWD":
		return at.named()
	case p.Exp == nil && harmless(&plain) && p.Param.Value != "OLDPWD":
		return []string{"*"}
	}
	words, set := w.sets[p.Param.Value]
	switch {
	case p.Param.Value == "TMPDIR":
		all = []string{"/tmp"}
	case p.Param.Value == "HOME" && w.place.Home != "":
		all = []string{w.place.Home}
	case !set:
		return unknown
	}
	for _, one := range words {
		if one == nil {
			return unknown
		}
		all = append(all, w.values(one.Parts, at, depth+1)...)
	}
	if p.Exp == nil {
		return all
	}
	cut := ""
	if p.Exp.Word != nil {
		cut = p.Exp.Word.Lit()
	}
	for i, value := range all {
		switch {
		case strings.Contains(value, anything):
			return unknown
		case p.Exp.Op == syntax.RemSmallSuffix && cut != "" && !strings.Contains(cut, "/"):
			all[i] = value[:len(value)-len(path.Base(value))] + "*"
		case p.Exp.Op == syntax.RemLargePrefix && cut == "*/":
			all[i] = path.Base(value)
		default:
			return unknown
		}
	}
	return all
}

// named returns the directories as patterns.
func (d dirs) named() []string {
	if d.lost {
		return []string{anything}
	}
	return slices.Clone(d.list)
}

// printed returns patterns for what a command may print.
func (w *walker) printed(c *syntax.CmdSubst, at dirs) []string {
	if len(c.Stmts) == 1 {
		last := c.Stmts[0]
		for {
			pipe, ok := last.Cmd.(*syntax.BinaryCmd)
			if !ok || pipe.Op != syntax.Pipe {
				break
			}
			last = pipe.Y
		}
		if call, ok := last.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && !slices.ContainsFunc(last.Redirs,
			func(r *syntax.Redirect) bool { return r.Op != syntax.RdrIn }) {
			switch name := call.Args[0].Lit(); name {
			case "pwd":
				return at.named()
			case "mktemp":
				if !slices.ContainsFunc(call.Args[1:], func(a *syntax.Word) bool {
					text := a.Lit()
					return !slices.Contains([]string{"-d", "-q", "-u", "-t", "-dt", "-dq"}, text) &&
						(!temporary(filepath.Clean(text)) || text == "")
				}) {
					return []string{"/tmp/*"}
				}
			case "wc":
				if !slices.ContainsFunc(call.Args[1:], func(a *syntax.Word) bool {
					return !strings.HasPrefix(a.Lit(), "-")
				}) {
					return []string{"*"}
				}
			case "basename", "date", "seq", "nproc", "uname", "id", "whoami", "hostname":
				return []string{"*"}
			}
		}
	}
	return []string{anything}
}

// fixedPart returns the directory below which all matches of a pattern lie, or the path if it has no wildcard.
func fixedPart(pattern string) string {
	fixed := pattern
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		fixed = filepath.Dir(pattern[:i] + "x")
	}
	return fixed
}

// overlaps reports whether a pattern may match a path or something below it or, with beneath, a directory that contains
// the path.
func overlaps(pattern, path string, beneath bool) bool {
	split := strings.Split(filepath.ToSlash(pattern), "/")
	if i := slices.IndexFunc(split, func(e string) bool { return strings.Contains(e, anything) }); i >= 0 {
		split = append(split[:i], anything)
	}
	at := map[int]bool{0: true} // how many elements of the pattern may be consumed
	for _, element := range strings.Split(filepath.ToSlash(path), "/") {
		next := map[int]bool{}
		for i := range at {
			switch {
			case i == len(split):
				if beneath {
					return true
				}
			case split[i] == anything:
				return true
			case globElement(split[i], element):
				next[i+1] = true
			}
		}
		at = next
	}
	return len(at) > 0
}

// mayChange records the words that name gaps of the snapshot, for a program whose changes are unknown.
func (w *walker) mayChange(p *piece, name string, argv []word, at dirs) {
	if len(w.place.Containment.Cover.Gaps) == 0 {
		return
	}
	for _, a := range w.outputs(name, argv, at) {
		texts, flag := []string{a.text}, strings.HasPrefix(a.text, "-")
		if flag {
			texts = meanings(a)
		}
		if !a.known || flag && (strings.Contains(a.text, "clude") || strings.Contains(a.text, "ignore")) {
			continue
		}
		for _, text := range texts {
			for _, path := range at.paths(text) {
				if _, gap := w.place.Containment.Cover.gap(fixedPart(path)); text != "" && gap || w.linksToGap(path) {
					w.changes(p, path, a.pattern, change{})
				}
			}
		}
	}
}

// outputs returns the words that may name files which a program writes, and which no other code judges.
func (w *walker) outputs(name string, argv []word, at dirs) []word {
	flags, own := []string{"--output"}, argv[1:]
	switch wrapper := wrapperOf(name); {
	case name == "git":
		if sub, _ := gitVerb(texts(own)); !does(ofSparing, name, []string{sub}) {
			return own
		}
	case name == "find" || name == "gfind":
		flags = []string{"-fprint", "-fprint0", "-fls", "-fprintf"}
	case name == "sed" || name == "gsed":
		return sedWrites(own)
	case name == "valgrind":
		flags = []string{
			"--log-file", "--xml-file", "--massif-out-file", "--callgrind-out-file", "--cachegrind-out-file",
		}
	case wrapper.starts() && slices.Contains([]string{"time", "gtime", "strace", "ltrace", "perf"}, name):
		flags = append(flags, "-o")
		for _, c := range wrapper.behind(argv) { // the last is where the flags of the wrapper end for certain
			own = argv[1:max(1, len(argv)-len(c.argv))]
		}
	case isInterpreter(name), name == ".", name == "source": // the first is the script
		i := slices.IndexFunc(own, func(a word) bool { return !strings.HasPrefix(a.text, "-") })
		return own[max(0, i+1):]
	case name == "sort" || name == "tree":
		flags = append(flags, "-o")
	case name == "uniq" || name == "xxd":
		own = slices.DeleteFunc(slices.Clone(own), func(a word) bool { return strings.HasPrefix(a.text, "-") })
		return own[min(1, len(own)):]
	case wrapper.starts(), onlyReads(name), does(ofChange, name, nil), does(ofChangeLast, name, nil),
		len(started(name, argv)) > 0:
		return nil
	default:
		return own
	}
	return valuesOfFlags(own, flags)
}

// valuesOfFlags returns the values of flags: joined, behind =, or the next word. Long flags may be abbreviated.
func valuesOfFlags(argv []word, flags []string) (values []word) {
	for i, a := range argv {
		name, value, joined := strings.Cut(a.text, "=")
		for _, flag := range flags {
			rest, short := strings.CutPrefix(a.text, flag)
			switch long := strings.HasPrefix(flag, "--"); {
			case a.text == flag, long && !joined && len(name) > 4 && strings.HasPrefix(flag, name),
				len(flag) == 2 && len(a.text) > 2 && a.text[0] == '-' && a.text[1] != '-' &&
					strings.HasSuffix(a.text, flag[1:]): // -ao file
				if i+1 < len(argv) {
					values = append(values, argv[i+1])
				}
			case long && joined && len(name) > 4 && strings.HasPrefix(flag, name):
				values = append(values, word{text: value, known: a.known})
			case short && len(flag) == 2:
				values = append(values, word{text: rest, known: a.known})
			}
		}
	}
	return values
}

// sedWrites returns the files that sed may write: what follows a w, up to the end of its line, and each file that it
// reads, if a script is in a file.
func sedWrites(argv []word) (files []word) {
	scripts, read, inFile := sedWords(argv)
	if inFile {
		files = read
	}
	for _, script := range scripts {
		for line := range strings.SplitSeq(script, "\n") {
			for i := range len(line) {
				letter := line[i]
				file := strings.TrimSpace(line[i+1:])
				if (letter == 'w' || letter == 'W') && !strings.HasSuffix(file, "/") &&
					(i == 0 || strings.IndexByte(" ;{}/|#,!$0123456789gpImM", line[i-1]) >= 0) {
					files = append(files, word{text: file, known: true})
				}
			}
		}
	}
	return files
}

// linksToGap reports whether a path leads to a gap of the snapshot.
func (w *walker) linksToGap(path string) bool {
	return slices.ContainsFunc(w.place.leads(path), func(real string) bool {
		_, gone := w.place.Containment.Cover.gap(real)
		return gone
	})
}
