package guard

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
)

// closed returns why a simple command is not approved by itself, or "". It adds to the piece which files the command
// reads.
func (w *walker) closed(p *piece, argv []word, at dirs) string {
	if !argv[0].literal() {
		return "the program is not known before it runs: " + cmp.Or(argv[0].why, "its name is a pattern")
	}
	name, ok := plainName(argv[0].text)
	if !ok {
		return "a program with a path is not one that is known"
	}
	if rest, is := transparent(name, argv); is {
		if rest == nil {
			return name + " is approved only in front of a command that is approved, without flags"
		}
		return w.closed(p, rest, at)
	}
	in := &invocation{walker: w, piece: p, name: name, args: argv[1:], at: at}
	if judge := special(name); judge != nil {
		return judge(in)
	}
	g := grammarOf(name)
	if g.name == "" {
		return name + " is not among the commands that are approved by themselves"
	}
	if g.is("exactly") {
		return in.exactly(g)
	}
	return in.fits(g)
}

// plainName returns the name of a program that is given without a directory, or with a directory of the system's
// programs.
func plainName(text string) (string, bool) {
	for _, dir := range []string{"/bin/", "/usr/bin/"} {
		if rest, found := strings.CutPrefix(text, dir); found {
			text = rest
			break
		}
	}
	return text, text != "" && !strings.ContainsAny(text, `/\ `)
}

// transparent returns the command behind a wrapper that may precede an approved command.
func transparent(name string, argv []word) (rest []word, is bool) {
	switch name {
	case "nice":
		rest = argv[1:]
	case "command":
		if len(argv) > 1 && strings.HasPrefix(argv[1].text, "-") {
			return nil, false // command -v, which special judges
		}
		rest = argv[1:]
	case "timeout":
		if len(argv) < 3 || !argv[1].literal() || !seconds(argv[1].text) {
			return nil, true
		}
		rest = argv[2:]
	default:
		return nil, false
	}
	if len(rest) == 0 || !rest[0].literal() || strings.HasPrefix(rest[0].text, "-") {
		return nil, true
	}
	if slices.Contains([]string{"cd", "set", "exit"}, rest[0].text) {
		return nil, true // what changes the shell has to be a command of its own, which the walker sees
	}
	return rest, true
}

func seconds(s string) bool {
	s = strings.TrimRight(s, "smhd")
	return s != "" && len(s) < 10 && strings.Trim(s, "0123456789.") == ""
}

// invocation is one simple command, to be compared with a grammar.
type invocation struct {
	walker *walker
	piece  *piece
	name   string
	args   []word
	at     dirs

	flags    []string // as given, without values
	values   []string // those of the flags
	operands []word
}

// fits says why the arguments are not in the grammar.
func (in *invocation) fits(g tableEntry) string {
	if why := in.split(g); why != "" {
		return why
	}
	if len(in.operands) < g.number("least") {
		return fmt.Sprintf("%s without operands is not approved", in.name)
	}
	most := g.number("most")
	if most > 0 && len(in.operands) > most {
		return fmt.Sprintf("%s may write to its operand %d", in.name, most+1)
	}
	if most > 0 && slices.ContainsFunc(in.operands, func(o word) bool { return o.pattern }) {
		return "a pattern may become more operands than one"
	}
	texts, read := 0, in.operands
	switch {
	case g.is("text"), g.is("numbers"):
		texts, read = len(in.operands), nil
	case g.is("pattern"):
		if !slices.ContainsFunc(in.flags,
			func(f string) bool { return slices.Contains(g.words["script"], f) }) && len(in.operands) > 0 {
			texts, read = 1, in.operands[1:]
		}
	}
	for _, o := range in.operands[:texts] {
		if why := plainText(o, g.is("numbers")); why != "" {
			return why
		}
	}
	whole := slices.ContainsFunc(append(in.flags, "*"),
		func(f string) bool { return slices.Contains(g.words["recurses"], f) })
	if whole && len(read) == 0 {
		read = []word{{text: ".", known: true}}
	}
	for _, o := range read {
		if why := in.file(o, whole); why != "" {
			return why
		}
	}
	if whole && in.name == "diff" && in.walker.place.Leads != nil && !slices.Contains(in.flags, "--no-dereference") {
		return "diff reads what links in a tree lead to: give it --no-dereference"
	}
	return ""
}

// plainText returns why a word is not plain text, or "".
func plainText(o word, number bool) string {
	if !o.literal() {
		return "an argument is not known before it runs: " +
			cmp.Or(o.why, "a pattern becomes the names of files; quote it")
	}
	if number && (o.text == "" || strings.Trim(o.text, "0123456789.-+") != "") {
		return o.text + " is not a number"
	}
	return ""
}

// file returns why a word may not name a file that is read, or "".
func (in *invocation) file(o word, whole bool) string {
	if o.known && o.text == "-" && !o.pattern {
		return ""
	}
	paths, why, word := in.walker.reading(o, in.at)
	in.piece.reads = append(in.piece.reads, paths...)
	if word == Deny {
		in.piece.bar(why)
	}
	if why != "" {
		return why
	}
	for _, path := range paths {
		if whole && in.walker.place.credential(path, true) {
			return "credentials are beneath " + path
		}
	}
	return ""
}

// reading resolves a word that names a file to read, and returns why it may not be read.
func (w *walker) reading(o word, at dirs) (paths []string, why string, worst Decision) {
	switch {
	case !o.known:
		return nil, "the file is not known before it runs: " + o.why, Ask
	case o.text == "":
		return nil, "", Allow
	case slices.Contains([]string{"/dev/null", "/dev/stdin", "/dev/fd/0", "/dev/stdout", "/dev/stderr"}, o.text) &&
		!o.pattern:
		return nil, "", Allow
	case at.lost && !filepath.IsAbs(o.text):
		return nil, "the directory is not known", Ask
	case o.pattern && (strings.Contains(o.text, "..") || hiddenPattern(o.text)):
		return nil, "the pattern may lead upwards", Ask
	case o.pattern && strings.Contains(o.text, "["):
		return nil, "a pattern with brackets is not read: use * or ?", Ask
	case strings.ContainsFunc(o.text, control):
		return nil, "the name has control characters", Ask
	}
	list := at.list
	if filepath.IsAbs(o.text) {
		list = []string{"/"}
	}
	for _, dir := range list {
		path := resolve(dir, o.text)
		if o.pattern {
			path = fixedPart(path)
		}
		paths = append(paths, path)
		switch v := w.set.Read(path, w.place); {
		case v.Decision == Deny:
			return paths, v.Reasons[0].Text, Deny
		case w.place.root(path) == "":
			why, worst = "it reads outside the workspace", Ask
		case o.pattern && w.place.credential(path, true):
			why, worst = "credentials are beneath "+path, Ask
		}
		for _, real := range w.place.physical(dir, o.text) {
			paths = append(paths, real)
			switch v := w.set.Read(real, w.place); {
			case v.Decision == Deny:
				return paths, "a link leads to " + real + ": " + v.Reasons[0].Text, Deny
			case w.place.root(real) == "" && worst == Allow:
				why, worst = "a link leads outside the workspace, to "+real, Ask
			}
		}
	}
	return paths, why, worst
}

// leads returns where a path leads over links, as paths below the workspace where they lie in it.
func (p Place) leads(path string) []string {
	if p.Leads == nil {
		return nil
	}
	var all []string
	for _, real := range p.Leads(path) {
		for _, root := range append([]string{p.Root}, p.More...) {
			at := root // the workspace itself may be named over a link
			if to := p.Leads(root); len(to) == 1 {
				at = to[0]
			}
			if rel, within := pathname.In(at, real); within {
				real = filepath.Join(root, rel)
			}
		}
		if real != filepath.Clean(path) {
			all = append(all, real)
		}
	}
	return all
}

// hiddenPattern reports whether an element of a pattern begins with a dot: .* matches .. too.
func hiddenPattern(p string) bool {
	for e := range strings.SplitSeq(p, "/") {
		if strings.HasPrefix(e, ".") && strings.ContainsAny(e, "*?[") {
			return true
		}
	}
	return false
}

// split separates flags from operands.
func (in *invocation) split(g tableEntry) string {
	known := g.kinds()
	for i := 0; i < len(in.args); i++ {
		a := in.args[i]
		switch {
		case !a.known:
			return "an argument is not known before it runs: " + a.why
		case a.pattern && !sameFlag(a.text) && (a.wild || strings.HasPrefix(a.text, "-")):
			return fmt.Sprintf("%s may become a flag, if a file is named so: write ./%s", a.text,
				strings.TrimLeft(a.text, "-"))
		case a.text == "--" && a.literal() && (g.is("apart") || g.is("ordered") && len(in.operands) > 0):
			return "-- is an operand to some versions"
		case a.text == "--" && a.literal():
			for _, o := range in.args[i+1:] {
				if !o.known {
					return "an argument is not known before it runs: " + o.why
				}
				in.operands = append(in.operands, o)
			}
			return ""
		case len(a.text) < 2 || a.text[0] != '-':
			in.operands = append(in.operands, a)
			continue
		}
		if g.is("ordered") && len(in.operands) > 0 {
			return "a flag behind an operand is an operand to some versions"
		}
		if g.is("digits") && strings.Trim(a.text[1:], "0123456789") == "" {
			continue
		}
		used, why := in.flag(a.text, in.args[i+1:], known, g.is("apart"))
		if why != "" {
			return why
		}
		i += used
	}
	return ""
}

// sameFlag reports whether every name that matches a pattern is the same flag with a value: --include=*.go.
func sameFlag(text string) bool {
	fixed := text[:strings.IndexAny(text+"*", "*?[")]
	return strings.HasPrefix(text, "--") && strings.Contains(fixed, "=")
}

// flag reads one word of flags, and says how many words behind it are theirs.
func (in *invocation) flag(text string, rest []word, known map[string]byte, apart bool) (used int, why string) {
	if kind, ok := known[text]; ok { // a long flag, one short flag, or a long one with a single dash
		in.flags = append(in.flags, text)
		switch kind {
		case 0, '?':
			return 0, ""
		}
		if len(rest) == 0 {
			return 0, text + " needs a value"
		}
		return 1, in.value(rest[0], kind)
	}
	if strings.HasPrefix(text, "--") {
		name, value, has := strings.Cut(text, "=")
		kind, ok := known[name]
		if !ok || !has || kind == 0 {
			return 0, fmt.Sprintf("%s %s is not among the flags that are approved", in.name, name)
		}
		in.flags = append(in.flags, name)
		return 0, in.value(word{text: value, known: true}, kind)
	}
	if apart {
		return 0, fmt.Sprintf("%s %s is not among the flags that are approved", in.name, text)
	}
	for i := 1; i < len(text); i++ {
		name := "-" + text[i:i+1]
		kind, ok := known[name]
		if !ok {
			return 0, fmt.Sprintf("%s %s is not among the flags that are approved", in.name, name)
		}
		in.flags = append(in.flags, name)
		if kind == 0 {
			continue
		}
		if i+1 < len(text) {
			return 0, in.value(word{text: text[i+1:], known: true}, kind)
		}
		if kind == '?' {
			return 0, ""
		}
		if len(rest) == 0 {
			return 0, name + " needs a value"
		}
		return 1, in.value(rest[0], kind)
	}
	return 0, ""
}

func (in *invocation) value(v word, kind byte) string {
	in.values = append(in.values, v.text)
	switch kind {
	case 'f':
		if !v.literal() {
			return plainText(v, false)
		}
		return in.file(v, false)
	case 'n':
		if why := plainText(v, false); why != "" {
			return why
		}
		if v.text == "" || strings.Trim(strings.TrimRight(v.text, "kKMGTBbcwi"), "0123456789-+.,") != "" {
			return v.text + " is not a number"
		}
		return ""
	}
	return plainText(v, false)
}
