// Package schema checks JSON values against JSON schemas, of draft 2020-12 and draft-07.
//
// It promises exact answers: numbers are compared as they are written, lengths count code points, references and
// annotations behave as the official test suite wants. What is wrong is told in words that help to correct it, with its
// place as a JSON pointer. Neither a schema nor a value can make it hang, exhaust the memory or overflow the stack:
// depth, steps and the size of patterns are bounded.
//
// It refuses schemas that it could not apply to the letter: other drafts, references to other documents, references
// that come back to themselves without a step into the value, and patterns of ECMA 262 that Go's regular expressions
// cannot express (lookaround and back references). Numbers beyond 10,000 digits or powers of ten are refused on both
// sides. format and content* are annotations and are not checked.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"omniagent/internal/text"
)

const (
	usualWork  = 4 << 20 // steps that any check may take
	workByByte = 8       // more of them for each byte of the value
	mostWork   = 100 << 20
	mostFrames = 50_000 // schemas within schemas while a value is checked
	mostTold   = 5      // problems
)

// Schema is a schema that was found to be right. It may be used by several goroutines at once.
type Schema struct {
	root    *node
	dynamic bool // there is a $dynamicRef, for which one has to know the way
}

// Parse reads a schema. The error says where it is wrong, as a JSON pointer, and why.
func Parse(data []byte) (*Schema, error) {
	value, err := decode(data)
	if err != nil {
		return nil, err
	}
	c := compiler{resources: map[string]*resource{}}
	root, err := c.compile(value)
	if err != nil {
		return nil, clean(err)
	}
	return &Schema{root: root, dynamic: c.dynamic}, nil
}

// Validate checks a JSON text. The error says what is wrong, the first few problems, each with its place as a JSON
// pointer.
func (s *Schema) Validate(data []byte) error {
	value, err := decode(data)
	if err != nil {
		return err
	}
	v := validation{dynamic: s.dynamic, work: min(usualWork+workByByte*len(data), mostWork)}
	fits := v.fits(s.root, value, nil, nil)
	if v.over != nil {
		return v.over
	}
	if fits {
		return nil
	}
	// once more, for the words
	v = validation{dynamic: s.dynamic, work: 2 * min(usualWork+workByByte*len(data), mostWork)}
	told := problems{most: mostTold}
	v.fits(s.root, value, nil, &told)
	runtime.KeepAlive(value) // trials know its parts by where they are
	if len(told.list) == 0 {
		return errors.New("it does not fit the schema")
	}
	return clean(&told)
}

// decode reads one JSON text. What it makes of numbers is how they are written.
func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is no JSON in it")
		}
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is no JSON: more follows the first value")
	}
	var at path
	if err := checkNumbers(value, &at); err != nil {
		return nil, clean(err)
	}
	return value, nil
}

// checkNumbers refuses numbers that cannot be worked with.
func checkNumbers(value any, at *path) error {
	switch x := value.(type) {
	case json.Number:
		if _, err := parseNumber(string(x)); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	case []any:
		for i, item := range x {
			at.push(step{index: i})
			if err := checkNumbers(item, at); err != nil {
				return err
			}
			at.pop()
		}
	case map[string]any:
		for name, member := range x {
			at.push(step{name: name, named: true})
			if err := checkNumbers(member, at); err != nil {
				return err
			}
			at.pop()
		}
	}
	return nil
}

// clean is an error whose text can be printed: names and strings in it come from elsewhere.
func clean(err error) error {
	said := err.Error()
	if clean, _ := text.Clean(said); clean != said {
		return errors.New(clean)
	}
	return err
}
