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
	Walls   bool // no command writes beyond the workspace and Ways, nor what is protected there
	Network bool // but for the hosts that the user has opened
	Cover   Cover
	// Trees are the repositories in which walls hold what is protected of git's; Ways are directories outside of the
	// workspace that the walls leave open, such as the repository of a linked work tree.
	Trees, Ways []string
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
	p.remote = p.remote || b == network || b == published || b == another
	if b > p.beyond {
		p.beyond, p.because = b, why
	}
}

// shut reports whether the walls refuse what a piece does beyond.
func (p *piece) shut(g Ground) bool { return p.beyond == outside || p.beyond == network && !g.Network }

// opens reports whether a yes has to open the network, without which it would change nothing.
func (p *piece) opens(g Ground) bool {
	return g.Walls && !g.Network && p.remote
}

// settle makes the word of a table the word for this call. What holds lets everything run that does not reach beyond;
// where it does not hold, a denial of a table is a question that every mode asks.
func (p *piece) settle(place Place) {
	switch holds := place.Holds(); {
	case p.never:
	case p.beyond == guarded && p.held && place.Ground.Walls:
		p.word, p.why, p.firm = Deny, p.because+heldBack, false // a yes would change nothing
	case !holds:
		if p.word == Deny && !p.blind {
			p.word, p.firm = Ask, true
		}
	case p.beyond == nothing || p.beyond == outside || p.beyond == network && place.Ground.Network:
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
	ofReading    = "read"
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
			return verb(w, args, kind != ofReading)
		}) {
			return true
		}
	}
	return false
}

// verb reports whether arguments name a subcommand. Flags are left aside, each with a word that may be its value. Such
// a word counts as the subcommand too if lax, so that what may be one makes a verdict stricter and never milder.
func verb(written string, args []string, lax bool) bool {
	if goal, ok := strings.CutPrefix(written, "*"); ok {
		return slices.ContainsFunc(args, func(a string) bool { // a part of the project may stand before it
			return a == goal || strings.HasSuffix(a, ":"+goal) || a == "+"+goal
		})
	}
	wanted, value := strings.Split(written, "/"), false
	for _, a := range args {
		switch {
		case len(wanted) == 0:
			return true
		case value && !lax:
			value = false
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
	if w.place.Ground.Network && !argv[0].literal() {
		p.reaches(published, "which program this is is not known before it runs, and the network is open")
	}
	switch name {
	case "git":
		sub, rest := gitVerb(args)
		words = append([]string{sub}, rest...)
		if w.place.Ground.Network && slices.ContainsFunc(argv[1:len(argv)-len(rest)], func(a word) bool {
			return !a.known || strings.HasPrefix(strings.ToLower(a.text), "alias.") ||
				strings.HasPrefix(a.text, "--config-env")
		}) {
			p.reaches(published, "git is given an alias, which may publish, and the network is open")
		}
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
	switch {
	case asksForHelp(args):
	case name == "git" && pathOfRemote(words) != "":
		if words[0] == "push" {
			w.target(p, word{text: pathOfRemote(words), known: true}, toll{}, at)
		}
	case name == "npm" && len(operandsOf(args)) == 1 && args[0] == "init":
	case does(ofReading, name, words):
		p.reaches(network, needsNetwork)
	case does(ofPublishing, name, words):
		p.reaches(published, "it publishes, or acts for you elsewhere; nothing takes that back")
	case !slices.Contains(args, "--offline") && does(ofNetwork, name, words):
		p.reaches(network, needsNetwork)
	}
	if name == "git" {
		w.gitLoses(p, words, argv, at)
	}
	for _, target := range changed(name, argv) {
		w.target(p, target, tollOf(name), at)
	}
	w.mayChange(p, name, argv, at)
}

const needsNetwork = "it needs the network, which the walls keep closed; --network HOST opens it to a host"

// pathOfRemote returns the directory that git takes for a remote repository, or "" if it takes none.
func pathOfRemote(words []string) string {
	if !slices.Contains([]string{"clone", "fetch", "pull", "push", "ls-remote"}, words[0]) {
		return ""
	}
	operands := operandsOf(words[1:])
	if len(operands) == 0 || slices.ContainsFunc(operands, func(a string) bool {
		return strings.Contains(a, "://") && !strings.HasPrefix(a, "file://") || strings.Contains(a, "::")
	}) {
		return ""
	}
	path := strings.TrimPrefix(operands[0], "file://")
	if path == "." || path == ".." || strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../") ||
		strings.HasPrefix(path, "/") {
		return path
	}
	return ""
}

// asksForHelp reports whether a program only says what it is. With another argument some go on.
func asksForHelp(args []string) bool {
	return len(args) == 1 && slices.Contains([]string{"--version", "--help", "-V", "-h", "help", "version"}, args[0])
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

// toll is what a command takes of a file that it changes.
type toll struct {
	beneath bool // all that is beneath it as well
	link    bool // where it is a link, the link and not what it leads to
}

func tollOf(name string) toll {
	return toll{removes(name), slices.Contains([]string{"rm", "rmdir", "unlink"}, name)}
}

// target notes what is beyond about a file that a command changes.
func (w *walker) target(p *piece, a word, takes toll, at dirs) {
	texts := []string{a.text}
	if !a.known {
		texts = append(slices.Clone(a.may), anything)[:max(1, len(a.may))]
	}
	if at.lost { // a loop or a function is judged from nowhere
		at = w.begin
	}
	for _, text := range texts {
		list := at.list
		switch {
		case text == "" || text == "-":
			continue
		case strings.HasPrefix(text, anything), at.lost && !filepath.IsAbs(text):
			if list = []string{w.place.Root}; strings.Contains(text, "..") {
				text = ""
			}
			text = anything + "/" + text
		case filepath.IsAbs(text):
			list = []string{"/"}
		}
		for _, dir := range list {
			w.changes(p, resolve(dir, text), a.pattern || !a.known, takes)
		}
	}
}

// changes notes what is beyond about a path that is written or removed, or about those that a pattern may become.
func (w *walker) changes(p *piece, path string, pattern bool, takes toll) {
	fixed := path
	if pattern {
		fixed = fixedPart(path)
	}
	w.changesThere(p, path, fixed, takes)
	// one that is not there yet is where the directory above it leads
	up := path
	if strings.Contains(path, anything) {
		up = fixed
	} else if takes.link {
		up = filepath.Dir(path)
	}
	for ; w.place.root(up) != ""; up = filepath.Dir(up) {
		reals := w.place.leads(up)
		for _, real := range reals {
			real = filepath.Join(real, strings.TrimPrefix(path, up))
			w.changesThere(p, real, fixedPart(real), takes)
		}
		if len(reals) > 0 {
			return
		}
	}
}

// changesThere notes what is beyond about a pattern for paths, of which the first part is fixed.
func (w *walker) changesThere(p *piece, path, fixed string, takes toll) {
	place := w.place
	root := place.root(fixed)
	if root == "" {
		switch way := slices.IndexFunc(place.Ground.Ways, func(dir string) bool { return within(dir, fixed) }); {
		case way >= 0:
			p.reaches(uncovered, "undo does not cover "+place.Ground.Ways[way]+": it lies outside the workspace")
		case !temporary(fixed):
			p.reaches(outside, outsideWorkspace)
		}
		return
	}
	if name := place.Agents.protectedName(fixed, root); name != "" {
		p.protects(name+decidesLater, place.wallsHold(name, fixed, root))
	}
	if place.Kept != nil {
		for _, kept := range place.Kept() {
			if foldedWithin(kept, fixed) {
				p.protects(kept+" is protected: git's configuration names it", true)
			}
		}
	}
	for _, g := range place.Ground.Cover.Gaps {
		switch meets := overlaps(path, g.Path, takes.beneath); {
		case !meets:
		case strings.Contains(path, anything):
			p.reaches(uncovered, place.mayLack(g))
		default:
			p.reaches(uncovered, place.lacks(g))
		}
	}
}

const (
	outsideWorkspace = "it writes outside the workspace, which the walls refuse; --add-dir DIR opens a directory"
	decidesLater     = " is protected: it decides what is run or obeyed later"
	heldBack         = ". The walls keep every command from it: use Write or Edit, which ask, or tell the user " +
		"what to do"
)

// protects notes a protected name. One that no wall holds outweighs, because there a yes changes something.
func (p *piece) protects(why string, held bool) {
	if p.beyond < guarded {
		p.held = held
	}
	p.held = p.held && held
	p.reaches(guarded, why)
}

// wallsHold reports whether the walls hold a protected name beneath a directory of the workspace: each at its top, and
// those of git's in the repositories that were there when the walls were built.
func (p Place) wallsHold(name, path, root string) bool {
	tops := []string{root}
	if strings.HasPrefix(name, ".git/") || name == ".git" {
		tops = append(tops, p.Ground.Trees...)
	}
	return slices.ContainsFunc(tops, func(top string) bool {
		return foldedWithin(filepath.Join(top, filepath.FromSlash(name)), path)
	})
}

// gap returns what a snapshot does not have of a path.
func (c Cover) gap(path string) (Gap, bool) {
	i := slices.IndexFunc(c.Gaps, func(g Gap) bool { return within(g.Path, path) })
	if i < 0 {
		return Gap{}, false
	}
	return c.Gaps[i], true
}

// lacks says what a snapshot does not have.
func (p Place) lacks(g Gap) string {
	name := g.Path
	if rel, err := filepath.Rel(p.Root, g.Path); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	return "undo does not cover " + name + ": " + g.Why
}

// mayLack says it of a path that is not known before it runs.
func (p Place) mayLack(g Gap) string {
	name, why, _ := strings.Cut(strings.TrimPrefix(p.lacks(g), "undo does not cover "), ": ")
	return "it may change " + name + ", which undo does not cover: " + why
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
