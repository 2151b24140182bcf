package guard

import "strings"

// ofData is the kind of lines with programs whose operands are only data.
const ofData = "data"

// mostTried limits the words of one command that are compared with a rule, or taken for a program. With more, the rule
// may apply, and a person is asked.
const mostTried = 64

// startsNothing reports whether the words by which a command starts another are known: those that commands finds, or
// none. It lists known programs, so that a new one is not trusted.
func startsNothing(name string, argv []word) bool {
	args := texts(argv[1:])
	if isPython(name) && len(args) > 1 && args[0] == "-m" {
		name, args = args[1], args[2:]
	}
	return name == "git" || onlyReads(name) || wrapperOf(name).name != "" || does(ofChange, name, nil) ||
		does(ofChangeLast, name, nil) || does(ofData, name, args)
}

// onlyReads reports whether a program starts none of its words, and changes only files that special flags name.
func onlyReads(name string) bool {
	_, _, listed := listedAs(name)
	return listed || does(ofLook, name, nil)
}

// readsOperands reports whether the words of such a program may be files that it reads.
func readsOperands(name string) bool {
	operands, _, _ := listedAs(name)
	return onlyReads(name) && operands != "words" && name != "printf" && name != "set"
}

// unknownStarter returns the words of a program that may start any of them, because no table lists it.
func unknownStarter(all []candidate) []word {
	for _, c := range all {
		if c.argv[0].literal() && !startsNothing(program(c.argv[0].text), c.argv) {
			return c.argv
		}
	}
	return nil
}

// mayBehind reports whether a word after a program that no table lists is the program of the rule, so that it may be
// started: choom -n 0 curl x.
func (r Rule) mayBehind(all []candidate) bool {
	tried := 0
	words := unknownStarter(all)
	for i, a := range words {
		first := Rule{tokens: r.tokens[:1], prefix: true}
		if i == 0 || !a.known || r.tokens[0] == (token{"*", true}) || first.matchesAlone(words[i:i+1]) == no {
			continue
		}
		if tried++; tried > mostTried || r.matchesAlone(words[i:]) > no {
			return true
		}
	}
	return false
}

// guess records the effects for which a person is needed, if a program that no table lists starts what its words name.
// It skips programs of the workspace, whose words are often these names without meaning the programs.
func (w *walker) guess(p *piece, all []candidate) {
	words := unknownStarter(all)
	if len(words) == 0 {
		return
	}
	if name, system := plainName(words[0].text); !system || isInterpreter(program(name)) {
		return
	}
	if len(words) > mostTried {
		p.say(Ask, "it has so many words that nobody here can tell what it starts")
		p.reaches(another, p.why)
		return
	}
	for i, a := range words {
		if i == 0 || !a.literal() {
			continue
		}
		name, args := a.text, texts(words[i+1:])
		if name == "git" {
			sub, rest := gitVerb(args)
			args = append([]string{sub}, rest...)
		}
		if agent := w.place.Agents.starts(name, words[i:]); agent != "" && !asksForHelp(args) {
			p.agent = agent
			p.say(Ask, "perhaps it starts the agent "+agent+", whose tools nobody here judges")
			p.reaches(another, p.why)
		}
		if w.place.Containment.Network && does(ofPublishing, name, args) && !does(ofReading, name, args) &&
			!asksForHelp(args) {
			p.reaches(published, "it may publish, or act for you elsewhere; nothing takes that back")
		}
	}
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
