package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	longestPattern = 20_000    // bytes
	mostRepeats    = 1000      // in braces; so it is with Go
	mostPatterns   = 1_000_000 // instructions and ranges of all patterns of a schema
	never          = `[^\x{0}-\x{10ffff}]`
)

// pattern is a regular expression of ECMA 262, in its Unicode mode, with Go's matcher.
type pattern struct {
	source string
	match  *regexp.Regexp
	size   int // about the instructions that a character of a text may take
	ranges int
}

func (r *reader) pattern(keyword, source string) *pattern {
	p, err := newPattern(source)
	if err != nil {
		r.fail(keyword, "the pattern %s: %v", quoted(source), err)
		return nil
	}
	if r.size += p.size + p.ranges; r.size > mostPatterns {
		r.fail(keyword, "the patterns of the schema are too large together")
		return nil
	}
	return p
}

func newPattern(source string) (*pattern, error) {
	if len(source) > longestPattern {
		return nil, fmt.Errorf("it is longer than %d bytes", longestPattern)
	}
	t := translation{source: source}
	if err := t.run(); err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(t.to.String(), syntax.Perl)
	if err == nil {
		size, ranges := sizeOf(tree)
		if size > mostPatterns {
			return nil, errors.New("it is too large")
		}
		var match *regexp.Regexp
		if match, err = regexp.Compile(t.to.String()); err == nil {
			return &pattern{source, match, size, ranges}, nil
		}
	}
	var known *syntax.Error
	if errors.As(err, &known) {
		if known.Code == syntax.ErrInvalidRepeatSize {
			return nil, fmt.Errorf("a repetition ends before it begins, or there are more than %d in all", mostRepeats)
		}
		return nil, errors.New(known.Code.String())
	}
	return nil, err
}

// sizeOf is how many instructions a tree has once its repetitions are written out, and about what its sets take beside
// them.
func sizeOf(tree *syntax.Regexp) (size, ranges int) {
	size = 1
	if tree.Op == syntax.OpLiteral {
		size = len(tree.Rune)
	} else {
		ranges = len(tree.Rune) / 8
	}
	for _, sub := range tree.Sub {
		s, r := sizeOf(sub)
		size, ranges = size+s, ranges+r
	}
	if tree.Op == syntax.OpRepeat {
		size *= max(tree.Min, tree.Max, 1)
	}
	return min(size, 2*mostPatterns), ranges
}

// translation rewrites a pattern for Go where it means something else there, and refuses what cannot be said.
type translation struct {
	source string
	i      int
	to     strings.Builder
}

func (t *translation) run() error {
	for t.i < len(t.source) {
		r := t.next()
		var err error
		switch r {
		case '\\':
			err = t.escaped()
		case '[':
			err = t.class()
		case '(':
			err = t.group()
		case '.':
			t.to.WriteString(`[^\n\r\x{2028}\x{2029}]`)
		case '^':
			t.to.WriteString(`\A`)
		case '$':
			t.to.WriteString(`\z`)
		case ')', '|', '*', '+', '?':
			t.to.WriteRune(r)
		case '{':
			err = t.brace()
		default:
			t.literal(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next takes one character.
func (t *translation) next() rune {
	r, size := utf8.DecodeRuneInString(t.source[t.i:])
	t.i += size
	return r
}

func (t *translation) rest() string { return t.source[t.i:] }

func (t *translation) literal(r rune) {
	if surrogate(r) {
		t.to.WriteString(never) // no text has half a character
		return
	}
	t.to.WriteString(regexp.QuoteMeta(string(r)))
}

func surrogate(r rune) bool { return r >= 0xd800 && r < 0xe000 }

// brace is a repetition if it looks like one, and else a character.
func (t *translation) brace() error {
	inside, _, closed := strings.Cut(t.rest(), "}")
	least, most, _ := strings.Cut(inside, ",")
	if !closed || least == "" || strings.Trim(least+most, "0123456789") != "" {
		t.to.WriteString(`\{`)
		return nil
	}
	for _, count := range []string{least, most} {
		if n, err := strconv.Atoi("0" + count); err != nil || n > mostRepeats {
			return fmt.Errorf("more than %d repetitions are not supported", mostRepeats)
		}
	}
	t.to.WriteString("{" + inside + "}")
	t.i += len(inside) + 1
	return nil
}

func (t *translation) group() error {
	rest := t.rest()
	switch {
	case !strings.HasPrefix(rest, "?"):
		t.to.WriteByte('(')
		return nil
	case strings.HasPrefix(rest, "?:"):
		t.to.WriteString("(?:")
		t.i += 2
		return nil
	case strings.HasPrefix(rest, "?="), strings.HasPrefix(rest, "?!"):
		return errors.New("lookahead, (?= or (?!, is not supported")
	case strings.HasPrefix(rest, "?<="), strings.HasPrefix(rest, "?<!"):
		return errors.New("lookbehind, (?<= or (?<!, is not supported")
	case strings.HasPrefix(rest, "?<"):
		name, _, closed := strings.Cut(rest[2:], ">")
		if !closed || name == "" {
			return errors.New("the name of a group has no end")
		}
		t.to.WriteByte('(')
		t.i += len(name) + 3
		return nil
	}
	return fmt.Errorf("%s is not of ECMA 262", quoted("("+shorten(rest, 3)))
}

// escaped is what follows a backslash outside of brackets.
func (t *translation) escaped() error {
	if t.rest() == "" {
		return errors.New("a backslash stands at its end")
	}
	switch r := t.rest()[0]; r {
	case 'b', 'B':
		t.i++
		t.to.WriteString(`\` + string(rune(r)))
		return nil
	case 'k', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return fmt.Errorf(`back references such as \%c are not supported`, r)
	}
	one, set, err := t.escape()
	switch {
	case err != nil:
		return err
	case set != "":
		t.to.WriteString("[" + set + "]")
	default:
		t.literal(one)
	}
	return nil
}

// escape is what a backslash means anywhere: a character, or a set, as the inside of brackets.
func (t *translation) escape() (one rune, set string, err error) {
	if t.rest() == "" {
		return 0, "", errors.New("a backslash stands at its end")
	}
	r := t.next()
	switch r {
	case 'd':
		return 0, `0-9`, nil
	case 'D':
		return 0, `\x{0}-/:-\x{10ffff}`, nil
	case 'w':
		return 0, `0-9A-Za-z_`, nil
	case 'W':
		return 0, "\\x{0}-/:-@\\[-\\^`{-\\x{10ffff}", nil
	case 's':
		return 0, `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`, nil
	case 'S':
		return 0,
			`\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`, nil
	case 'p', 'P':
		set, err = t.property(r)
		return 0, set, err
	case 't', 'n', 'v', 'f', 'r':
		return rune("\t\n\v\f\r"[strings.IndexByte("tnvfr", byte(r))]), "", nil
	case 'c':
		if rest := t.rest(); rest != "" && unicode.IsLetter(rune(rest[0])) && rest[0] < utf8.RuneSelf {
			return t.next() % 32, "", nil
		}
		return 0, "", errors.New(`\c is followed by a letter`)
	case '0':
		if rest := t.rest(); rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return 0, "", errors.New(`octal escapes are not supported`)
		}
		return 0, "", nil
	case 'x', 'u':
		one, err = t.hex(r)
		return one, "", err
	}
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return 0, "", fmt.Errorf(`\%c is not of ECMA 262`, r)
	}
	return r, "", nil
}

// hex is a character by its number: \xHH, \uHHHH, which may be half of one, or \u{H…}.
func (t *translation) hex(kind rune) (rune, error) {
	rest, size := t.rest(), 2
	if kind == 'u' {
		size = 4
	}
	if inside, _, closed := strings.Cut(strings.TrimPrefix(rest, "{"), "}"); kind == 'u' && closed &&
		strings.HasPrefix(rest, "{") {
		n, err := strconv.ParseUint(inside, 16, 32)
		if err != nil || n > unicode.MaxRune {
			return 0, fmt.Errorf(`\u{%s} is no character`, shorten(inside, 10))
		}
		t.i += len(inside) + 2
		return rune(n), nil
	}
	n, ok := hexDigits(rest, size)
	if !ok {
		return 0, fmt.Errorf(`\%c is followed by %d hexadecimal digits`, kind, size)
	}
	t.i += size
	if low, paired := strings.CutPrefix(t.rest(), `\u`); paired && n >= 0xd800 && n < 0xdc00 {
		if m, ok := hexDigits(low, 4); ok && m >= 0xdc00 && m < 0xe000 {
			t.i += 6
			return 0x10000 + (n-0xd800)<<10 + (m - 0xdc00), nil
		}
	}
	return n, nil
}

func hexDigits(s string, size int) (rune, bool) {
	if len(s) < size {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:size], 16, 32)
	return rune(n), err == nil
}

// property is \p{…}. Go has the categories and the scripts, not the other properties.
func (t *translation) property(kind rune) (string, error) {
	inside, _, closed := strings.Cut(strings.TrimPrefix(t.rest(), "{"), "}")
	if !closed || !strings.HasPrefix(t.rest(), "{") {
		return "", fmt.Errorf(`\%c is followed by a name in braces`, kind)
	}
	t.i += len(inside) + 2
	name, value, given := strings.Cut(inside, "=")
	if given {
		switch name {
		case "General_Category", "gc", "Script", "sc":
			name = value
		default:
			return "", fmt.Errorf(`\%c{%s} is not supported`, kind, shorten(inside, 40))
		}
	}
	set := `\` + string(kind) + "{" + name + "}"
	if strings.HasPrefix(name, "^") {
		return "", fmt.Errorf(`\%c{%s} is not of ECMA 262`, kind, shorten(inside, 40))
	}
	if _, err := syntax.Parse(set, syntax.Perl); err != nil {
		return "", fmt.Errorf(`\%c{%s} is not supported: only categories and long names of scripts are`, kind,
			shorten(inside, 40))
	}
	return set, nil
}
