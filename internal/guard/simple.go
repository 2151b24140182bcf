package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call judges one simple command, for each directory where it may run.
func (w *walker) call(c *syntax.CallExpr, at dirs) after {
	w.visited[c] = true
	if len(c.Args) == 0 {
		return same(at) // assignments are judged by sweep
	}
	argv := make([]word, len(c.Args))
	for i, arg := range c.Args {
		argv[i] = w.read(arg, at)
	}
	if strings.HasPrefix(argv[0].text, "-") && argv[0].known { // bash takes it for a flag of a keyword: time -- ls
		argv[0].known, argv[0].why = false, "which program this is is not known"
	}
	p := piece{shape: simple, text: clip(slice(w.source, c)), argv: argv, inner: w.depth > 0}
	w.fed, w.isFed = w.feeds[c]
	w.denied(&p, argv, at)
	if wrapperOf(program(argv[0].text)).feeds {
		for text := range strings.FieldsSeq(w.fed) {
			w.secret(&p, word{text: text, known: true}, at)
		}
	}
	w.fetched(c, argv)
	if p.decision < Deny {
		if why := w.closed(&p, argv, at); why != "" && p.decision < Ask {
			p.decision, p.why = Ask, why
		}
	}
	end := same(at)
	if named := behindBuiltin(argv); named[0].literal() && changesDirectory(named[0].text) {
		to := w.near(named, at)
		if slices.ContainsFunc(to.near, func(dir string) bool { return w.place.credential(dir, false) != "" }) {
			p.bar(keptThere)
		}
		if argv[0].text == "cd" {
			to = w.moved(argv[1:], at, to)
		}
		end = after{to, at}
	}
	w.add(p)
	return end
}

// moved returns where cd leads, or near if that is not certain.
func (w *walker) moved(args []word, at, near dirs) dirs {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if at.lost || len(args) != 1 || !args[0].literal() || args[0].text == "-" {
		return near
	}
	var to dirs
	for _, dir := range at.list {
		path := resolve(dir, args[0].text)
		if len(w.place.leads(path)) > 0 {
			return near // what .. means there depends on the program
		}
		to.list = append(to.list, path)
	}
	return to
}

// mostDeep limits the depth of directories in which credentials are looked for, since a line may go down without end.
const mostDeep = 24

func changesDirectory(name string) bool {
	return slices.Contains([]string{"cd", "pushd", "popd"}, name)
}

// behindBuiltin drops the words that make bash take what follows for one of its own commands.
func behindBuiltin(argv []word) []word {
	if len(argv) > 1 && (argv[0].text == "command" || argv[0].text == "builtin") {
		return argv[1:]
	}
	return argv
}

// near returns the directories to which a command probably leads; only credentials are looked for there. Behind a link
// these are two: cd .. goes up from the link's name, and every other program from its target.
func (w *walker) near(argv []word, at dirs) dirs {
	if !argv[0].literal() || !changesDirectory(argv[0].text) {
		return dirs{lost: true}
	}
	args := argv[1:]
	for len(args) > 0 && slices.Contains([]string{"--", "-L", "-P", "-e", "-@"}, args[0].text) {
		args = args[1:]
	}
	to := dirs{lost: true, all: true}
	var texts []string
	switch {
	case len(args) == 0 && argv[0].text == "cd" && w.place.Home != "":
		texts = []string{w.place.Home}
	case len(args) != 1 || argv[0].text == "popd" || strings.HasPrefix(args[0].text, "-"),
		argv[0].text == "pushd" && strings.HasPrefix(args[0].text, "+"):
		return dirs{lost: true}
	case args[0].known:
		texts = []string{args[0].text}
	default:
		texts = args[0].may
		to.all = len(texts) > 0
	}
	from, certain := at.likely()
	for _, text := range texts {
		if strings.Contains(text, anything) {
			to.all = false
			continue
		}
		dirs := from
		if filepath.IsAbs(text) {
			dirs = []string{"/"}
		} else {
			to.all = to.all && certain
		}
		for _, dir := range dirs {
			for _, path := range append([]string{resolve(dir, text)}, w.place.physical(dir, text)...) {
				if !slices.Contains(to.near, path) && strings.Count(path, "/") <= mostDeep {
					to.near = append(to.near, path)
				}
			}
		}
	}
	to.near = clipDirs(to.near)
	return to
}

// physical returns where a path leads over links, also where .. stands behind one.
func (p Place) physical(dir, text string) []string {
	if !filepath.IsAbs(text) {
		text = dir + string(filepath.Separator) + text // not cleaned: .. behind a link leaves where that leads
	}
	return p.leads(text)
}

// program returns the name of a program as in the tables: without directory, case and .exe.
func program(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.ToLower(name)
	for _, ending := range []string{".exe", ".cmd", ".bat", ".com"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// denied looks for agents and forbidden programs, also behind wrappers and in texts that a shell runs.
func (w *walker) denied(p *piece, argv []word, at dirs) {
	all, deep := commands(argv)
	if deep {
		p.say(Deny, "wrappers around wrappers")
	}
	for _, c := range all {
		w.deniedAlone(p, c.argv, at)
	}
	w.guess(p, all)
}

func (w *walker) deniedAlone(p *piece, argv []word, at dirs) {
	name := program(argv[0].text)
	if !argv[0].known {
		name = ""
	}
	if why := w.forbids(name, argv); why != "" {
		p.say(Deny, why)
		p.denied, p.never = name, p.never || w.set == SysBuiltIn
	}
	for _, a := range argv {
		w.argument(p, a, at)
	}
	w.reach(p, name, argv, at)
	p.setByWords(name, argv)
	if evaluates(argv) {
		p.runsUnknown, w.evaluates = true, true
	}
	p.runsUnknown = p.runsUnknown || rereads(name) || readsPipe(name, argv) ||
		slices.ContainsFunc(at.list, func(dir string) bool { return opened(dir) != noText }) // cd /dev/fd && bash 3
	if agent := w.place.Agents.starts(name, argv); agent != "" {
		p.agent = agent
		p.say(Ask, "it starts the agent "+agent+", whose tools nobody here judges")
		if name != agent || len(argv) != 2 || !slices.Contains([]string{"--version", "--help"}, argv[1].text) {
			p.reaches(another, p.why)
		}
	}
	text, how := shellText(name, argv)
	if how == noText {
		if text, how = w.fed, readsText(name, argv); how == knownText && (!w.isFed || strings.TrimSpace(text) == "") {
			how = unknownText
		}
	}
	switch {
	case how == unknownText, foreignText(name, argv):
		p.runsUnknown = true
	case how == knownText && w.depth >= maxInner:
		p.say(Deny, "texts of shells in texts of shells")
	case how == knownText:
		p.say(Ask, "a shell runs a text")
		p.runsKnown = true
		inner := walker{set: w.set, place: w.place, survey: w.survey, depth: w.depth + 1}
		inner.text(text, at)
	}
}

// connects denies a connection that bash itself opens.
func (p *piece) connects() {
	p.say(Deny, "it opens a connection")
	p.reaches(network, needsNetwork)
}

// rereads reports whether a command changes how bash reads later commands.
func rereads(name string) bool {
	return slices.Contains([]string{"alias", "shopt", "enable", "hash", "trap", "bind", "complete"}, name)
}

const keptThere = "credentials are kept there"

// argument denies arguments that no command may have: a credential, the memory of another process, a file that grants
// rights.
func (w *walker) argument(p *piece, a word, at dirs) {
	texts := meanings(a)
	for _, text := range texts {
		if (a.pattern || !a.known) && text != "" && !strings.Contains(text, anything) && !strings.HasPrefix(text, "-") {
			w.meant(p, text, at)
		}
	}
	w.secret(p, a, at)
	if !a.known || at.lost && !filepath.IsAbs(a.text) {
		if strings.Contains(a.written, "/dev/tcp/") || strings.Contains(a.written, "/dev/udp/") {
			p.connects()
		}
		return
	}
	for _, text := range texts {
		if devicePath(text) {
			p.connects()
		}
		if !namesFile(text) {
			continue
		}
		for _, dir := range append(slices.Clone(at.list), w.place.Dir)[:max(1, len(at.list))] {
			path := resolve(dir, text)
			if path == "/etc/sudoers" || strings.HasPrefix(path, "/etc/sudoers.d") {
				p.say(Deny, "that file decides who may do what on this machine")
			}
		}
	}
}

// meanings returns what a word may be to a program: the word, what is behind = and behind @.
func meanings(a word) []string {
	texts := slices.Clone(a.may)
	if a.known {
		texts = []string{a.text}
	}
	for _, text := range slices.Clone(texts) {
		if _, value, found := strings.Cut(text, "="); found {
			texts = append(texts, value)
		}
		if strings.HasPrefix(text, "@") || strings.HasPrefix(text, "<") {
			texts = append(texts, text[1:])
		}
	}
	return texts
}

// namesFile reports whether a text looks like the name of a file.
func namesFile(text string) bool { return strings.Contains(text, "/") || strings.HasPrefix(text, ".") }

// secret denies a word that names a credential. A shell that may be anywhere may be in the home directory.
func (w *walker) secret(p *piece, a word, at dirs) {
	if !a.known {
		return
	}
	list, all := at.likely()
	for _, text := range meanings(a) {
		if !namesFile(text) {
			continue
		}
		dirs := list
		if filepath.IsAbs(text) {
			dirs = []string{"/"}
		}
		for _, dir := range dirs {
			switch path := resolve(dir, text); {
			case w.place.credential(path, false) != "":
				p.bar(keptThere)
			case path == "/etc/shadow" || path == "/etc/gshadow":
				p.bar("passwords are kept there")
			}
		}
		if !all && !filepath.IsAbs(text) && w.place.atHome(text) &&
			w.place.credential(resolve(w.place.Home, text), false) != "" {
			p.bar(keptThere)
		}
	}
}

// atHome reports whether a relative path probably means the home directory if the directory is not known. Names that
// projects have too do not.
func (p Place) atHome(text string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(filepath.Clean(text)), "/")
	shared := []string{".npmrc", ".yarnrc.yml", ".pypirc", ".docker", ".eidolon", ".eidolon.json", ".yume"}
	for _, one := range p.Agents {
		shared = append(shared, one.Settings...)
	}
	return p.Home != "" && !isPattern(first) && !slices.Contains(shared, first)
}

// starts names the agent that a command starts, by itself or through a runner of packages.
func (a Agents) starts(name string, argv []word) string {
	agents := []string{
		"omniagent", "omniagentd", "eidolon", "yume-cli", "cursor-agent", "aider", "goose", "amp", "crush", "qwen",
		"agy",
		"pi", "droid", "auggie",
	}
	packages := map[string]string{}
	for _, one := range a {
		agents = append(agents, one.Program)
		packages[one.Package] = one.Program
	}
	if slices.Contains(agents, name) {
		return name
	}
	start := 1
	switch name {
	case "npx", "bunx", "pnpx", "uvx", "pipx":
	case "npm", "pnpm", "yarn", "bun", "gh":
		start = 2
	default:
		return ""
	}
	for _, argument := range argv[min(start, len(argv)):] {
		text := strings.ToLower(argument.text)
		if strings.HasPrefix(text, "-") {
			_, text, _ = strings.Cut(text, "=")
		}
		if i := strings.LastIndex(text, "@"); i > 0 {
			text = text[:i]
		}
		if agent := packages[text]; agent != "" && text != "" {
			return agent
		}
		if slices.Contains(agents, text) {
			return text
		}
	}
	if name == "gh" && len(argv) > 1 && slices.Contains(agents, argv[1].text) { // an extension of that name
		return argv[1].text
	}
	return ""
}

// started returns the commands that find and git start by their arguments.
func started(name string, argv []word) (commands [][]word) {
	switch name {
	case "find", "gfind", "fd", "fdfind":
		for i, a := range argv {
			switch a.text {
			case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
				if i+1 < len(argv) {
					commands = append(commands, argv[i+1:])
				}
			}
		}
	}
	return commands
}
