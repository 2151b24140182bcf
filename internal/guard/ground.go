package guard

import (
	_ "embed" // what programs do
	"path/filepath"
	"slices"
	"strings"
)

// Ground is what lies beneath a call, whatever its text is: what contains it, and what takes it back. With both of them
// only those calls need a person that reach beyond; see Verdict.
type Ground struct {
	Walls   bool // nothing that a command does reaches beyond the workspace
	Network bool // but for the hosts that the user has opened
	Cover   Cover
}

// Cover is what a snapshot from before the call can give back. The zero value is nothing.
type Cover struct {
	Roots []string // directories
	Gaps  []Gap    // what it does not have of them
}

// Gap is a file or a directory that a snapshot does not have.
type Gap struct {
	Path  string // absolute
	Why   string
	Loose bool // git may overwrite it: it is a file that no .gitignore excludes, or git's own state
}

// Holds reports whether all that a call can change is contained and can be taken back, but for the gaps.
func (p Place) Holds() bool {
	covered := func(dir string) bool {
		dir = filepath.Clean(dir)
		return slices.ContainsFunc(p.Ground.Cover.Roots, func(root string) bool { return within(root, dir) }) &&
			!slices.ContainsFunc(p.Ground.Cover.Gaps, func(g Gap) bool { return within(g.Path, dir) })
	}
	return p.Ground.Walls && covered(p.Root) && !slices.ContainsFunc(p.More, func(dir string) bool {
		return !covered(dir)
	})
}

// beyond is a part of a call that neither walls nor a snapshot answer for. A greater one outweighs.
type beyond uint8

const (
	nothing   beyond = iota
	network          // the walls keep it closed
	outside          // a file outside the workspace, which the walls keep from being written
	uncovered        // a file that no snapshot has
	published
	another // an agent
	guarded // a protected name
)

// grave reports whether somebody has to agree: the walls do not refuse it by themselves, or what it asks for is more
// than a program that nobody watches should try.
func (b beyond) grave() bool { return b > outside }

// reaches notes what a piece does beyond.
func (p *piece) reaches(b beyond, why string) {
	if b > p.beyond {
		p.beyond, p.because = b, why
	}
}

// shut reports whether the walls refuse what a piece does beyond.
func (p *piece) shut(g Ground) bool { return p.beyond == outside || p.beyond == network && !g.Network }

// settle makes the word of a table the word for this call. What holds lets everything run that does not reach beyond;
// where it does not hold, a denial of a table is a question that every mode asks.
func (p *piece) settle(place Place) {
	switch holds := place.Holds(); {
	case p.never:
	case !holds:
		if p.word == Deny && !p.blind {
			p.word, p.firm = Ask, true
		}
	case p.beyond == nothing || p.beyond == network && place.Ground.Network:
		p.word, p.firm = Allow, false
	default:
		p.word, p.why, p.firm = Ask, p.because, p.firm || p.beyond == guarded
	}
}

//go:embed beyond.txt
var farther string

// kinds of lines in that table.
const (
	ofNetwork    = "network"
	ofPublishing = "publish"
	ofChange     = "change"
	ofChangeLast = "change last"
)

// does reports whether a program, given by its words, is in a kind of lines of the table.
func does(kind, name string, args []string) bool {
	for line := range strings.Lines(farther) {
		rest, found := strings.CutPrefix(line, kind)
		head, list, colon := strings.Cut(rest, ":")
		if !found || !colon || line[0] == '#' || head != "" && (head[0] != ' ' || kind == ofChange) {
			continue
		}
		words := strings.Fields(list)
		if head == "" {
			if slices.Contains(words, name) {
				return true
			}
			continue
		}
		if slices.Contains(strings.Split(head[1:], ", "), name) && slices.ContainsFunc(words, func(w string) bool {
			return verb(w, args)
		}) {
			return true
		}
	}
	return false
}

// verb reports whether arguments name a subcommand. Flags are left aside, each with a word that may be its value.
func verb(written string, args []string) bool {
	wanted, value := strings.Split(written, "/"), false
	for _, a := range args {
		switch {
		case len(wanted) == 0:
			return true
		case strings.EqualFold(a, wanted[0]):
			wanted, value = wanted[1:], false
		case strings.HasPrefix(a, "-"):
			value = !strings.Contains(a, "=")
		case value:
			value = false
		default:
			return false
		}
	}
	return len(wanted) == 0
}

// reach notes what a simple command does beyond the ground.
func (w *walker) reach(p *piece, name string, argv []word, at dirs) {
	args := make([]string, len(argv)-1)
	for i, a := range argv[1:] {
		args[i] = a.text
	}
	if (name == "python" || name == "python3") && len(args) > 1 && args[0] == "-m" {
		name, args, argv = args[1], args[2:], argv[2:]
	}
	words := args
	switch name {
	case "git":
		sub, rest := gitVerb(args)
		words = append([]string{sub}, rest...)
	case "go":
		if len(args) > 1 && (args[0] == "install" || args[0] == "run") &&
			strings.Contains(strings.Join(args, " "), "@") {
			p.reaches(network, needsNetwork)
		}
	case "pip", "pip3":
		if !remote(args) {
			words = nil
		}
	}
	if does(ofNetwork, name, words) && !asksForHelp(args) {
		p.reaches(network, needsNetwork)
	}
	if does(ofPublishing, name, words) && !asksForHelp(args) {
		p.reaches(published, name+" acts outside of this machine, where nothing takes it back")
	}
	if name == "git" {
		w.gitLoses(p, words)
	}
	for _, target := range changed(name, argv) {
		w.target(p, target, removes(name), at)
	}
}

const needsNetwork = "it needs the network, which the walls keep closed; --network HOST opens it to a host"

// asksForHelp reports whether a program only says what it is.
func asksForHelp(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"--version", "--help", "-V", "-h", "help", "version"}, args[0])
}

// remote reports whether pip may fetch something: not where it is given directories and told to leave the rest.
func remote(args []string) bool {
	if long(args, "--no-index") {
		return false
	}
	return !long(args, "--no-deps", "--no-build-isolation") || slices.ContainsFunc(args[1:], func(a string) bool {
		return !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, ".") && !strings.HasPrefix(a, "/")
	})
}

// changed returns the words that name what a command changes.
func changed(name string, argv []word) (targets []word) {
	operands := func(argv []word) (list []word) {
		for i, a := range argv {
			if a.text == "--" && a.known {
				return append(list, argv[i+1:]...)
			}
			if !a.known || !strings.HasPrefix(a.text, "-") || a.text == "-" {
				list = append(list, a)
			}
		}
		return list
	}
	switch {
	case does(ofChange, name, nil):
		return operands(argv[1:])
	case does(ofChangeLast, name, nil):
		for i, a := range argv {
			if a.text == "-t" && i+1 < len(argv) {
				return argv[i+1 : i+2]
			}
			if dir, found := strings.CutPrefix(a.text, "--target-directory="); found && a.known {
				return []word{{text: dir, known: true}}
			}
		}
		if list := operands(argv[1:]); len(list) > 1 {
			return list[len(list)-1:]
		}
	case name == "dd":
		for _, a := range argv[1:] {
			if file, found := strings.CutPrefix(a.text, "of="); found {
				targets = append(targets, word{text: file, known: a.known})
			}
		}
	case name == "sed" || name == "perl" || name == "ruby":
		if short(texts(argv[1:]), "i") || long(texts(argv[1:]), "--in-place") {
			if list := operands(argv[1:]); len(list) > 1 {
				return list[1:] // the first is the script
			}
		}
	case name == "find" && slices.ContainsFunc(argv, func(a word) bool { return a.text == "-delete" }):
		for _, a := range argv[1:] {
			if a.known && strings.HasPrefix(a.text, "-") {
				break
			}
			targets = append(targets, a)
		}
	}
	return targets
}

func texts(argv []word) []string {
	list := make([]string, len(argv))
	for i, a := range argv {
		list[i] = a.text
	}
	return list
}

// removes reports whether a program takes whole trees away.
func removes(name string) bool {
	return slices.Contains([]string{"rm", "rmdir", "shred", "mv", "find", "unlink"}, name)
}

// target notes what is beyond about a file that a command changes.
func (w *walker) target(p *piece, a word, whole bool, at dirs) {
	place := w.place
	switch {
	case !a.known || at.lost && !filepath.IsAbs(a.text):
		if whole && len(place.Ground.Cover.Gaps) > 0 {
			p.reaches(uncovered, "what it removes is not known before it runs, and "+
				place.lacks(place.Ground.Cover.Gaps[0]))
		}
		return
	case a.text == "" || a.text == "-":
		return
	}
	list := at.list
	if filepath.IsAbs(a.text) {
		list = []string{"/"}
	}
	for _, dir := range list {
		path := resolve(dir, a.text)
		if a.pattern {
			fixed, _, _ := strings.Cut(path, "*")
			fixed, _, _ = strings.Cut(fixed, "?")
			path = filepath.Dir(fixed + "x")
		}
		w.changes(p, path, whole || a.pattern)
	}
}

// changes notes what is beyond about a path that is written, or removed with all beneath it.
func (w *walker) changes(p *piece, path string, whole bool) {
	place := w.place
	root := place.root(path)
	if root == "" {
		if !temporary(path) {
			p.reaches(outside, outsideWorkspace)
		}
		return
	}
	if name := place.Agents.protectedName(path, root); name != "" {
		p.reaches(guarded, name+decidesLater)
	}
	if place.Kept != nil {
		for _, kept := range place.Kept() {
			if foldedWithin(kept, path) {
				p.reaches(guarded, kept+" is protected: git's configuration names it")
			}
		}
	}
	if g, ok := place.Ground.Cover.gap(path, whole); ok {
		p.reaches(uncovered, place.lacks(g))
	}
}

const (
	outsideWorkspace = "it writes outside the workspace, which the walls refuse; --add-dir DIR opens a directory"
	decidesLater     = " is protected: it decides what is run or obeyed later"
)

// gap returns what a snapshot does not have of a path or, with whole, of what is beneath it.
func (c Cover) gap(path string, whole bool) (Gap, bool) {
	for _, g := range c.Gaps {
		if within(g.Path, path) || whole && within(path, g.Path) {
			return g, true
		}
	}
	return Gap{}, false
}

// lacks says what a snapshot does not have.
func (p Place) lacks(g Gap) string {
	name := g.Path
	if rel, err := filepath.Rel(p.Root, g.Path); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	return "undo does not cover " + name + ": " + g.Why
}

// gitLoses notes what git throws away that no snapshot has.
func (w *walker) gitLoses(p *piece, words []string) {
	switch words[0] {
	case "clean":
	case "reset", "checkout", "restore", "switch", "stash", "rebase", "branch", "gc", "prune", "reflog", "update-ref",
		"filter-branch", "worktree":
	default:
		return
	}
	for _, g := range w.place.Ground.Cover.Gaps {
		if words[0] == "clean" || g.Loose {
			p.reaches(uncovered, w.place.lacks(g))
			return
		}
	}
}

// temporary reports whether a path is one that commands have for themselves, behind walls.
func temporary(path string) bool {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev", "/proc/self/fd"} {
		if within(dir, path) {
			return true
		}
	}
	return false
}
