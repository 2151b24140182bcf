package agentsfile

import (
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/text"
)

// reader converts the tree of a file, and records all errors. A member that is null counts as missing.
type reader struct {
	*problems
	taken map[string]literal.Pos // ids and aliases, in lower case
}

func (r *reader) file(f *File, v literal.Value) {
	r.taken = map[string]literal.Pos{}
	if !r.is(v, literal.Object, "the configuration", "an object") {
		return
	}
	if m, ok := member(v, "defaultAgent"); ok {
		f.DefaultAgent, f.DefaultAgentPos = strings.TrimSpace(r.str(m, "defaultAgent")), m.Pos
	}
	if m, ok := member(v, "targets"); ok && r.is(m, literal.Array, "targets", "a list of objects") {
		for i, item := range m.Items {
			if name := fmt.Sprintf("targets[%d]", i); r.is(item, literal.Object, name, "an object") {
				f.Targets = append(f.Targets, r.target(item, name))
			}
		}
	}
	if m, ok := member(v, "disableTargets"); ok && r.is(m, literal.Array, "disableTargets", "a list of strings") {
		for i, item := range m.Items { // for other tools; only checked
			r.str(item, fmt.Sprintf("disableTargets[%d]", i))
		}
	}
}

// member returns a member that is not null.
func member(v literal.Value, key string) (literal.Value, bool) {
	m, ok := v.Member(key)
	return m.Value, ok && m.Value.Kind != literal.Null
}

// is reports whether a value has a kind, and records a problem otherwise.
func (r *reader) is(v literal.Value, kind literal.Kind, name, what string) bool {
	if v.Kind != kind {
		r.add(v.Pos, fmt.Sprintf("%s must be %s, not %s", name, what, kindName(v.Kind)), v.Str+v.Num, "")
	}
	return v.Kind == kind
}

func kindName(k literal.Kind) string {
	switch k {
	case literal.Array:
		return "a list"
	case literal.Object:
		return "an object"
	case literal.Null:
		return "null"
	}
	return "a " + k.String()
}

// str reads a string that is not blank. Arguments of a program cannot contain a zero byte.
func (r *reader) str(v literal.Value, name string) string {
	switch {
	case !r.is(v, literal.String, name, "a string"):
		return ""
	case strings.TrimSpace(v.Str) == "":
		r.add(v.Pos, name+" must not be blank", v.Str, "")
	case strings.ContainsRune(v.Str, 0):
		r.add(v.Pos, name+" must not contain a zero byte", v.Str, "")
	}
	return v.Str
}

// strings reads a list of arguments, which may be blank. It is never nil.
func (r *reader) strings(v literal.Value, name string) []string {
	list := []string{}
	if !r.is(v, literal.Array, name, "a list of strings") {
		return list
	}
	for i, item := range v.Items {
		at := fmt.Sprintf("%s[%d]", name, i)
		if !r.is(item, literal.String, at, "a string") {
			continue
		}
		if strings.ContainsRune(item.Str, 0) {
			r.add(item.Pos, at+" must not contain a zero byte", item.Str, "")
		}
		list = append(list, item.Str)
	}
	return list
}

// oneOf reads one of a few words; any other value is an error and returns "".
func (r *reader) oneOf(v literal.Value, name string, words ...string) string {
	if !r.is(v, literal.String, name, "a string") {
		return ""
	}
	if slices.Contains(words, v.Str) {
		return v.Str
	}
	near := text.Nearest(v.Str, words)
	r.add(v.Pos, fmt.Sprintf("%s must be %s, not %s%s", name, text.Either(words), quote(v.Str), didYouMean(near)),
		v.Str,
		near)
	return ""
}

func didYouMean(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// keys records misspelt members, which would otherwise be ignored. Other unknown members may belong to another program.
func (r *reader) keys(v literal.Value, name string, known ...string) {
	for _, m := range v.Members {
		if slices.Contains(known, m.Key) {
			continue
		}
		if near := text.Nearest(m.Key, known); near != "" {
			if _, there := v.Member(near); !there {
				r.add(m.KeyPos, fmt.Sprintf("%s has no key %s%s", name, quote(m.Key), didYouMean(near)), m.Key, near)
			}
		}
	}
}

// exactly records every unknown member.
func (r *reader) exactly(v literal.Value, name string, known []string) {
	for _, m := range v.Members {
		if !slices.Contains(known, m.Key) {
			near := text.Nearest(m.Key, known)
			r.add(m.KeyPos, fmt.Sprintf("%s has %s, which is not %s%s", name, quote(m.Key), text.Either(known),
				didYouMean(near)), m.Key, near)
		}
	}
}

// need returns a required member.
func (r *reader) need(v literal.Value, name, key string) (literal.Value, bool) {
	m, ok := member(v, key)
	if !ok && !r.misspelt(v, key) {
		r.add(v.Pos, fmt.Sprintf("%s needs the key %s", name, key), "", "")
	}
	return m, ok
}

// misspelt reports whether keys has already recorded the misspelling.
func (r *reader) misspelt(v literal.Value, key string) bool {
	_, there := v.Member(key)
	return !there &&
		slices.ContainsFunc(v.Members, func(m literal.Member) bool {
			return text.Nearest(m.Key, []string{key}) != "" &&
				m.Key != key
		})
}
