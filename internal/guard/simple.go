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
	w.fetched(c, argv)
	if p.decision < Deny {
		if why := w.closed(&p, argv, at); why != "" && p.decision < Ask {
			p.decision, p.why = Ask, why
		}
	}
	w.add(p)
	named := argv[0]
	if len(argv) > 1 && (named.text == "command" || named.text == "builtin") {
		named = argv[1]
	}
	switch {
	case !named.literal():
	case argv[0].text == "cd":
		return w.moved(argv[1:], at)
	case named.text == "cd" || named.text == "pushd" || named.text == "popd":
		return after{dirs{lost: true}, at}
	}
	return same(at)
}

// moved returns where cd leads.
func (w *walker) moved(args []word, at dirs) after {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if at.lost || len(args) != 1 || !args[0].literal() || args[0].text == "-" {
		return after{dirs{lost: true}, at}
	}
	var to dirs
	for _, dir := range at.list {
		path := resolve(dir, args[0].text)
		if len(w.place.leads(path)) > 0 {
			return after{dirs{lost: true}, at} // what .. means there depends on the program
		}
		to.list = append(to.list, path)
	}
	return after{to, at}
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

// argument denies arguments that no command may have: a credential, the memory of another process, a file that grants
// rights.
func (w *walker) argument(p *piece, a word, at dirs) {
	texts := a.may
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
	for _, text := range texts {
		if (a.pattern || !a.known) && text != "" && !strings.Contains(text, anything) && !strings.HasPrefix(text, "-") {
			w.meant(p, text, at)
		}
	}
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
		if !strings.Contains(text, "/") && !strings.HasPrefix(text, ".") {
			continue
		}
		for _, dir := range append(slices.Clone(at.list), w.place.Dir)[:max(1, len(at.list))] {
			path := resolve(dir, text)
			switch {
			case w.place.credential(path, false) != "":
				p.bar("credentials are kept there")
			case path == "/etc/shadow" || path == "/etc/gshadow":
				p.bar("passwords are kept there")
			case path == "/etc/sudoers" || strings.HasPrefix(path, "/etc/sudoers.d"):
				p.say(Deny, "that file decides who may do what on this machine")
			}
		}
	}
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
