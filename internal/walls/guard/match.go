package guard

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/core/event"
)

// coversTool reports whether a rule applies to a tool at all. Deny and ask rules are read broadly: one for Edit applies
// to every tool that changes files, one for Read to every tool that reads them. A rule for a tool of Claude's also
// applies to the route that does the same.
func coversTool(r Rule, tool string) bool {
	if r.tool == "*" || r.tool == tool {
		return true
	}
	if other := counterpart(tool); other != "" && coversTool(r, other) {
		return true
	}
	if rest, found := strings.CutPrefix(r.tool, "mcp__"); found {
		server, named, _ := strings.Cut(rest, "__")
		if r.decision == Allow && server != "" && named != "" && named != "*" {
			return false // it allows this tool, but no tool whose name is longer
		}
		return strings.HasPrefix(tool, strings.TrimSuffix(r.tool, "__*")+"__")
	}
	if r.tool == routes {
		return strings.HasPrefix(tool, routes+".")
	}
	about, called := r.known.of(r.tool), r.known.of(tool)
	switch {
	case called.Rule != event.RulePath:
		return false
	case called.Changes:
		return r.tool == "Edit" || r.decision > Allow && about.Rule == event.RulePath && about.Changes
	}
	return r.decision > Allow && r.tool == "Read"
}

// aboutKind reports whether a deny or ask rule applies to this kind of call, whatever the name of the tool.
func aboutKind(r Rule, kind string) bool {
	switch kind {
	case "command":
		return r.tool == "Bash"
	case "read":
		return r.tool == "Read"
	case "write":
		return r.tool == "Edit" || r.tool == "Write"
	case "web":
		return r.tool == "WebFetch"
	}
	return false
}

// certainty is how certain it is that a rule applies to a command.
type certainty uint8

const (
	no certainty = iota
	perhaps
	yes
)

// matchesCommand returns how certain it is that a deny or ask rule applies to a simple command, in any spelling and
// also behind wrappers. An unknown word may be the one that the rule names.
func (r Rule) matchesCommand(argv []word) certainty {
	best := no
	if len(r.tokens) == 0 {
		return no // a rule for a whole line is compared elsewhere
	}
	all, _ := commands(argv)
	for _, c := range all {
		if got := r.matchesAlone(c.argv); c.sure {
			best = max(best, got)
		} else {
			best = max(best, min(got, perhaps))
		}
	}
	if best == no && r.mayBehind(all) {
		return perhaps
	}
	return best
}

func (r Rule) matchesAlone(argv []word) certainty {
	best := r.matchesWords(argv)
	if !argv[0].literal() {
		return max(best, perhaps)
	}
	name := program(argv[0].text)
	plain := append([]word{{text: name, known: true}}, argv[1:]...)
	best = max(best, r.matchesWords(plain))
	if bare := withoutFlags(name, plain); len(bare) > 1 && len(bare) < len(plain) {
		best = max(best, r.matchesWords(bare))
	}
	return best
}

// withoutFlags drops the flags before the subcommand: git -C dir push is git push.
func withoutFlags(name string, argv []word) []word {
	if name == "git" {
		args := texts(argv[1:])
		if _, rest := gitVerb(args); len(args)-len(rest)-1 >= 0 {
			return append([]word{argv[0]}, argv[len(argv)-len(rest)-1:]...)
		}
		return argv
	}
	i := 1
	for i < len(argv) && strings.HasPrefix(argv[i].text, "-") {
		i++
	}
	return append([]word{argv[0]}, argv[i:]...)
}

// matchesWords returns how certain it is that a deny or ask rule covers a command. A star has two readings: any text
// within its word and, as other agents read it, any run of words. The rule covers what either reading covers.
func (r Rule) matchesWords(argv []word) certainty {
	return max(r.matchesEach(argv), r.matchesRun(argv))
}

// matchesRun reads the rule's stars as any text, including blanks.
func (r Rule) matchesRun(argv []word) certainty {
	if !slices.ContainsFunc(r.tokens, func(t token) bool { return t.star }) {
		return no
	}
	pattern, line := make([]string, len(r.tokens)), make([]string, len(argv))
	for i, t := range r.tokens {
		pattern[i] = strings.ToLower(t.text)
	}
	if r.prefix {
		pattern[len(pattern)-1] += "*"
	}
	for i, a := range argv {
		if line[i] = strings.ToLower(a.text); !a.literal() {
			first, _, _ := strings.Cut(pattern[0], "*")
			if i == 0 || strings.HasPrefix(line[0], first) {
				return perhaps
			}
			return no
		}
	}
	if !glob(strings.Join(pattern, " "), strings.Join(line, " ")) {
		return no
	}
	return yes
}

func (r Rule) matchesEach(argv []word) certainty {
	for i, t := range r.tokens {
		if i >= len(argv) {
			return no
		}
		if !argv[i].literal() {
			return perhaps
		}
		if t.star && t.text == "*" && i > 0 {
			continue
		}
		if !strings.EqualFold(t.text, argv[i].text) &&
			!(t.star && glob(strings.ToLower(t.text), strings.ToLower(argv[i].text))) {
			return no
		}
	}
	switch {
	case r.prefix || len(argv) == len(r.tokens) || len(r.tokens) > 0 && r.tokens[len(r.tokens)-1] == token{"*", true}:
		return yes
	case slices.ContainsFunc(argv[len(r.tokens):], func(a word) bool { return !a.known }):
		return perhaps
	}
	return no
}

// permitsCommand reports whether an allow rule covers a simple command: word for word, without expansions.
func (r Rule) permitsCommand(argv []word) bool {
	if len(r.tokens) == 0 || len(argv) < len(r.tokens) || !r.prefix && len(argv) != len(r.tokens) || evaluates(argv) {
		return false
	}
	for i, a := range argv {
		if !a.literal() {
			return false
		}
		if i < len(r.tokens) && r.tokens[i].text != a.text && !(r.tokens[i].star && glob(r.tokens[i].text, a.text)) {
			return false
		}
	}
	return true
}

// glob matches * with any run of characters.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

// matchesPath reports whether a rule for files covers an absolute path. An allow rule is read narrowly. The others are
// read broadly: a name without a slash matches at any depth, and a leading slash means both the root of the file system
// and that of the workspace.
func (r Rule) matchesPath(path string, p Place) bool {
	path = filepath.ToSlash(path)
	patterns, known := r.patterns(p)
	if !known {
		return r.decision > Allow
	}
	for _, one := range patterns {
		if r.decision > Allow {
			if matchPath(strings.ToLower(one), strings.ToLower(path), true) {
				return true
			}
		} else if matchPath(one, path, false) {
			return true
		}
	}
	return false
}

// patterns returns the absolute patterns of a rule for files, without a slash at the end; known is false if they cannot
// be determined.
func (r Rule) patterns(p Place) (patterns []string, known bool) {
	pattern := filepath.ToSlash(r.inner)
	root, home := filepath.ToSlash(filepath.Clean(p.Root)), filepath.ToSlash(p.Home)
	switch {
	case strings.HasPrefix(pattern, "//"):
		patterns = []string{pattern[1:]}
	case strings.HasPrefix(pattern, "~/"):
		if home == "" {
			return nil, false
		}
		patterns = []string{home + pattern[1:]}
	case strings.HasPrefix(pattern, "/"):
		patterns = []string{pattern}
		if r.decision > Allow {
			patterns = append(patterns, root+pattern)
		}
	default:
		pattern = strings.TrimPrefix(pattern, "./")
		patterns = []string{root + "/" + pattern}
		if r.decision > Allow && !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
			patterns = append(patterns, "/**/"+pattern)
		}
		if r.decision > Allow {
			patterns = append(patterns, filepath.ToSlash(filepath.Clean(p.Dir))+"/"+pattern)
		}
	}
	for i := range patterns {
		patterns[i] = strings.TrimSuffix(patterns[i], "/")
	}
	return patterns, true
}

// matchPath matches element by element: ** is any number of elements, * and ? stay within one. With beneath, everything
// below a matching directory matches too.
func matchPath(pattern, path string, beneath bool) bool {
	return matchElements(strings.Split(pattern, "/"), strings.Split(path, "/"), beneath)
}

func matchElements(pattern, path []string, beneath bool) bool {
	// reach holds how many elements of the pattern may be consumed, so that the time is linear in both.
	reach := map[int]bool{0: true}
	open := func() {
		for i := range len(pattern) {
			if reach[i] && pattern[i] == "**" {
				reach[i+1] = true
			}
		}
	}
	open()
	for _, element := range path {
		next := map[int]bool{}
		for i := range reach {
			switch {
			case i == len(pattern):
				if beneath {
					next[i] = true
				}
			case pattern[i] == "**":
				next[i] = true
			case globElement(pattern[i], element):
				next[i+1] = true
			}
		}
		reach = next
		open()
	}
	return reach[len(pattern)]
}

func globElement(pattern, s string) bool {
	ok, err := filepath.Match(strings.ReplaceAll(pattern, `\`, `\\`), s)
	return ok && err == nil
}

// matchesURL reports whether a rule for hosts covers a URL. A deny rule covers subdomains too; a URL that cannot be
// parsed may be any.
func (r Rule) matchesURL(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return r.decision > Allow
	}
	return hostCovered(strings.TrimPrefix(r.inner, "domain:"), u.Hostname(), r.decision > Allow)
}

func hostCovered(pattern, host string, generous bool) bool {
	host, pattern = strings.ToLower(strings.TrimSuffix(host, ".")), strings.ToLower(strings.TrimSuffix(pattern, "."))
	if bare, found := strings.CutPrefix(pattern, "*."); found {
		return strings.HasSuffix(host, "."+bare) || generous && host == bare
	}
	return host == pattern || generous && strings.HasSuffix(host, "."+pattern)
}
