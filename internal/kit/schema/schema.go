// Package schema checks JSON values against JSON schemas, of draft 2020-12 and draft-07.
//
// google/jsonschema-go does the checking. This package adds safety for untrusted schemas and values: it refuses schemas
// that refer to themselves without a step into the value, and values that would take too many steps; multipleOf is
// exact for decimal fractions; and errors are short enough to print.
//
// It refuses other drafts, references to other documents, and patterns that Go's regular expressions cannot express.
// format and content* are annotations and are not checked.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"omniagent/internal/kit/text"
)

const (
	maxNesting  = 200      // levels of a schema
	maxPatterns = 64 << 10 // bytes of all its patterns
	maxMessage  = 2000     // bytes of an error
	maxExact    = 10_000   // numbers of a value that are checked against multipleOf
)

// Schema is a valid schema. It may be used concurrently.
type Schema struct {
	data     []byte
	resolved *jsonschema.Resolved
	root     *node
	multiple bool // it uses multipleOf
}

// Parse reads a schema. The error says why it cannot be used.
func Parse(data []byte) (*Schema, error) {
	value, err := decode(data)
	if err != nil {
		return nil, err
	}
	if depth(value) > maxNesting {
		return nil, fmt.Errorf("it is nested deeper than %d levels", maxNesting)
	}
	parsed, g, err := compile(data)
	if err != nil {
		return nil, clean(err)
	}
	if err := g.connect(); err != nil {
		return nil, clean(err)
	}
	resolved, err := parsed.Resolve(nil)
	if err != nil {
		return nil, clean(err)
	}
	s := &Schema{data: data, resolved: resolved, root: g.nodes[0]}
	for _, n := range g.nodes {
		s.multiple = s.multiple || n.schema.MultipleOf != nil
	}
	return s, nil
}

// compile reads the schema and finds its parts.
func compile(data []byte) (*jsonschema.Schema, *graph, error) {
	parsed := &jsonschema.Schema{}
	if err := json.Unmarshal(data, parsed); err != nil {
		return nil, nil, err
	}
	g := newGraph(parsed)
	switch _, draft, _ := strings.Cut(strings.TrimSuffix(parsed.Schema, "#"), "://"); draft {
	case "", "json-schema.org/draft/2020-12/schema":
		for _, n := range g.nodes { // many schemas without a draft use the older keyword
			if s := n.schema; s.DependentRequired == nil && s.DependentSchemas == nil {
				s.DependentRequired, s.DependentSchemas = s.DependencyStrings, s.DependencySchemas
				s.DependencyStrings, s.DependencySchemas = nil, nil
			}
		}
	case "json-schema.org/draft-07/schema":
		parsed.Schema = "http://json-schema.org/draft-07/schema#"
	default:
		return nil, nil, fmt.Errorf("$schema %q is neither draft 2020-12 nor draft-07", parsed.Schema)
	}
	patterns := 0
	for _, n := range g.nodes {
		if err := n.check(); err != nil {
			return nil, nil, err
		}
		patterns += len(n.schema.Pattern)
		for pattern := range n.schema.PatternProperties {
			patterns += len(pattern)
		}
	}
	if patterns > maxPatterns {
		return nil, nil, fmt.Errorf("its patterns are longer than %d bytes together", maxPatterns)
	}
	return parsed, g, nil
}

// check refuses what the library accepts silently.
func (n *node) check() error {
	if m := n.schema.MultipleOf; m != nil && *m <= 0 {
		return fmt.Errorf("%s: multipleOf must be greater than 0", n)
	}
	for _, kind := range append(n.schema.Types, n.schema.Type) {
		switch kind {
		case "", "array", "boolean", "integer", "null", "number", "object", "string":
		default:
			return fmt.Errorf("%s: there is no type %q", n, kind)
		}
	}
	return nil
}

// Validate checks a JSON text. The error says what is wrong, and names the part of the schema.
func (s *Schema) Validate(data []byte) error {
	value, err := decode(data)
	if err != nil {
		return err
	}
	var numbers []json.Number
	if value, err = plain(value, &numbers); err != nil {
		return clean(err)
	}
	w := weight{left: leastSteps + stepsByByte*len(data)}
	if !w.fits(s.root, value, 0) {
		return errors.New("checking it takes too long: it is nested too deeply for this schema")
	}
	err = s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	if s.multiple && strings.Contains(err.Error(), "multipleOf: ") && len(numbers) <= maxExact &&
		s.exactly(value, numbers) {
		return nil
	}
	return clean(err)
}

// exactly checks the value again, with each multipleOf replaced by the list of the value's numbers that are multiples:
// the library divides floats, and 0.3 / 0.1 is not whole.
func (s *Schema) exactly(value any, numbers []json.Number) bool {
	parsed, g, err := compile(s.data)
	if err != nil {
		return false
	}
	for _, n := range g.nodes {
		if n.schema.MultipleOf == nil {
			continue
		}
		factor, ok := new(big.Rat).SetString(strconv.FormatFloat(*n.schema.MultipleOf, 'g', -1, 64))
		if !ok {
			return false
		}
		multiples := []any{}
		for _, written := range numbers {
			if x, ok := new(big.Rat).SetString(string(written)); ok && x.Quo(x, factor).IsInt() {
				multiple, _ := number(written) // it has been read before
				multiples = append(multiples, multiple)
			}
		}
		n.schema.MultipleOf = nil
		other := &jsonschema.Schema{Not: &jsonschema.Schema{Type: "number"}}
		n.schema.AllOf = append(n.schema.AllOf,
			&jsonschema.Schema{AnyOf: []*jsonschema.Schema{other, {Enum: multiples}}})
	}
	resolved, err := parsed.Resolve(nil)
	return err == nil && resolved.Validate(value) == nil
}

// decode reads one JSON text. It keeps the notation of numbers.
func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is no JSON in it")
		}
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("invalid JSON: more follows the first value")
	}
	return value, nil
}

func depth(value any) int {
	deepest := 0
	switch x := value.(type) {
	case []any:
		for _, item := range x {
			deepest = max(deepest, depth(item))
		}
	case map[string]any:
		for _, member := range x {
			deepest = max(deepest, depth(member))
		}
	default:
		return 0
	}
	return deepest + 1
}

// plain converts written numbers to Go's, in place, and collects the written ones.
func plain(value any, numbers *[]json.Number) (any, error) {
	var err error
	switch x := value.(type) {
	case json.Number:
		*numbers = append(*numbers, x)
		return number(x)
	case []any:
		for i, item := range x {
			if x[i], err = plain(item, numbers); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name, member := range x {
			if x[name], err = plain(member, numbers); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func number(written json.Number) (any, error) {
	if i, err := strconv.ParseInt(string(written), 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(string(written), 10, 64); err == nil {
		return u, nil
	}
	f, err := written.Float64()
	if err != nil {
		return nil, fmt.Errorf("the number %s is out of range", text.Cut(string(written), 100))
	}
	return f, nil
}

// clean returns an error that can be printed: the places in the schema and what is wrong there, on one line, cut where
// it is long.
func clean(err error) error {
	message := err.Error()
	var places []string
	for {
		rest, found := strings.CutPrefix(message, "validating ")
		place, words, ended := strings.Cut(rest, ": ")
		if !found || !ended {
			break
		}
		if last := len(places) - 1; last >= 0 && strings.HasPrefix(place, places[last]+"/") {
			places = places[:last] // the longer place includes it
		}
		if place != "root" {
			places = append(places, text.Cut(place, maxMessage/10))
		}
		message = words
	}
	if len(places) > 4 {
		places = append([]string{places[0], "…"}, places[len(places)-3:]...)
	}
	plainer := strings.NewReplacer("\nvalidating ", "; ", "\n", "; ", "<invalid reflect.Value>", "null", "<nil>",
		"null")
	printable, _ := text.Clean(strings.Join(append(places, plainer.Replace(message)), ": "))
	return errors.New(text.Cut(printable, maxMessage))
}
