package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/literal"
)

// Value is the value of a key and its source.
type Value struct {
	Raw      any    // string, int64, bool, time.Duration or []string; nil if unset
	Text     string // as `config set` accepts it
	Source   string // flag:--x, env:X, file:/path:line:column or default
	File     string // path, if the source is a file
	Pos      literal.Pos
	Sum      bool     // the value is that of all sources
	Shadowed []string // lower sources that set the key as well, highest first, without the default
}

// Entry is a key with its value.
type Entry struct {
	Key   Key
	Value Value
}

// Set is the resolved configuration.
type Set struct {
	keys        []Key
	values      map[string]Value
	layers      []layer // highest first
	sources     []string
	warnings    []Warning
	context     string
	projectRoot string
	projectFile string
}

// resolve lets the highest layer that sets a key win.
func (s *Set) resolve(layers []layer) {
	s.values, s.layers = map[string]Value{}, layers
	for _, key := range s.keys {
		for _, l := range layers {
			v, ok := l[key.Name]
			if !ok {
				continue
			}
			winner, taken := s.values[key.Name]
			switch {
			case !taken:
				v.Sum = key.Sum
				s.values[key.Name] = v
			case key.Sum:
				s.values[key.Name] = winner.with(v)
			case v.Source != "default":
				winner.Shadowed = append(winner.Shadowed, v.Source)
				s.values[key.Name] = winner
			}
		}
	}
}

// with returns a list followed by that of a lower source.
func (v Value) with(lower Value) Value {
	first, _ := v.Raw.([]string)
	rest, _ := lower.Raw.([]string)
	all := slices.Concat(first, rest)
	v.Raw, v.Text, v.Source = all, showRaw(all, ""), v.Source+", "+lower.Source
	return v
}

// Lookup returns false if the key is unknown or unset.
func (s *Set) Lookup(name string) (Value, bool) {
	v, ok := s.values[name]
	return v, ok
}

// String returns the value of any key as text; "" when unset.
func (s *Set) String(name string) string { return s.values[name].Text }

// Int returns the value of a key of the type Int or Bytes; 0 when unset.
func (s *Set) Int(name string) int64 {
	n, _ := s.values[name].Raw.(int64)
	return n
}

// Bool returns the value of a key of the type Bool; false when unset.
func (s *Set) Bool(name string) bool {
	b, _ := s.values[name].Raw.(bool)
	return b
}

// Duration returns the value of a key of the type Duration; 0 when unset.
func (s *Set) Duration(name string) time.Duration {
	d, _ := s.values[name].Raw.(time.Duration)
	return d
}

// Limit returns the duration of the first of these keys that somebody set, or else the default of the first.
func (s *Set) Limit(names ...string) time.Duration {
	for _, name := range names {
		if v := s.values[name]; v.Raw != nil && v.Source != "default" {
			return s.Duration(name)
		}
	}
	return s.Duration(names[0])
}

// List returns the value of a key of the type List; nil when unset.
func (s *Set) List(name string) []string {
	l, _ := s.values[name].Raw.([]string)
	return slices.Clone(l)
}

// Everywhere returns the value of each layer, highest first, for settings that add up, such as rules.
func (s *Set) Everywhere(name string) []Value {
	var all []Value
	for _, l := range s.layers {
		if v, ok := l[name]; ok {
			all = append(all, v)
		}
	}
	return all
}

// All returns every key, sorted by name. An unset one has the source "default" and a nil Raw.
func (s *Set) All() []Entry {
	entries := make([]Entry, 0, len(s.keys))
	for _, key := range s.keys {
		v, ok := s.values[key.Name]
		if !ok {
			v.Source = "default"
		}
		entries = append(entries, Entry{key, v})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	return entries
}

// Sources returns the absolute paths of the files that were read and count, highest first.
func (s *Set) Sources() []string { return slices.Clone(s.sources) }

// Hash returns a hash of all values. The source and the notation of a value do not affect it.
func (s *Set) Hash() string {
	var all strings.Builder
	for _, e := range s.All() {
		fmt.Fprintf(&all, "%q=%T:%#v\n", e.Key.Name, e.Value.Raw, e.Value.Raw)
	}
	sum := sha256.Sum256([]byte(all.String()))
	return hex.EncodeToString(sum[:6])
}

// Warnings returns the warnings in the order of files and lines.
func (s *Set) Warnings() []Warning { return slices.Clone(s.warnings) }

// ContextName returns the chosen context, or "".
func (s *Set) ContextName() string { return s.context }

// ProjectFile returns the project file that was found, trusted or not, even if no file was to be read; "" if there is
// none.
func (s *Set) ProjectFile() string { return s.projectFile }
