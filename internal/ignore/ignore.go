// Package ignore is the rules by which people say which files a search should leave alone: .gitignore, .ignore and the
// like.
//
// It promises to read a rule as git reads it, bytes and not characters, and case matters; and to put the files of rules
// in the order of ripgrep and fd, so that a search of ours sees what theirs see: a tool's own file before .ignore,
// before .gitignore, before the repository's .git/info/exclude, before the user's excludes file; in each kind a deeper
// directory before those above it, and a later line before an earlier one. Rules for git hold in a repository only, and
// none of them from above it.
//
// It refuses to look at the disk: the caller brings the contents. Pattern, the part of a rule between two slashes, also
// serves those who match names in the way of a shell.
package ignore

import "strings"

// Verdict is what rules say of a path.
type Verdict int8

// The verdicts.
const (
	None     Verdict = iota // no rule matches
	Ignored                 // leave it alone, and what lies beneath it
	Included                // a rule with ! takes it back: it is looked at although it is hidden
)

// Rules are the rules of one file. They hold in its directory and beneath. Nil has none.
type Rules struct {
	list  []rule
	paths bool // a rule needs more than the last name
}

type rule struct {
	verdict Verdict
	dirOnly bool
	byName  bool // no slash: it holds for names at any depth
	names   []step
}

// step is one name of a path, or any number of them.
type step struct {
	deep bool // **
	Pattern
}

// Parse reads a file of rules. It returns nil when there is none in it.
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

// Of makes rules of single lines, as they stand.
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

// trimBlanks cuts the blanks at the end, but for one behind a backslash.
func trimBlanks(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++ // whatever follows belongs to the rule
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

// steps divides a rule at its slashes. It is nil for one that can never match.
func steps(line string) []step {
	var list []step
	for _, part := range Split(line, Bytes) {
		if strings.Trim(part, "*") != "" || len(part) < 2 {
			list = append(list, step{Pattern: Compile(part, Bytes)})
			continue
		}
		if n := len(list); n == 0 || !list[n-1].deep { // two in a row say no more than one
			list = append(list, step{deep: true})
		}
	}
	return list
}

// Match says what the rules say of a path, relative to the directory of their file, with slashes. It judges this path
// alone, and nothing of the directories that lead to it.
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

// matchPath goes through both from left to right. Of several ** only the last one that was passed ever has to take
// more: what lies before it has matched, and nothing that an earlier one could do makes more of the rest.
func matchPath(names []step, path string) bool {
	i, at := 0, 0       // the step, and where its name begins; past the end when there is none left
	deep, mark := -1, 0 // the last **, and where the names begin that it has not taken
	for {
		switch ended := at > len(path); {
		case i == len(names) && ended:
			return true
		case i < len(names) && names[i].deep:
			if i == len(names)-1 {
				return !ended // what lies beneath, not the directory itself
			}
			deep, mark = i, at
			i++
			continue
		case i < len(names) && !ended:
			if name := first(path[at:]); names[i].Match(name) {
				at += len(name) + 1
				i++
				continue
			}
		}
		if deep < 0 || mark > len(path) {
			return false
		}
		mark += len(first(path[mark:])) + 1
		i, at = deep+1, mark
	}
}

func first(path string) string {
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return path
}
