package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"omniagent/internal/kit/text"

	"mvdan.cc/sh/v3/syntax"
)

// Input beyond these limits is denied, not judged in part: a limit that truncates would be a way around the rest.
const (
	maxLine  = 64 << 10
	maxNodes = 8192
	maxOpen  = 256 // opening brackets and quotes: the parser is recursive
	maxInner = 8   // commands nested in the text of commands
	maxDirs  = 8   // directories in which a command may run
)

// Command returns the verdict of the built-in tables on a line that bash would run in p.Dir. It ignores p.Containment,
// rules and earlier answers; Judge considers those too.
func (s Set) Command(line string, p Place) Verdict {
	return s.look(line, p).verdict()
}

// shape is the kind of a piece of a line.
type shape uint8

const (
	simple    shape = iota // a simple command; an allow rule may cover it
	redirect               // into a file; an allow rule for the file may cover it
	structure              // anything else; only a rule for everything, or for the whole line, covers it
)

// piece is a part of a line that has a verdict.
type piece struct {
	shape       shape
	decision    Decision
	text        string
	why         string
	firm        bool     // every mode asks
	argv        []word   // of a simple command
	agent       string   // the agent that it starts: only a rule that names the agent covers it
	denied      string   // the program that the tables deny: only a rule that names it lifts the denial
	inner       bool     // a redirection in the text of another command, for which no rule for files counts
	runsUnknown bool     // it runs a text that is not known beforehand
	values      []string // of the variables that it sets
	runsKnown   bool     // it runs a known text, which is judged too
	never       bool     // nothing lifts the denial: no rule, no answer, no ground
	unreadable  bool     // a person could not see what it is, so it stays denied instead of being asked about
	reads       []string // absolute paths
	patterns    []string // absolute; of words that are patterns, or unknown
	unexpanded  bool     // the matches of a pattern are unknown
	writes      []string

	beyond  beyond
	because string // why it is beyond
	remote  bool   // it needs the network, or may

	connected bool // bash itself opens a connection
	held      bool // the walls keep the protected name from being changed
}

func (p *piece) say(word Decision, why string) {
	if word > p.decision {
		p.decision, p.why = word, why
	}
}

// bar denies a piece, and nothing lifts that.
func (p *piece) bar(why string) {
	if !p.never {
		p.decision, p.why, p.never = Deny, why, true
	}
}

// survey is everything known about a line.
type survey struct {
	pieces  []piece
	broken  bool // the line cannot be judged piece by piece
	fetches bool // a program in it fetches from the network
	reads   bool // a shell or an interpreter in it runs what it reads
	line    string
	alters  []Alteration
}

func (s *survey) verdict() Verdict {
	var v Verdict
	for _, p := range s.pieces {
		if p.decision > Allow {
			v.add(Reason{Decision: p.decision, Text: p.why, Piece: p.text, Source: BuiltIn})
		}
	}
	v.sort()
	return v
}

// look parses a line into pieces.
//
//	line ─▶ characters ─▶ parser ─▶ walker: statements that it understands ─▶ pieces with verdicts
//	                                   └─▶ sweep: all other nodes ────────────▶ Ask or Deny
func (s Set) look(line string, p Place) *survey {
	sv := &survey{line: line}
	w := &walker{set: s, place: p, survey: sv, sure: sureness{runs: true, ends: true}}
	if s == SysBuiltIn {
		w.words(line)
	}
	w.text(line, dirs{list: []string{p.Dir}})
	if sv.reads && (sv.fetches || slices.ContainsFunc(sv.pieces, func(p piece) bool { return p.connected })) {
		sv.pieces = append(sv.pieces, piece{
			shape: structure, decision: Deny, text: clip(line), why: "what comes from the network is run unread",
		})
	}
	return sv
}

// walker judges one text: the line, or a text in it that is given to a shell.
type walker struct {
	set     Set
	place   Place
	survey  *survey
	source  string
	depth   int
	inside  int // depth of substitutions
	visited map[syntax.Node]bool
	exports map[*syntax.Assign]bool // whether other programs see the assigned value

	sets  map[string][]*syntax.Word   // the values that a text gives to variables; nil: an unknown value
	loose dirs                        // the directories for the parts of a text whose order is unknown, such as loops
	feeds map[*syntax.CallExpr]string // the standard input of a command, if it is known
	fed   string                      // that of the command that is being judged
	isFed bool

	evaluates bool // bash may run a text that is quoted
	sure      sureness
}

func (w *walker) add(p piece) { w.survey.pieces = append(w.survey.pieces, p) }

func (w *walker) say(word Decision, n syntax.Node, why string) {
	w.add(piece{shape: structure, decision: word, text: clip(slice(w.source, n)), why: why})
}

// refuse denies a text that bash may read differently.
func (w *walker) refuse(text string, blind bool, why string) {
	w.doubts(piece{shape: structure, decision: Deny, text: clip(text), why: why, unreadable: blind})
}

// doubts adds a piece that bash may read differently. If the network is open, it may publish.
func (w *walker) doubts(p piece) {
	w.survey.broken = true
	if w.place.Containment.Network {
		p.reaches(published, p.why+", so it may publish, and the network is open")
	}
	w.add(p)
}

func clip(s string) string { return text.Cut(s, 200) }

// text judges a whole text.
func (w *walker) text(source string, at dirs) dirs {
	w.source, w.visited, w.feeds = source, map[syntax.Node]bool{}, map[*syntax.CallExpr]string{}
	if !w.characters(source) {
		return dirs{lost: true}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).
		Parse(strings.NewReader(source), "")
	if err != nil {
		at := "it"
		var parse syntax.ParseError
		if errors.As(err, &parse) {
			at = fmt.Sprintf("line %d, column %d: %s", parse.Pos.Line(), parse.Pos.Col(), parse.Text)
		}
		w.refuse(source, false, "it cannot be parsed as bash ("+at+")")
		return dirs{lost: true}
	}
	nodes := 0
	syntax.Walk(file, func(n syntax.Node) bool {
		if n != nil {
			nodes++
		}
		return nodes <= maxNodes
	})
	if nodes > maxNodes {
		w.refuse(source, false, fmt.Sprintf("it has more than %d parts", maxNodes))
		return dirs{lost: true}
	}
	w.disagreements(file)
	w.sets, w.loose = sets(file), dirs{lost: true}
	w.loose = w.roams(file, at)
	end := w.list(file.Stmts, at)
	w.sure = sureness{}
	w.sweep(file)
	w.evaluations(file)
	return end
}

// characters checks the text before it is parsed: shells and parsers disagree first about odd characters.
func (w *walker) characters(source string) bool {
	switch {
	case len(source) > maxLine:
		w.refuse(source, false, fmt.Sprintf("it is longer than %d bytes", maxLine))
		return false
	case strings.TrimSpace(source) == "":
		w.refuse(source, true, "it is empty")
		return false
	case !utf8.ValidString(source):
		w.refuse(source, true, "it is not UTF-8")
		return false
	}
	open := 0
	for i, r := range source {
		switch {
		case r == '\n' || r == '\t':
		case control(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff':
			w.refuse(source, true, fmt.Sprintf("byte %d is the character %U, which shells and people read differently",
				i, r))
			return false
		case r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069':
			w.refuse(source, true, fmt.Sprintf("byte %d is the character %U, which reverses the text on the screen", i,
				r))
			return false
		case r > unicode.MaxASCII && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)):
			w.add(piece{
				shape: structure, decision: Ask, text: clip(source),
				why: fmt.Sprintf("byte %d is the character %U, which cannot be seen", i, r),
			})
		case r == '(' || r == '{' || r == '`':
			open++
		}
	}
	if strings.Contains(source, "\\\n") {
		w.add(piece{
			shape: structure, decision: Ask, text: clip(source),
			why: "a line is continued with a backslash: write it on one line",
		})
	}
	if open > maxOpen {
		w.refuse(source, false, fmt.Sprintf("it opens more than %d brackets", maxOpen))
		return false
	}
	return true
}

// disagreements finds what the parser is known to read differently from bash.
func (w *walker) disagreements(file *syntax.File) {
	if strings.Contains(w.source, "$\\\n") { // bash joins the lines first, so an expansion may begin there
		w.refuse(w.source, false, "a line is continued behind $")
	}
	lines := strings.Split(strings.ReplaceAll(w.source, "\\\n", "\x00"), "\n")
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
		case *syntax.Comment:
			if strings.Contains(n.Text, "\n") { // the parser takes the next line for more words of the command
				w.refuse(w.source, false, "a comment ends with a backslash")
			}
		case *syntax.Redirect:
			if n.Op != syntax.Hdoc && n.Op != syntax.DashHdoc {
				continue
			}
			if delimiter := slice(w.source, n.Word); !plainDelimiter(delimiter) || endsEarly(lines, delimiter) {
				w.doubts(piece{
					shape: structure, decision: Ask, text: clip(slice(w.source, n)),
					why: "where the here-document ends is not certain",
				})
			}
		}
	}
}

// endsEarly reports whether bash may end a here-document where the parser does not: at a delimiter that spans several
// lines or, in a substitution, at one followed by a bracket. In lines, a NUL stands for a continuation by a backslash.
func endsEarly(lines []string, delimiter string) bool {
	delimiter = strings.Trim(delimiter, `\'"`)
	for _, line := range lines {
		text := strings.TrimLeft(strings.ReplaceAll(line, "\x00", ""), "\t")
		rest, begins := strings.CutPrefix(text, delimiter)
		if begins && (rest == "" && strings.Contains(line, "\x00") || strings.ContainsAny(rest, ")`")) {
			return true
		}
	}
	return false
}

// words looks for the words that the set SysBuiltIn denies anywhere, also in quotes.
func (w *walker) words(line string) {
	for _, one := range strings.FieldsFunc(strings.ToLower(line), func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if one == "sudo" || one == "shutdown" || one == "reboot" {
			w.add(piece{
				shape: structure, decision: Deny, text: clip(line),
				why: "the word " + one + " is denied wherever it stands", never: true,
			})
			return
		}
	}
}

// dirs are the directories in which a command may run. What is approved has to be harmless in each of the list, and is
// not approved if lost, because it needs the whole list. A credential is looked for in each and, if home is set, in the
// home directory too.
type dirs struct {
	list []string
	lost bool // it may run elsewhere too
	home bool // also in the home directory
}

// or returns the directories for a command that runs in d or in e.
func (d dirs) or(e dirs) dirs {
	d.list = slices.Clone(d.list)
	for _, dir := range e.list {
		if !slices.Contains(d.list, dir) {
			d.list = append(d.list, dir)
		}
	}
	d.lost, d.home = d.lost || e.lost, d.home || e.home
	if len(d.list) > maxDirs { // the middle is left out
		d.lost, d.list = true, slices.Concat(d.list[:maxDirs/2], d.list[len(d.list)-maxDirs/2:])
	}
	return d
}

// paths returns the paths that a name has in the directories.
func (d dirs) paths(name string) (all []string) {
	if filepath.IsAbs(name) {
		return []string{filepath.Clean(name)}
	}
	for _, dir := range d.list {
		all = append(all, resolve(dir, name))
	}
	return all
}

// after is where the shell may be after a command succeeded or failed.
type after struct{ succeeded, failed dirs }

func (a after) either() dirs { return a.succeeded.or(a.failed) }

func same(at dirs) after { return after{at, at} }

func (w *walker) list(stmts []*syntax.Stmt, at dirs) dirs {
	runs := true
	for i, s := range stmts {
		w.within(runs, i == len(stmts)-1, func() { at = w.stmt(s, at).either() })
		runs = runs && !leaves(s)
	}
	return at
}

// stmt judges the statements that it supports: lists, pipes, conditions, groups and simple commands. sweep judges the
// rest.
func (w *walker) stmt(s *syntax.Stmt, at dirs) after {
	w.prints(s)
	for _, r := range s.Redirs {
		w.redirect(r, at)
	}
	if s.Background || s.Coprocess || s.Disown {
		w.say(Ask, s, "it goes on in the background")
	}
	end := same(at)
	switch c := s.Cmd.(type) {
	case nil, *syntax.TestClause:
	case *syntax.CallExpr:
		w.feed(c, s.Redirs)
		end = w.call(c, at)
	case *syntax.BinaryCmd:
		end = w.binary(c, at)
	case *syntax.Subshell:
		w.list(c.Stmts, at)
	case *syntax.Block:
		end = same(w.list(c.Stmts, at))
	case *syntax.IfClause:
		w.within(false, false, func() { end = same(w.condition(c, at)) })
	case *syntax.TimeClause:
		if c.Stmt != nil {
			end = w.stmt(c.Stmt, at)
		}
	default: // a loop, or a function that is called later
		w.within(false, false, func() { end = same(w.roams(c, at)) })
	}
	if s.Negated {
		end.succeeded, end.failed = end.failed, end.succeeded
	}
	if s.Background {
		return same(at.or(end.either()))
	}
	return end
}

func (w *walker) binary(c *syntax.BinaryCmd, at dirs) after {
	switch c.Op {
	case syntax.AndStmt:
		var x, y after
		w.within(true, true, func() { x = w.stmt(c.X, at) })
		w.within(w.sure.ends && !leaves(c.X), true, func() { y = w.stmt(c.Y, x.succeeded) })
		return after{y.succeeded, x.failed.or(y.failed)}
	case syntax.OrStmt:
		var x, y after
		w.within(true, false, func() { x = w.stmt(c.X, at) })
		w.within(false, false, func() { y = w.stmt(c.Y, x.failed) })
		return after{x.succeeded.or(y.succeeded), y.failed}
	default:
		w.feedPipe(c)
		w.within(true, false, func() { w.stmt(c.X, at) })
		w.within(true, true, func() { w.stmt(c.Y, at) })
		return same(at) // each side runs in its own shell
	}
}

func (w *walker) condition(c *syntax.IfClause, at dirs) dirs {
	here := w.list(c.Cond, at)
	end := here.or(w.list(c.Then, here))
	if c.Else != nil {
		end = end.or(w.condition(c.Else, here))
	}
	return end
}

// readAlone reads a word without the possible values of an unknown one.
func (w *walker) readAlone(n *syntax.Word) word { return read(n, w.source, w.place.Home) }

// read reads a word, and judges the commands in it.
func (w *walker) read(n *syntax.Word, at dirs) word {
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CmdSubst); ok && !w.visited[c] {
			w.visited[c] = true
			w.inside++
			w.list(c.Stmts, at)
			w.inside--
			return false
		}
		return true
	})
	got := w.readAlone(n)
	if !got.known {
		got.may = w.values(n.Parts, at, 0)
	}
	return got
}
