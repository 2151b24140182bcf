// Package ignore implements the rules of .gitignore, .ignore and similar files, which say which files a search should
// leave out.
//
// It reads a rule as git reads it: bytes and not characters, and case matters. It orders the files of rules as ripgrep
// and fd do, so that our search sees what theirs see: a tool's own file before .ignore, .gitignore, the repository's
// .git/info/exclude, and the user's excludes file; within each kind, a deeper directory before its parents, and a later
// line before an earlier one. Rules of git only apply in a repository, and not those from above it.
//
// It never reads the disk: the caller passes the contents. Pattern, which matches one element of a path, also serves
// callers that match names like a shell.
package ignore

import "strings"

// Verdict is what rules say about a path.
type Verdict int8

// The verdicts.
const (
	None     Verdict = iota // no rule matches
	Ignored                 // leave it out, with everything below it
	Included                // a rule with ! includes it, even if it is hidden
)

// Rules are the rules of one file. They apply in its directory and below. Nil has no rules.
type Rules struct {
	list  []rule
	paths bool // a rule needs more than the last name
}

type rule struct {
	verdict Verdict
	dirOnly bool
	byName  bool // no slash: it applies to names at any depth
	names   []step
}

// step is one element of a path, or any number of them.
type step struct {
	deep bool // **
	Pattern
}

// Parse parses a file of rules. It returns nil if the file has none.
func Parse(data []byte) *Rules {
	text := strings.TrimPrefix(string(data), "\ufeff")
	r := &Rules{}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		r.add(trimBlanks(strings.TrimSuffix(line, "\r")))
	}
	if len(r.list) == 0 {
		return nil
	}
	return r
}

// Of makes rules from single lines.
func Of(lines ...string) *Rules {
	r := &Rules{}
	for _, line := range lines {
		r.add(line)
	}
	if len(r.list) == 0 {
		return nil
	}
	return r
}

// trimBlanks removes trailing blanks, except one after a backslash.
func trimBlanks(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++ // the next character belongs to the rule
		}
		end = i + 1
	}
	return line[:min(end, len(line))]
}

func (r *Rules) add(line string) {
	made := rule{verdict: Ignored}
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		made.verdict, line = Included, rest
	}
	line, made.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return // it could not match
	}
	if made.byName = !strings.Contains(line, "/"); made.byName {
		made.names = []step{{Pattern: Compile(line, Bytes)}}
	} else if made.names = steps(strings.TrimPrefix(line, "/")); made.names == nil {
		return
	}
	r.paths = r.paths || !made.byName
	r.list = append(r.list, made)
}

// steps splits a rule at its slashes. It returns nil if the rule can never match.
func steps(line string) []step {
	var list []step
	for _, part := range Split(line, Bytes) {
		if strings.Trim(part, "*") != "" || len(part) < 2 {
			list = append(list, step{Pattern: Compile(part, Bytes)})
			continue
		}
		if n := len(list); n == 0 || !list[n-1].deep { // two in a row mean the same as one
			list = append(list, step{deep: true})
		}
	}
	return list
}

// Match returns what the rules say about a path, relative to the directory of their file, with slashes. It judges only
// this path, not its parents.
func (r *Rules) Match(path string, dir bool) Verdict {
	if r == nil {
		return None
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(r.list) - 1; i >= 0; i-- {
		rule := &r.list[i]
		if rule.dirOnly && !dir {
			continue
		}
		if rule.byName && rule.names[0].Match(name) || !rule.byName && matchPath(rule.names, path) {
			return rule.verdict
		}
	}
	return None
}

// matchPath compares both from left to right. If there are several **, only the last one that was passed ever has to
// take more elements: what precedes it has matched, and no other choice for an earlier one would leave more of the
// rest.
func matchPath(names []step, path string) bool {
	i, at := 0, 0       // the step, and where its element begins; past the end if none is left
	deep, mark := -1, 0 // the last **, and where the elements begin that it has not taken
	for {
		switch ended := at > len(path); {
		case i == len(names) && ended:
			return true
		case i < len(names) && names[i].deep:
			if i == len(names)-1 {
				return !ended // the content, not the directory itself
			}
			deep, mark = i, at
			i++
			continue
		case i < len(names) && !ended:
			if name, _, _ := strings.Cut(path[at:], "/"); names[i].Match(name) {
				at += len(name) + 1
				i++
				continue
			}
		}
		if deep < 0 || mark > len(path) {
			return false
		}
		name, _, _ := strings.Cut(path[mark:], "/")
		mark += len(name) + 1
		i, at = deep+1, mark
	}
}
