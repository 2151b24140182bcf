package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"omniagent/internal/sys/ignore"
)

// mostListed limits the directories that are listed for one pattern.
const mostListed = 512

// globbing is how bash reads the patterns of a line.
type globbing struct {
	dots  bool // * and ? match a dot at the beginning
	style ignore.Style
}

func globbingOf(line string) globbing {
	mode := globbing{
		dots:  strings.Contains(line, "dotglob") || strings.Contains(line, "GLOBIGNORE"),
		style: ignore.Runes,
	}
	if strings.Contains(line, "nocaseglob") {
		mode.style = ignore.Folded
	}
	return mode
}

func isPattern(text string) bool { return strings.ContainsAny(text, "*?[") }

// fits reports whether an element of a path matches one of a pattern.
func (g globbing) fits(element, name string) bool {
	switch {
	case strings.HasPrefix(name, ".") && !strings.HasPrefix(element, ".") && !g.dots:
		return false
	case isPattern(element):
		return ignore.Compile(element, g.style).Match(name)
	}
	return element == name || g.style == ignore.Folded && strings.EqualFold(element, name)
}

// matches returns the existing paths that bash makes of an absolute pattern and for which wanted returns true, for them
// and the directories above. known is false if they cannot be determined.
func (p Place) matches(path string, mode globbing, wanted func(string) bool) (all []string, known bool) {
	volume := filepath.VolumeName(path)
	all = []string{volume + string(filepath.Separator)}
	listed, wild := 0, false
	for element := range strings.SplitSeq(strings.TrimPrefix(filepath.ToSlash(path[len(volume):]), "/"), "/") {
		wild = wild || isPattern(element)
		var next []string
		for _, dir := range all {
			if !wild {
				next = append(next, filepath.Join(dir, element))
				continue
			}
			if listed++; p.Names == nil || listed > mostListed {
				return nil, false
			}
			for _, name := range append(p.Names(dir), ".", "..") {
				if mode.fits(element, name) && wanted(filepath.Join(dir, name)) {
					next = append(next, filepath.Join(dir, name))
				}
			}
		}
		all = next
	}
	return all, true
}

// mayMeet reports whether a pattern may match a path or something below it, whatever the case.
func mayMeet(path, target string, mode globbing) bool {
	mode.style = ignore.Folded
	elements, names := strings.Split(filepath.ToSlash(path), "/"), strings.Split(filepath.ToSlash(target), "/")
	for i, name := range names {
		if i >= len(elements) || !mode.fits(elements[i], name) {
			return false
		}
	}
	return true
}

// meant records what a pattern may match, and denies the piece if that may be a credential.
func (w *walker) meant(p *piece, text string, at dirs) {
	from := at
	if at.lost {
		from = at.or(dirs{list: []string{w.place.Dir}})
	}
	paths := from.paths(text)
	p.patterns = append(p.patterns, paths...)
	for _, dir := range at.list {
		paths = append(paths, w.place.upwards(dir, text)...)
	}
	for _, path := range paths {
		w.meets(p, path, text, true)
	}
	if at.home && w.place.atHome(text) {
		w.meets(p, resolve(w.place.Home, text), text, false)
	}
}

// upwards returns the meaning of a pattern if its first .. follows a link: the directory above the link's target.
func (p Place) upwards(dir, text string) (paths []string) {
	before, behind, found := strings.Cut(text, "/../")
	if !found {
		return nil
	}
	for _, real := range p.physical(dir, before) {
		paths = append(paths, filepath.Join(real, "..", behind))
	}
	return paths
}

// meets denies the piece if a pattern may match a credential. path is the pattern in one directory. With doubt, it also
// denies if that cannot be determined.
func (w *walker) meets(p *piece, path, text string, doubt bool) {
	mode := globbingOf(w.survey.line)
	near := slices.ContainsFunc(w.place.Agents.Credentials(w.place.Home),
		func(secret string) bool { return mayMeet(path, secret, mode) })
	wanted := anyPath
	switch {
	case near:
		wanted = func(path string) bool { return w.place.credential(path, true) }
	case !strings.Contains(text, "["): // links behind other patterns are followed where files are read
		return
	}
	all, known := w.place.matches(path, mode, wanted)
	if near && doubt && !known || slices.ContainsFunc(w.place.withTargets(all), func(path string) bool {
		return w.place.credential(path, false)
	}) {
		p.bar(keptThere)
	}
}

func anyPath(string) bool { return true }

// withTargets adds the paths to which others lead through links.
func (p Place) withTargets(paths []string) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		all = append(all, p.leads(path)...)
	}
	return all
}

// expand records the paths that the patterns of a piece match.
func (p *piece) expand(place Place, line string) {
	for _, path := range p.patterns {
		all, known := place.matches(path, globbingOf(line), anyPath)
		p.unexpanded = p.unexpanded || !known
		p.reads = append(p.reads, place.withTargets(all)...)
	}
}

// braced returns the words that bash makes of the braces in one: .s{s,x}h. It returns nil for too many.
func braced(parts []syntax.WordPart) [][]syntax.WordPart {
	whole := &syntax.Word{Parts: slices.Clone(parts)}
	if !syntax.SplitBraces(whole) {
		return [][]syntax.WordPart{parts}
	}
	return alternatives(whole.Parts)
}

func alternatives(parts []syntax.WordPart) [][]syntax.WordPart {
	all := [][]syntax.WordPart{nil}
	for _, part := range parts {
		next := [][]syntax.WordPart{{part}}
		if brace, ok := part.(*syntax.BraceExp); ok {
			next = nil
			for _, element := range brace.Elems {
				next = append(next, alternatives(element.Parts)...)
			}
			if brace.Sequence {
				next = [][]syntax.WordPart{{&syntax.Lit{Value: "*"}}} // a number or a letter
			}
		}
		if len(all)*len(next) > mostValues {
			return nil
		}
		var joined [][]syntax.WordPart
		for _, head := range all {
			for _, tail := range next {
				joined = append(joined, slices.Concat(head, tail))
			}
		}
		all = joined
	}
	return all
}
