package guard

import (
	_ "embed" // what programs do
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/autorun"
)

// Containment is what limits the effects of a call, whatever its text: walls that contain it, and a snapshot that can
// undo it. Where both do, only a call with effects beyond them needs a person; see Verdict.
type Containment struct {
	Walls   bool // commands can write only to the workspace and OpenDirs, and not to what is protected there
	Network bool // commands can reach the network, not only the hosts that the user has opened
	Cover   Cover
	// Trees are the repositories in which walls protect git's files; OpenDirs are directories outside of the workspace
	// that the walls leave open, such as the repository of a linked work tree.
	Trees, OpenDirs []string
}

// Cover is what a snapshot from before the call can restore. The zero value is nothing.
type Cover struct {
	Roots []string // directories
	Gaps  []Gap    // files in these directories that the snapshot does not have
}

// Gap is a file or a directory that a snapshot does not have.
type Gap struct {
	Path  string // absolute
	Why   string
	Loose bool // git may overwrite it: it is a file that no .gitignore excludes, or git's own state
}

// Holds reports whether everything that a call can change is contained and can be undone, except for the gaps.
func (p Place) Holds() bool {
	covered := func(dir string) bool {
		dir = filepath.Clean(dir)
		return slices.ContainsFunc(p.Containment.Cover.Roots,
			func(root string) bool { return pathname.Within(root, dir) }) &&
			!slices.ContainsFunc(p.Containment.Cover.Gaps, func(g Gap) bool { return pathname.Within(g.Path, dir) })
	}
	return p.Containment.Walls && covered(p.Root) && !slices.ContainsFunc(p.More, func(dir string) bool {
		return !covered(dir)
	})
}

// beyond is the kind of an effect that neither walls nor a snapshot cover. The greatest one of a call decides.
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

// needsPerson reports whether a person has to agree: the walls do not prevent the effect, or no program should attempt
// it unattended.
func (b beyond) needsPerson() bool { return b > outside }

// reaches records an effect of a piece beyond the ground.
func (p *piece) reaches(b beyond, why string) {
	p.remote = p.remote || b == network || b == published || b == another
	if b > p.beyond {
		p.beyond, p.because = b, why
	}
}

// refusedByWalls reports whether the walls prevent that effect.
func (p *piece) refusedByWalls(g Containment) bool {
	return p.beyond == outside || p.beyond == network && !g.Network
}

// needsNetwork reports whether an approval has to open the network to have any effect.
func (p *piece) needsNetwork(g Containment) bool {
	return g.Walls && !g.Network && p.remote
}

// settle turns the decision of the tables into the decision about this call. Where the ground holds, everything without
// an effect beyond it runs. Where it does not, a denial becomes a question that every mode asks.
//
//	never ─────────────────────────────▶ denied
//	protected, and the walls hold it ──▶ denied: a yes would change nothing
//	the ground does not hold ──────────▶ as the tables say; a denial is asked about
//	the ground holds ─┬─ no effect beyond it, or one that the walls prevent ─▶ runs
//	                  └─ any other effect beyond it ─▶ asked about
func (p *piece) settle(place Place) {
	switch holds := place.Holds(); {
	case p.never:
	case p.beyond == guarded && p.held && place.Containment.Walls:
		p.decision, p.why, p.firm = Deny, p.because+heldBack, false // an approval would change nothing
	case !holds:
		if p.decision == Deny && !p.unreadable {
			p.decision, p.firm = Ask, true
		}
	case p.beyond == nothing || p.beyond == outside || p.beyond == network && place.Containment.Network:
		p.decision, p.firm = Allow, false
	default:
		p.decision, p.why, p.firm = Ask, p.because, p.firm || p.beyond == guarded
	}
}

//go:embed beyond.txt
var programs string

// The kinds of lines in that table.
const (
	ofNetwork    = "network"
	ofPublishing = "publish"
	ofReading    = "read"
	ofChange     = "change"
	ofChangeLast = "change last"
	ofSparing    = "spare"
	ofShell      = "shell"
	ofLanguage   = "language"
	ofModule     = "module"
	ofAlone      = "alone"
	ofSetting    = "setter"
	ofVariable   = "variable"
	ofPlain      = "plain"
	ofLook       = "look"
	ofEditor     = "editor"
	ofOwnText    = "text"
)

// does reports whether a program, with its arguments, is in lines of a kind.
func does(kind, name string, args []string) bool {
	for line := range strings.Lines(programs) {
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

// verb reports whether arguments name a subcommand. It skips flags, each with the next word, which may be its value. If
// lax, that word may also be the subcommand: then an ambiguity makes the verdict stricter.
func verb(written string, args []string, lax bool) bool {
	if goal, ok := strings.CutPrefix(written, "*"); ok {
		return slices.ContainsFunc(args, func(a string) bool { // the name of a subproject may precede it
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

// reach records the effects of a simple command beyond the ground.
func (w *walker) reach(p *piece, name string, argv []word, at dirs) {
	args := texts(argv[1:])
	if (name == "python" || name == "python3") && len(args) > 1 && args[0] == "-m" {
		name, args, argv = args[1], args[2:], argv[2:]
	}
	words := args
	if w.place.Containment.Network && !argv[0].literal() {
		p.reaches(published, "which program this is is not known before it runs, and the network is open")
	}
	switch name {
	case "git":
		sub, rest := gitVerb(args)
		words = append([]string{sub}, rest...)
		if w.place.Containment.Network && slices.ContainsFunc(argv[1:len(argv)-len(rest)], func(a word) bool {
			return !a.known || strings.HasPrefix(strings.ToLower(a.text), "alias.") ||
				strings.HasPrefix(a.text, "--config-env")
		}) {
			p.reaches(published, "git is given an alias, which may publish, and the network is open")
		}
	case "go":
		if len(args) > 1 && (args[0] == "install" || args[0] == "run") &&
			strings.Contains(strings.Join(args, " "), "@") {
			p.reaches(network, NeedsNetwork)
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
			w.target(p, word{text: pathOfRemote(words), known: true}, change{}, at)
		}
	case name == "npm" && len(operandsOf(args)) == 1 && args[0] == "init":
	case does(ofReading, name, words):
		p.reaches(network, NeedsNetwork)
	case does(ofPublishing, name, words):
		p.reaches(published, "it publishes, or acts for you elsewhere; nothing takes that back")
	case !slices.Contains(args, "--offline") && does(ofNetwork, name, words):
		p.reaches(network, NeedsNetwork)
	}
	if name == "git" {
		w.gitLoses(p, words, argv, at)
	}
	targets := changed(name, argv)
	for _, target := range targets {
		w.target(p, target, changeBy(name), at)
	}
	w.altered(name, argv, targets, at)
	w.mayChange(p, name, argv, at)
}

// NeedsNetwork is the reason for a question about a command that only lacks the network.
const NeedsNetwork = "it needs the network, which the walls keep closed; --network HOST opens it to a host"

// pathOfRemote returns the directory that git uses as a remote repository, or "".
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

// asksForHelp reports whether a program only prints its help or version. With a second argument some programs do more.
func asksForHelp(args []string) bool {
	return len(args) == 1 && slices.Contains([]string{"--version", "--help", "-V", "-h", "help", "version"}, args[0])
}

// remote reports whether pip may download something. It does not if it is given only directories, without dependencies.
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
			targets = list[len(list)-1:]
		}
		return targets
	case name == "dd":
		for _, a := range argv[1:] {
			if file, found := strings.CutPrefix(a.text, "of="); found {
				targets = append(targets, word{text: file, known: a.known})
			}
		}
	case name == "find" && slices.ContainsFunc(argv, func(a word) bool { return a.text == "-delete" }):
		for _, a := range argv[1:] {
			if a.known && strings.HasPrefix(a.text, "-") {
				break
			}
			targets = append(targets, a)
		}
	case !short(texts(argv[1:]), "i") && !long(texts(argv[1:]), "--in-place"):
	case name == "sed" || name == "gsed":
		_, targets, _ = sedWords(argv[1:])
	case name == "perl" || name == "ruby":
		scripts := valuesOfFlags(argv[1:], []string{"-e", "-E"})
		targets = slices.DeleteFunc(operands(argv[1:]), func(a word) bool {
			return slices.ContainsFunc(scripts, func(s word) bool { return s.text == a.text })
		})
		if len(scripts) == 0 {
			targets = targets[min(1, len(targets)):]
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

// change is how a command changes a file that it names.
type change struct {
	beneath bool // and everything below it
	link    bool // for a link: the link itself and not its target
}

func changeBy(name string) change {
	link := slices.Contains([]string{"rm", "rmdir", "unlink"}, name)
	return change{link || slices.Contains([]string{"shred", "mv", "find"}, name), link}
}

// target records the effects beyond the ground of changing the file that a word names.
func (w *walker) target(p *piece, a word, takes change, at dirs) {
	for _, text := range a.mayBe() {
		if text == "" || text == "-" {
			continue
		}
		paths := at.paths(text)
		if strings.HasPrefix(text, anything) || at.lost && !filepath.IsAbs(text) {
			if strings.Contains(text, "..") {
				text = ""
			}
			paths = append(paths, filepath.Join(w.place.Root, anything, text))
		}
		for _, path := range paths {
			w.changes(p, path, a.pattern || !a.known, takes)
		}
	}
}

// changes records the effects beyond the ground of writing or removing a path, or the paths that a pattern may match.
func (w *walker) changes(p *piece, path string, pattern bool, takes change) {
	fixed := path
	if pattern {
		fixed = fixedPart(path)
	}
	w.changesThere(p, path, fixed, takes)
	p.onDevice(path)
	// A path that does not exist yet lies in the directory to which its parent leads.
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

// changesThere is changes without following links. fixed is the part of a pattern before any wildcard.
func (w *walker) changesThere(p *piece, path, fixed string, takes change) {
	place := w.place
	root := place.root(fixed)
	if root == "" {
		dirs := place.Containment.OpenDirs
		way := slices.IndexFunc(dirs, func(dir string) bool { return pathname.Within(dir, fixed) })
		switch {
		case way >= 0:
			p.reaches(uncovered, "undo does not cover "+dirs[way]+": it lies outside the workspace")
		case !temporary(fixed):
			p.reaches(outside, outsideWorkspace)
		}
		return
	}
	if name := place.Agents.protectedName(fixed, root); name != "" {
		p.protects(name+autorun.DecidesLater, place.wallsHold(name, fixed, root))
	}
	if why := place.later(fixed, false); why != "" {
		p.protects(why, true)
	}
	for _, g := range place.Containment.Cover.Gaps {
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
	heldBack         = ". The walls keep every command from it: use Write or Edit, which ask, or tell the user " +
		"what to do"
)

// protects records a change of a protected name. If no wall prevents one, that counts, because only then an approval
// has an effect.
func (p *piece) protects(why string, held bool) {
	if p.beyond < guarded {
		p.held = held
	}
	p.held = p.held && held
	p.reaches(guarded, why)
}

// wallsHold reports whether the walls protect a name. They protect every name at the top of a directory of the
// workspace, and git's names also in the repositories that existed when the walls were built.
func (p Place) wallsHold(name, path, root string) bool {
	tops := []string{root}
	if strings.HasPrefix(name, ".git/") || name == ".git" {
		tops = append(tops, p.Containment.Trees...)
	}
	return slices.ContainsFunc(tops, func(top string) bool {
		return foldedWithin(filepath.Join(top, filepath.FromSlash(name)), path)
	})
}

// gap returns the gap that contains a path.
func (c Cover) gap(path string) (Gap, bool) {
	i := slices.IndexFunc(c.Gaps, func(g Gap) bool { return pathname.Within(g.Path, path) })
	if i < 0 {
		return Gap{}, false
	}
	return c.Gaps[i], true
}

// lacks returns the sentence that a snapshot does not have a gap.
func (p Place) lacks(g Gap) string {
	name := g.Path
	if rel, within := pathname.In(p.Root, g.Path); within {
		name = rel
	}
	return "undo does not cover " + name + ": " + g.Why
}

// mayLack is lacks for a path that is not known before the command runs.
func (p Place) mayLack(g Gap) string {
	name, why, _ := strings.Cut(strings.TrimPrefix(p.lacks(g), "undo does not cover "), ": ")
	return "it may change " + name + ", which undo does not cover: " + why
}

// temporary reports whether each command behind walls has its own path of that name.
func temporary(path string) bool {
	return slices.ContainsFunc([]string{"/tmp", "/var/tmp", "/dev", "/proc/self/fd"},
		func(dir string) bool { return pathname.Within(dir, path) })
}
