package opencode

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

// rule is one line of a permission: the action for calls of a tool whose arguments match the pattern. The last matching
// rule decides.
type rule struct{ tool, pattern, action string }

// permission merges the values of OPENCODE_PERMISSION in the cells into one. It also merges an existing value of the
// variable, so that nothing is allowed that either forbids.
func permission(env []string, s agent.Spec) []string {
	var ours []rule
	rest := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		value, ok := strings.CutPrefix(entry, permissionName+"=")
		if ok {
			if part, good := rules(value); good {
				ours = append(ours, part...)
			}
		}
		return ok
	})
	// these modes apply to the web tools too
	if a := s.Shared.Approval.Value; a == setting.DenyAll || a == setting.AskAll {
		ours = slices.DeleteFunc(ours, func(r rule) bool { return r.tool != "*" && r.action == "allow" })
	}
	if len(ours) == 0 {
		return rest
	}
	theirs, good := rules(cli.First(s.Env, permissionName))
	if !good { // the CLI ignores an invalid value
		theirs = nil
	}
	return append(rest, permissionName+"="+encodeRules(theirs, ours))
}

// encodeRules encodes one object: first their rules for other tools, in order, then our rules for each tool.
func encodeRules(theirs, ours []rule) string {
	var tools []string
	for _, o := range ours {
		tools = append(tools, o.tool)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	// A person's rules for all tools come first, so that ours take precedence.
	for _, group := range grouped(slices.DeleteFunc(slices.Clone(theirs),
		func(r rule) bool { return slices.Contains(tools, r.tool) })) {
		member(&b, group)
	}
	for _, o := range ours {
		list := []rule{{o.tool, "*", o.action}}
		for _, t := range theirs {
			if !match(o.tool, t.tool) {
				continue
			}
			action := stricter(t.action, o.action)
			list = slices.DeleteFunc(list, func(r rule) bool { return r.pattern == t.pattern })
			list = append(list, rule{o.tool, t.pattern, action})
		}
		if !slices.ContainsFunc(list, func(r rule) bool { return r.action != o.action }) {
			list = []rule{{o.tool, "*", o.action}}
		}
		member(&b, list)
	}
	b.WriteByte('}')
	return b.String()
}

// grouped groups neighbouring rules of the same tool.
func grouped(rs []rule) [][]rule {
	var out [][]rule
	for _, r := range rs {
		if n := len(out); n > 0 && out[n-1][0].tool == r.tool {
			out[n-1] = append(out[n-1], r)
			continue
		}
		out = append(out, []rule{r})
	}
	return out
}

func member(b *bytes.Buffer, rs []rule) {
	if len(rs) == 0 {
		return
	}
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	write(b, rs[0].tool)
	b.WriteByte(':')
	if len(rs) == 1 && rs[0].pattern == "*" {
		write(b, rs[0].action)
		return
	}
	for i, r := range rs {
		b.WriteByte([]byte("{,")[min(i, 1)])
		write(b, r.pattern)
		b.WriteByte(':')
		write(b, r.action)
	}
	b.WriteByte('}')
}

func write(b *bytes.Buffer, s string) {
	data, _ := json.Marshal(s) // strings always encode
	b.Write(data)
}

// rules parses a permission: one action, or an object of tools, each with one action or an object of patterns. It reads
// token by token, because the order matters. It rejects a permission with an unknown action.
func rules(text string) ([]rule, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	t, err := d.Token()
	if err != nil {
		return nil, false
	}
	if action, ok := t.(string); ok {
		return []rule{{"*", "*", action}}, known(action)
	}
	if t != json.Delim('{') {
		return nil, false
	}
	var out []rule
	for d.More() {
		tool, ok := word(d)
		if !ok {
			return nil, false
		}
		t, err := d.Token()
		if err != nil {
			return nil, false
		}
		if action, isWord := t.(string); isWord && known(action) {
			out = append(out, rule{tool, "*", action})
			continue
		}
		if t != json.Delim('{') {
			return nil, false
		}
		for d.More() {
			pattern, ok1 := word(d)
			action, ok2 := word(d)
			if !ok1 || !ok2 || !known(action) {
				return nil, false
			}
			out = append(out, rule{tool, pattern, action})
		}
		if _, err := d.Token(); err != nil {
			return nil, false
		}
	}
	_, err = d.Token()
	return out, err == nil
}

func word(d *json.Decoder) (string, bool) {
	t, err := d.Token()
	s, ok := t.(string)
	return s, ok && err == nil
}

func known(action string) bool { return action == "allow" || action == "ask" || action == "deny" }

// stricter returns the stricter of two actions.
func stricter(a, b string) string {
	order := []string{"deny", "ask", "allow"}
	return order[min(slices.Index(order, a), slices.Index(order, b))]
}

// match reports whether a name matches a pattern of the CLI: * matches any number of characters, ? matches one.
func match(name, pattern string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return match(name, strings.TrimLeft(pattern, "*")) || name != "" && match(name[1:], pattern)
	case name == "":
		return false
	case pattern[0] == '?' || pattern[0] == name[0]:
		return match(name[1:], pattern[1:])
	}
	return false
}
