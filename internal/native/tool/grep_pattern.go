package tool

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// grepPattern is a regular expression, and a fast way to find it.
type grepPattern struct {
	lines    *regexp.Regexp // never matches across lines, unless spanning
	needles  []*needle      // a line without any of them cannot match; empty if unknown
	exact    bool           // a line with the only needle matches
	spanning bool           // matches across lines
}

// Limits of the text that a regular expression gets at a time. On short texts, package regexp avoids its slow machine.
// Each start has a cost for every byte of the text, so it gets less after a match.
const (
	mostPiece  = 8 << 10
	leastPiece = 128
)

// parseGrep parses a pattern in the syntax of RE2, in which ^ and $ match the ends of a line.
func parseGrep(pattern string, fold, spanning bool) (*grepPattern, error) {
	if pattern == "" {
		return nil, errors.New("it is empty")
	}
	flags := syntax.Perl &^ (syntax.OneLine | syntax.ClassNL)
	if spanning {
		flags |= syntax.ClassNL | syntax.DotNL
	}
	if fold {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(strings.ToValidUTF8(pattern, "\uFFFD"), flags)
	if err != nil {
		return nil, grepSyntax(pattern, err)
	}
	if !spanning {
		if err := withinLines(tree); err != nil {
			return nil, err
		}
	}
	p := &grepPattern{spanning: spanning}
	if p.lines, err = regexp.Compile(tree.String()); err != nil {
		return nil, grepSyntax(pattern, err)
	}
	if tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 {
		p.needles, p.exact = []*needle{newNeedle(string(tree.Rune), false)}, true
		return p, nil
	}
	for _, n := range needleTexts(tree) {
		p.needles = append(p.needles, newNeedle(n.text, n.fold))
	}
	return p, nil
}

// grepSyntax explains a syntax error, and suggests what to use instead of features that RE2 lacks.
func grepSyntax(pattern string, err error) error {
	what := err.Error()
	if known, is := errors.AsType[*syntax.Error](err); is {
		what = known.Code.String() + ": " + known.Expr
	}
	for _, ahead := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if strings.Contains(pattern, ahead) {
			return errors.New("lookahead and lookbehind, " + ahead +
				"…), are not supported: search for more than is wanted, and read the lines")
		}
	}
	for digit := '1'; digit <= '9'; digit++ {
		if strings.Contains(pattern, `\`+string(digit)) {
			return errors.New(`backreferences, \` + string(digit) +
				", are not supported: search for more than is wanted, and read the lines")
		}
	}
	return errors.New(what + `; put a backslash before each of . * + ? ( ) [ ] { } | ^ $ \ that is meant literally`)
}

// withinLines removes everything that could match the end of a line, so that a whole window can be searched at once.
func withinLines(tree *syntax.Regexp) error {
	switch tree.Op {
	case syntax.OpLiteral:
		if slices.Contains(tree.Rune, '\n') {
			return errors.New(
				`lines are searched one by one, so \n cannot match; "multiline": true searches across them`)
		}
	case syntax.OpCharClass:
		var ranges []rune
		for i := 0; i+1 < len(tree.Rune); i += 2 {
			low, high := tree.Rune[i], tree.Rune[i+1]
			if low > '\n' || high < '\n' {
				ranges = append(ranges, low, high)
				continue
			}
			if low < '\n' {
				ranges = append(ranges, low, '\n'-1)
			}
			if high > '\n' {
				ranges = append(ranges, '\n'+1, high)
			}
		}
		if tree.Rune = ranges; len(ranges) == 0 {
			tree.Op = syntax.OpNoMatch
		}
	case syntax.OpAnyChar:
		tree.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		tree.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		tree.Op = syntax.OpEndLine
	}
	for _, sub := range tree.Sub {
		if err := withinLines(sub); err != nil {
			return err
		}
	}
	return nil
}

const (
	needleLeast = 2  // shorter ones occur in too many lines
	needlesMost = 16 // each is searched for separately
)

type needleText struct {
	text string
	fold bool
}

// needleTexts returns a set of texts such that every match contains at least one, or nil.
func needleTexts(tree *syntax.Regexp) []needleText {
	switch tree.Op {
	case syntax.OpLiteral:
		w := needleText{string(tree.Rune), false}
		if tree.Flags&syntax.FoldCase != 0 {
			w = needleFolded(tree.Rune)
		}
		if len(w.text) >= needleLeast && !strings.ContainsRune(w.text, unicode.ReplacementChar) {
			return []needleText{w}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needleTexts(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return needleTexts(tree.Sub[0])
		}
	case syntax.OpConcat:
		var best []needleText
		for _, sub := range tree.Sub {
			if set := needleTexts(sub); set != nil && needleWorth(set) > needleWorth(best) {
				best = set
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needleText
		for _, sub := range tree.Sub {
			set := needleTexts(sub)
			if all = append(all, set...); set == nil || len(all) > needlesMost {
				return nil
			}
		}
		return all
	}
	return nil
}

// needleWorth returns how much a set narrows a search. A long shortest text and few texts are good.
func needleWorth(set []needleText) int {
	if len(set) == 0 {
		return 0
	}
	shortest := len(set[0].text)
	for _, w := range set {
		shortest = min(shortest, len(w.text))
	}
	return shortest*(needlesMost+1) - len(set)
}

// needleFolded returns the longest part, in lower case, whose letters have exactly two forms. k and s have a third form
// outside ASCII.
func needleFolded(text []rune) needleText {
	best, from := "", 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] < unicode.MaxASCII && !strings.ContainsRune("kKsS", text[i]) {
			continue
		}
		if i-from > len(best) {
			best = string(text[from:i])
		}
		from = i + 1
	}
	return needleText{strings.ToLower(best), true}
}

// find returns the start and end of the next line with a match in text, and the start of the match, or -1. It searches
// from the start of a line on. text consists of whole lines. hints is a cache for the same text.
func (p *grepPattern) find(text []byte, from int, hints *needleHints) (begin, end, match int) {
	for from < len(text) {
		at := 0
		if len(p.needles) > 0 {
			if at = hints.next(p.needles, text, from); at < 0 {
				return -1, -1, -1
			}
			begin, end = lineAround(text, from, at)
			if p.exact {
				return begin, end, at - begin
			}
			if loc := p.lines.FindIndex(text[begin:end]); loc != nil {
				return begin, end, loc[0]
			}
			from = end + 1
			continue
		}
		stop := pieceEnd(text, from, hints.nextPiece())
		loc := p.lines.FindIndex(text[from:stop])
		// An empty match after the last line does not count, because no line begins there.
		if at = stop; loc != nil {
			at = from + loc[0]
		}
		if at < stop || loc != nil && text[stop-1] != '\n' {
			begin, end = lineAround(text, from, at)
			hints.piece = leastPiece
			return begin, end, at - begin
		}
		from = stop
	}
	return -1, -1, -1
}

// pieceEnd returns the end of the last line within a piece of text, or of its only line.
func pieceEnd(text []byte, from, piece int) int {
	if len(text)-from <= piece {
		return len(text)
	}
	if i := bytes.LastIndexByte(text[from:from+piece], '\n'); i >= 0 {
		return from + i + 1
	}
	if i := bytes.IndexByte(text[from+piece:], '\n'); i >= 0 {
		return from + piece + i + 1
	}
	return len(text)
}

// lineAround returns the line that contains at, without its end. It does not look before from.
func lineAround(text []byte, from, at int) (begin, end int) {
	begin = from + bytes.LastIndexByte(text[from:at], '\n') + 1
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return begin, at + i
	}
	return begin, len(text)
}
