package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
)

// Type is the type of a key's values.
type Type uint8

// The types. In Go they are string, int64, bool, time.Duration, string, []string and int64.
const (
	String   Type = iota
	Int           // a whole number, not a negative one
	Bool          // true or false
	Duration      // 90s, 1h30m, 30d
	Enum          // one of Key.Enum
	List          // strings; as text separated by commas, or a JSON array
	Bytes         // a whole number, or one with KB, MB, GB, KiB, MiB or GiB
)

func (t Type) String() string {
	names := [...]string{"string", "int", "bool", "duration", "enum", "list", "bytes"}
	if int(t) < len(names) {
		return names[t]
	}
	return "unknown"
}

// Key is one setting that can be configured.
type Key struct {
	Name    string // dotted: "audit.keep"
	Type    Type
	Default string           // as text; "" = unset
	Enum    []string         // the allowed values of an Enum
	Also    setting.Synonyms // words of other programs for them
	Max     string           // the longest Duration, as text; "" = any
	Env     string           // variable that sets it; "" = none
	Flag    string           // flag that sets it, for sources; "" = the name with dashes for dots and underscores
	Help    string

	// Personal: a project's file cannot set it, trusted or not, because it concerns the user's own things.
	Personal bool
	// Sum: the values of a List in all files hold together.
	Sum bool
	// Valid returns what is wrong with one value of a List that is about to be set; nil: any is right.
	Valid func(text string) error
}

// ReadKeys reads a table of keys, one a line: the name, the type, what else there is to say, and the help. A type that
// nobody knows makes a key that takes nothing.
func ReadKeys(table string) []Key {
	var keys []Key
	for line := range strings.Lines(table) {
		declared, help, said := strings.Cut(strings.TrimSpace(line), ": ")
		if line[0] == '#' || !said {
			continue
		}
		words := strings.Fields(declared)
		k := Key{Name: words[0], Help: help}
		for k.Type.String() != words[1] && k.Type <= Bytes {
			k.Type++
		}
		for _, word := range words[2:] {
			switch what, value, _ := strings.Cut(word, "="); what {
			case "personal":
				k.Personal = true
			case "sum":
				k.Sum = true
			case "default":
				k.Default = value
			case "max":
				k.Max = value
			case "values":
				k.Enum = strings.Split(value, ",")
			case "also":
				k.Also = setting.Meaning(value)
			case "env":
				k.Env = value
			case "flag":
				k.Flag = value
			}
		}
		keys = append(keys, k)
	}
	return keys
}

func (k Key) flag() string {
	if k.Flag != "" {
		return "--" + strings.TrimLeft(k.Flag, "-")
	}
	return "--" + strings.NewReplacer(".", "-", "_", "-").Replace(k.Name)
}

func findKey(keys []Key, name string) (Key, bool) {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

func keyNames(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// parse reads a value from the text of a flag, a variable, a default or `config set`.
func (k Key) parse(text string) (any, error) {
	switch k.Type {
	case Int:
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("must be %s, not %s", k.Type.description(nil), quote(text))
		}
		return n, nil
	case Bool:
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true", "1", "yes", "on":
			return true, nil
		case "false", "0", "no", "off":
			return false, nil
		}
		return nil, fmt.Errorf("must be true or false, not %s", quote(text))
	case Duration:
		return k.parseDuration(text)
	case Enum:
		text = k.Also.Read(text)
		if words := k.Also.Refusal(text); words != "" {
			return nil, fmt.Errorf("has no value %s: elsewhere it means that %s", quote(text), words)
		}
		if !slices.Contains(k.Enum, text) {
			return nil, fmt.Errorf("must be one of %s, not %s", strings.Join(k.Enum, ", "), quote(text))
		}
		return text, nil
	case List:
		return parseList(text)
	case Bytes:
		return parseBytes(text)
	}
	return text, nil
}

// fromLiteral reads a value from a file, where types matter: a number in quotes is a string.
func (k Key) fromLiteral(v literal.Value) (any, error) {
	n, whole := v.Int()
	switch {
	case v.Kind == literal.String && (k.Type == String || k.Type == Enum || k.Type == Duration || k.Type == Bytes):
		return k.parse(v.Str)
	case whole && (k.Type == Int || k.Type == Bytes) && n >= 0:
		return n, nil
	case v.Kind == literal.Bool && k.Type == Bool:
		return v.Bool, nil
	case v.Kind == literal.Array && k.Type == List:
		items := make([]string, len(v.Items))
		for i, item := range v.Items {
			if item.Kind != literal.String {
				return nil, fmt.Errorf("must be a list of strings, and item %d is a %v", i+1, item.Kind)
			}
			items[i] = item.Str
		}
		return items, nil
	}
	return nil, fmt.Errorf("must be %s, not a %v", k.Type.description(k.Enum), describe(v))
}

func (t Type) description(enum []string) string {
	return cmp.Or(map[Type]string{
		Int: "a whole number of at least 0", Bool: "true or false, without quotes",
		Duration: `a duration with its unit, in quotes, such as "90s"`,
		Enum:     "one of " + strings.Join(enum, ", ") + ", in quotes",
		List:     "a list of strings", Bytes: `a number of bytes, such as 4096 or "4KiB"`,
	}[t], "a string, in quotes")
}

func describe(v literal.Value) string {
	switch v.Kind {
	case literal.Number:
		switch n, whole := v.Int(); {
		case !whole:
			return "fraction"
		case n < 0:
			return "negative number"
		}
		return "number"
	case literal.Array:
		return "list"
	}
	return v.Kind.String()
}

func (k Key) parseDuration(written string) (any, error) {
	d, ok := text.Duration(written)
	if !ok {
		return nil, fmt.Errorf("must be a duration with its unit, such as 90s, 1h30m or 30d, not %s", quote(written))
	}
	if most, ok := text.Duration(k.Max); ok && d > most {
		return nil, fmt.Errorf("must be at most %s, not %s", k.Max, quote(written))
	}
	return d, nil
}

func parseBytes(text string) (any, error) {
	wrong := fmt.Errorf("must be a number of bytes, such as 4096, 4KiB or 1MB, not %s", quote(text))
	digits := strings.TrimSpace(text)
	unit := uint64(1)
	for _, u := range []struct {
		name string
		size uint64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if cut, ok := strings.CutSuffix(digits, u.name); ok {
			digits, unit = strings.TrimSpace(cut), u.size
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > math.MaxInt64/unit {
		return nil, wrong
	}
	return int64(n * unit), nil
}

func parseList(text string) (any, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		v, err := literal.ParseJSON5([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("is not a list: %w", err)
		}
		return Key{Type: List}.fromLiteral(v)
	}
	items := []string{}
	for _, item := range splitList(text) {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

// splitList splits at commas outside brackets: Bash(git log --format=a,b) is one rule. If the brackets do not match, it
// splits at every comma, so that a mistake stays within its item.
func splitList(text string) []string {
	var items []string
	depth, begin := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			items, begin = append(items, text[begin:i]), i+1
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		return strings.Split(text, ",")
	}
	return append(items, text[begin:])
}

// showRaw returns the value as text that parse accepts. It keeps the written form if the type allows.
func showRaw(raw any, written string) string {
	switch v := raw.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case time.Duration:
		if written != "" {
			return strings.TrimSpace(written)
		}
		return v.String()
	case []string:
		text := strings.Join(v, ",")
		if back, err := parseList(text); err == nil && slices.Equal(back.([]string), v) {
			return text
		}
		if all, err := json.Marshal(v); err == nil {
			return string(all)
		}
	}
	return ""
}

// tomlValue returns the value in the type that the file holds.
func (k Key) tomlValue(text string) (any, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("is not UTF-8")
	}
	raw, err := k.parse(text)
	if err != nil {
		return nil, err
	}
	switch v := raw.(type) {
	case time.Duration:
		return strings.TrimSpace(text), nil
	case int64:
		if _, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err != nil {
			return strings.TrimSpace(text), nil // 4KiB says more than 4096
		}
		return v, nil
	}
	return raw, nil
}
