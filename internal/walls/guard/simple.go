package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"

	"mvdan.cc/sh/v3/syntax"
)

// call judges a simple command, in each directory where it may run.
func (w *walker) call(c *syntax.CallExpr, at dirs) after {
	w.visited[c] = true
	if len(c.Args) == 0 {
		return same(at) // assignments are judged by sweep
	}
	argv := readEach(c, func(arg *syntax.Word) word { return w.read(arg, at) })
	if strings.HasPrefix(argv[0].text, "-") && argv[0].known { // bash takes it for a flag of a keyword: time -- ls
		argv[0].known, argv[0].why = false, "which program this is is not known"
	}
	p := piece{shape: simple, text: clip(slice(w.source, c)), argv: argv}
	w.fed, w.isFed = w.feeds[c]
	w.sure.own = &argv[0]
	w.denied(&p, argv, at)
	if wrapperOf(program(argv[0].text)).is("feeds") {
		for text := range strings.FieldsSeq(w.fed) {
			w.secret(&p, word{text: text, known: true}, at)
		}
	}
	if p.decision < Deny {
		if why := w.unlisted(argv, at); why != "" {
			p.say(Ask, why)
		}
	}
	to, moved := w.moved(argv, at)
	if moved && slices.ContainsFunc(to.list, func(dir string) bool { return w.place.credential(dir, false) }) {
		p.bar(keptThere)
	}
	w.add(p)
	if moved {
		return after{to, at}
	}
	return same(to)
}

// moved returns where the shell may be after a command that succeeded, and whether the command changes the directory.
func (w *walker) moved(argv []word, at dirs) (to dirs, moved bool) {
	for len(argv) > 1 && slices.Contains([]string{"command", "builtin", "-p", "--"}, argv[0].text) {
		argv = argv[1:]
	}
	switch name := argv[0].text; {
	case !argv[0].literal(): // it may be cd
		at.lost, at.home = true, true
		return at, false
	case slices.Contains([]string{"eval", "source", "."}, name):
		at.home = true
		return at, false
	case !slices.Contains([]string{"cd", "pushd", "popd"}, name):
		return at, false
	case len(argv) == 1 && name == "cd":
		argv = append(argv, word{text: w.place.Home, known: true})
	}
	for len(argv) > 2 && slices.Contains([]string{"--", "-L", "-P", "-e", "-@"}, argv[1].text) {
		argv = argv[1:]
	}
	if len(argv) != 2 || argv[1].known && (argv[1].text == "" || strings.ContainsAny(argv[1].text[:1], "-+")) {
		return dirs{lost: true, home: true}, true
	}
	return w.into(argv[1], at), true
}

// mostDeep limits the depth of directories in which credentials are looked for, since a line may descend without end.
const mostDeep = 24

// into returns the directories that a word names. Behind a link there are two: cd .. goes up from the link's name, and
// every other program from its target.
func (w *walker) into(a word, at dirs) (to dirs) {
	to.lost = !a.literal()
	for _, text := range a.mayBe() {
		if strings.Contains(text, anything) {
			to.home = true
			continue
		}
		from := at
		if filepath.IsAbs(text) {
			from = dirs{list: []string{"/"}}
		}
		next := dirs{lost: from.lost, home: from.home}
		for _, dir := range from.list {
			next.list = append(append(next.list, resolve(dir, text)), w.place.physical(dir, text)...)
		}
		to = to.or(next)
	}
	to.list = slices.DeleteFunc(to.list, func(dir string) bool {
		deep := strings.Count(dir, "/") > mostDeep
		to.lost = to.lost || deep
		return deep
	})
	return to
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
	at = w.sent(argv, at)
	for _, c := range all {
		w.deniedAlone(p, c.argv, at)
	}
	w.guess(p, all)
}

// sent returns where a command may work or start another: where a flag sends it and, since no table has every flag,
// each directory that it names, if there are credentials or files below that no snapshot has.
func (w *walker) sent(argv []word, at dirs) dirs {
	all := at
	for _, dir := range valuesOfFlags(argv[1:], []string{"-C", "--chdir", "--directory"}) {
		all = all.or(w.into(dir, at))
	}
	for _, a := range argv[1:] {
		for _, text := range meanings(a) {
			to := w.into(word{text: text, known: true}, at)
			to.lost, to.list = false, slices.DeleteFunc(to.list, func(dir string) bool {
				return !w.place.credential(dir, true) && !slices.ContainsFunc(w.place.Containment.Cover.Gaps,
					func(g Gap) bool { return pathname.Within(dir, g.Path) && dir != g.Path })
			})
			all = all.or(to)
		}
	}
	if slices.ContainsFunc(argv, func(a word) bool { return a.text == "-execdir" || a.text == "-okdir" }) {
		all.lost, all.home = true, all.home || len(all.list) > len(at.list) // wherever find finds something
	}
	return all
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
	w.ruins(p, name, argv, at)
	files := readsOperands(name)
	for i, a := range argv {
		if w.argument(p, a, at); i > 0 && files {
			w.reads(p, a, at)
		}
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
	p.runsUnknown = p.runsUnknown || how == unknownText || foreignText(name, argv)
	w.survey.fetches = w.survey.fetches || does(ofNetwork, name, nil)
	w.survey.reads = w.survey.reads || how == unknownText ||
		isInterpreter(name) && !isShell(name) && takes(name, argv) == fromInput
	switch {
	case how == knownText && w.depth >= maxInner:
		p.say(Deny, "texts of shells in texts of shells")
	case how == knownText:
		p.say(Ask, "a shell runs a text")
		p.runsKnown = true
		inner := walker{set: w.set, place: w.place, survey: w.survey, depth: w.depth + 1, sure: w.shellSure(argv)}
		inner.text(text, at)
	}
}

// connects asks about a connection that bash itself opens.
func (p *piece) connects() {
	p.connected = true
	p.say(Ask, "it opens a connection")
	p.reaches(network, NeedsNetwork)
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
	if !a.known {
		if strings.Contains(a.written, "/dev/tcp/") || strings.Contains(a.written, "/dev/udp/") {
			p.connects()
		}
		return
	}
	for _, text := range texts {
		if devicePath(text) {
			p.connects()
		}
		for _, path := range at.paths(text) {
			if path == "/etc/sudoers" || strings.HasPrefix(path, "/etc/sudoers.d") {
				p.say(Deny, "that file decides who may do what on this machine")
			}
		}
	}
}

// meanings returns what a word may be to a program: the word, and what follows =, @ or a short flag.
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
		if strings.HasPrefix(text, "-") && strings.ContainsAny(text, "/.") {
			texts = append(texts, text[2:], text[strings.IndexAny(text, "/."):])
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
	for _, text := range meanings(a) {
		if !namesFile(text) {
			continue
		}
		for _, path := range at.paths(text) {
			switch {
			case w.place.credential(path, false):
				p.bar(keptThere)
			case path == "/etc/shadow" || path == "/etc/gshadow":
				p.bar("passwords are kept there")
			}
		}
		if at.home && w.place.atHome(text) &&
			w.place.credential(resolve(w.place.Home, text), false) {
			p.bar(keptThere)
		}
	}
}

// atHome reports whether a relative path probably means the home directory if the directory is unknown. Names that
// projects have too do not.
func (p Place) atHome(text string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(filepath.Clean(text)), "/")
	shared := []string{".npmrc", ".yarnrc.yml", ".pypirc", ".docker", ".eidolon", ".eidolon.json", ".yume"}
	for _, one := range p.Agents {
		shared = append(shared, one.Settings...)
	}
	return p.Home != "" && !filepath.IsAbs(text) && !isPattern(first) && !slices.Contains(shared, first)
}

// starts returns the agent that a command starts, itself or through a package runner.
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

// started returns the commands that find starts by its arguments, with {} replaced by what it finds.
func started(name string, argv []word) (commands [][]word) {
	if !slices.Contains([]string{"find", "gfind", "fd", "fdfind"}, name) {
		return nil
	}
	var found []string
	fd := strings.HasPrefix(name, "fd") // it looks in the working directory too, and may leave {} out
	for _, a := range argv[1:] {
		if fd || a.known && (a.text == "" || strings.Contains("-(!", a.text[:1])) {
			break
		}
		for _, start := range a.mayBe() {
			found = append(found, start+"/"+anything)
		}
	}
	for i, a := range argv {
		if !slices.Contains([]string{
			"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch",
		}, a.text) {
			continue
		}
		command := argv[i+1:]
		for end, a := range command {
			if a.text == ";" || a.text == "+" && end > 0 && command[end-1].text == "{}" {
				command = command[:end]
				break
			}
		}
		if fd && !slices.ContainsFunc(command, func(a word) bool { return strings.Contains(a.text, "{") }) {
			command = append(slices.Clone(command), word{text: "{}"})
		}
		commands = append(commands, filled(command, "{}", found))
	}
	return commands
}
