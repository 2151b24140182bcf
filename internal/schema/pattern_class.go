package schema

import (
	"errors"
	"fmt"
	"strings"
)

// class is what stands in brackets.
func (t *translation) class() error {
	negated := strings.HasPrefix(t.rest(), "^")
	if negated {
		t.i++
	}
	var inside strings.Builder
	for {
		if t.rest() == "" {
			return errors.New("a [ has no ]")
		}
		if t.rest()[0] == ']' {
			t.i++
			break
		}
		if err := t.member(&inside); err != nil {
			return err
		}
	}
	switch {
	case inside.Len() > 0 && negated:
		t.to.WriteString("[^" + inside.String() + "]")
	case inside.Len() > 0:
		t.to.WriteString("[" + inside.String() + "]")
	case negated:
		t.to.WriteString(`[\x{0}-\x{10ffff}]`)
	default:
		t.to.WriteString(never)
	}
	return nil
}

// member is a character, a set or a range in brackets.
func (t *translation) member(to *strings.Builder) error {
	from, set, err := t.atom()
	if err != nil {
		return err
	}
	rest := t.rest()
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		writeMember(to, from, from, set)
		return nil
	}
	t.i++
	until, second, err := t.atom()
	switch {
	case err != nil:
		return err
	case set != "" || second != "": // no range: the dash is one
		writeMember(to, from, from, set)
		writeMember(to, '-', '-', "")
		writeMember(to, until, until, second)
		return nil
	case from > until:
		return fmt.Errorf("the range %c-%c ends before it begins", from, until)
	}
	writeMember(to, from, until, "")
	return nil
}

func (t *translation) atom() (one rune, set string, err error) {
	r := t.next()
	if r != '\\' {
		return r, "", nil
	}
	if strings.HasPrefix(t.rest(), "b") {
		t.i++
		return '\b', "", nil
	}
	return t.escape()
}

// writeMember leaves halves of characters out, which are in no text.
func writeMember(to *strings.Builder, from, until rune, set string) {
	switch {
	case set != "":
		to.WriteString(set)
	case surrogate(from) && surrogate(until):
	default:
		if surrogate(from) {
			from = 0xe000
		}
		if surrogate(until) {
			until = 0xd7ff
		}
		fmt.Fprintf(to, `\x{%x}-\x{%x}`, from, until)
	}
}
