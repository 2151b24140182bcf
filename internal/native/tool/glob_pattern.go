package tool

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/sys/ignore"
)

const mostAlternatives = 512 // of braces

// globPattern is a pattern of paths: one list of names for each alternative of its braces.
type globPattern struct {
	base  string // the literal directories at the beginning, or ""; absolute if the pattern is absolute
	paths [][]globName
}

// globName is one name of a pattern, or any number of them.
type globName struct {
	deep    bool // **
	literal bool // it has no wildcards
	ignore.Pattern
}

// globSpot records how far a directory has matched: the next name of one of the paths.
type globSpot struct{ path, name int }

func parseGlob(pattern string) (*globPattern, error) {
	if runtime.GOOS == "windows" {
		pattern = strings.ReplaceAll(pattern, `\`, "/")
	}
	if pattern == "" || strings.ContainsRune(pattern, 0) {
		return nil, errors.New(`it is empty; "**/*" is every file`)
	}
	alternatives, err := expandBraces(pattern)
	if err != nil {
		return nil, err
	}
	g := &globPattern{}
	var all [][]string
	for _, a := range alternatives {
		if strings.HasSuffix(a, "/") {
			a += "**"
		}
		all = append(all, ignore.Split(a, ignore.Runes))
	}
	common := commonNames(all)
	for _, part := range all[0][:common] {
		name, _ := ignore.Compile(part, ignore.Runes).Literal()
		g.base += name + "/"
	}
	if g.base != "/" && g.base != filepath.ToSlash(filepath.VolumeName(g.base))+"/" {
		g.base = strings.TrimSuffix(g.base, "/")
	}
	for _, parts := range all {
		names, err := globNames(parts[common:])
		if err != nil {
			return nil, err
		}
		g.paths = append(g.paths, names)
	}
	return g, nil
}

// commonNames returns how many literal names all paths begin with. The last name does not count: it is a file's.
func commonNames(all [][]string) int {
	for n := 0; ; n++ {
		for _, parts := range all {
			if n >= len(parts)-1 || parts[n] != all[0][n] {
				return n
			}
		}
		if _, plain := ignore.Compile(all[0][n], ignore.Runes).Literal(); !plain {
			return n
		}
	}
}

func globNames(parts []string) ([]globName, error) {
	var names []globName
	for _, part := range parts {
		made := globName{deep: part == "**", Pattern: ignore.Compile(part, ignore.Runes)}
		literal, plain := made.Literal()
		made.literal = plain
		switch {
		case plain && (literal == "" || literal == "."):
			continue
		case plain && literal == "..":
			return nil, errors.New(`".." can only be at its beginning`)
		case made.deep && len(names) > 0 && names[len(names)-1].deep:
			continue
		}
		names = append(names, made)
	}
	return names, nil
}

// expandBraces returns the patterns without braces: {a,b} is a or b, and braces may be nested.
func expandBraces(pattern string) ([]string, error) {
	open, options, rest, found := cutBraces(pattern)
	if !found {
		return []string{pattern}, nil
	}
	tails, err := expandBraces(rest)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, option := range options {
		inner, err := expandBraces(option)
		if err != nil {
			return nil, err
		}
		for _, middle := range inner {
			for _, tail := range tails {
				if all = append(all, open+middle+tail); len(all) > mostAlternatives {
					return nil, fmt.Errorf("its braces make more than %d patterns", mostAlternatives)
				}
			}
		}
	}
	return all, nil
}

// cutBraces finds the first closed braces.
func cutBraces(pattern string) (before string, options []string, after string, found bool) {
	for begin := 0; begin < len(pattern); begin++ {
		if pattern[begin] == '\\' {
			begin++
			continue
		}
		if pattern[begin] != '{' {
			continue
		}
		depth, from := 0, begin+1
		options = nil
		for i := begin; i < len(pattern); i++ {
			switch c := pattern[i]; {
			case c == '\\':
				i++
			case c == '{':
				depth++
			case c == ',' && depth == 1:
				options = append(options, pattern[from:i])
				from = i + 1
			case c == '}':
				if depth--; depth == 0 {
					return pattern[:begin], append(options, pattern[from:i]), pattern[i+1:], true
				}
			}
		}
	}
	return "", nil, "", false
}

// start returns the spots of the first directory.
func (g *globPattern) start() []globSpot {
	var spots []globSpot
	for i := range g.paths {
		spots = append(spots, globSpot{i, 0})
	}
	return spots
}

// entryFlags are reasons to leave out an entry.
type entryFlags struct {
	hidden  bool // its name begins with a dot
	ignored bool // a rule ignores it
}

// file reports whether a file in a directory with these spots matches. A hidden name needs a pattern with a literal
// dot, an ignored one a pattern with the literal name.
func (g *globPattern) file(spots []globSpot, name string, s entryFlags) bool {
	for _, at := range spots {
		names := g.paths[at.path]
		for i := at.name; i < len(names); i++ {
			if i == len(names)-1 && names[i].takes(name, s) {
				return true
			}
			if !names[i].deep {
				break // only ** may match no directory, so that the next name counts here
			}
		}
	}
	return false
}

// directory returns the spots of a directory. If it has none, nothing below it can match.
func (g *globPattern) directory(spots []globSpot, name string, s entryFlags) []globSpot {
	var next []globSpot
	add := func(at globSpot) {
		if at.name < len(g.paths[at.path]) && !slices.Contains(next, at) {
			next = append(next, at)
		}
	}
	for _, at := range spots {
		names := g.paths[at.path]
		for i := at.name; i < len(names); i++ {
			switch takes := names[i].takes(name, s); {
			case takes && names[i].deep:
				add(globSpot{at.path, i})
			case takes:
				add(globSpot{at.path, i + 1})
			}
			if !names[i].deep {
				break
			}
		}
	}
	return next
}

func (n globName) takes(name string, s entryFlags) bool {
	switch {
	case s.ignored && !n.literal, s.hidden && !n.Dotted():
		return false
	}
	return n.deep || n.Match(name)
}
