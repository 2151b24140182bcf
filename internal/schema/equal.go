package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// canonical writes a value so that two are equal exactly if what is written is: numbers by their value, members by
// their name. One after the other they can be told apart.
func canonical(to []byte, value any) []byte {
	switch x := value.(type) {
	case nil:
		return append(to, 'n')
	case bool:
		if x {
			return append(to, 't')
		}
		return append(to, 'f')
	case json.Number:
		return canonicalNumber(to, numberOf(string(x)))
	case string:
		return canonicalString(append(to, 's'), x)
	case []any:
		to = append(to, '[')
		for _, item := range x {
			to = canonical(to, item)
		}
		return append(to, ']')
	case map[string]any:
		to = append(to, '{')
		for _, name := range slices.Sorted(maps.Keys(x)) {
			to = canonical(canonicalString(to, name), x[name])
		}
		return append(to, '}')
	}
	return append(to, '?')
}

func canonicalNumber(to []byte, n number) []byte {
	to = append(to, '#')
	if n.negative {
		to = append(to, '-')
	}
	to = append(append(to, n.digits...), 'e')
	return append(strconv.AppendInt(to, int64(n.power), 10), ';')
}

func canonicalString(to []byte, s string) []byte {
	to = append(strconv.AppendInt(to, int64(len(s)), 10), ':')
	return append(to, s...)
}

// values are those of an enum or a const.
type values struct {
	list  []any
	known map[string]bool // canonical
	kinds kinds
}

func newValues(list []any) *values {
	v := &values{list: list, known: make(map[string]bool, len(list))}
	for _, value := range list {
		v.known[string(canonical(nil, value))] = true
		v.kinds |= kindOf(value)
	}
	return v
}

// kinds are the types of JSON, as bits. An integer is a number too.
type kinds uint8

const (
	isNull kinds = 1 << iota
	isBoolean
	isInteger // only where a schema asks for it
	isNumber
	isString
	isArray
	isObject
)

func kindNamed(name string) (kinds, bool) {
	switch name {
	case "null":
		return isNull, true
	case "boolean":
		return isBoolean, true
	case "integer":
		return isInteger, true
	case "number":
		return isNumber, true
	case "string":
		return isString, true
	case "array":
		return isArray, true
	case "object":
		return isObject, true
	}
	return 0, false
}

func kindOf(value any) kinds {
	switch value.(type) {
	case nil:
		return isNull
	case bool:
		return isBoolean
	case json.Number:
		return isNumber
	case string:
		return isString
	case []any:
		return isArray
	}
	return isObject
}

// has says whether a value is of one of the kinds.
func (k kinds) has(value any) bool {
	kind := kindOf(value)
	if k&kind != 0 {
		return true
	}
	return kind == isNumber && k&isInteger != 0 && numberOf(string(value.(json.Number))).integer()
}

// String is for a sentence: what a value must be.
func (k kinds) String() string {
	said := ""
	for i, name := range [...]string{
		"null", "a boolean", "an integer", "a number", "a string", "an array",
		"an object",
	} {
		if k&(1<<i) != 0 {
			if said != "" {
				said += " or "
			}
			said += name
		}
	}
	return said
}
