package modelserver

import (
	"encoding/json"
	"strings"
)

// readSchema parses what it can; the rest is an empty schema.
func readSchema(data JSON) *schema {
	s := &schema{}
	if json.Unmarshal(data, s) != nil {
		return &schema{}
	}
	return s
}

// sample returns a value that fits a schema.
func sample(data JSON) JSON {
	s := readSchema(data)
	return encode(s.example("", s))
}

// member returns the first of several names that the schema has.
func (s *schema) member(names []string) (string, bool) {
	for _, n := range names {
		if s.Properties[n] != nil {
			return n, true
		}
	}
	return "", false
}

// kind returns the type, or the first of several that is not null, in lower case, since one vendor uses upper case.
func (s *schema) kind() string {
	switch t := s.Type.(type) {
	case string:
		return strings.ToLower(t)
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok && name != "null" {
				return strings.ToLower(name)
			}
		}
	}
	if len(s.Properties) > 0 {
		return "object"
	}
	return ""
}

// hold puts a value where the schema may want a list of it.
func (s *schema) hold(value any, what string) any {
	if s.kind() != "array" {
		return value
	}
	if command, ok := value.(string); ok && what == "command" {
		return shellWords(command)
	}
	if what != "question" || s.Items == nil {
		return []any{value}
	}
	item := map[string]any{}
	for _, name := range s.Items.Required {
		if p := s.Items.Properties[name]; p != nil {
			item[name] = p.example(name, s)
		}
	}
	for _, name := range []string{"question", "title"} {
		if s.Items.Properties[name] != nil {
			item[name] = value
			break
		}
	}
	if o := s.Items.Properties["options"]; o != nil && o.Items != nil {
		item["options"] = o.Items.choices()
	}
	return []any{item}
}

// choices returns two options of a question.
func (s *schema) choices() []any {
	out := []any{}
	for _, label := range []string{"yes", "no"} {
		if s.kind() != "object" {
			out = append(out, label)
			continue
		}
		option := map[string]any{}
		for _, name := range s.Required {
			option[name] = label
		}
		option["label"] = label
		out = append(out, option)
	}
	return out
}

// sampler bounds the work: a schema that refers to itself has no end.
type sampler struct {
	root *schema // where references lead
	left int
}

const deepest, widest = 12, 2000

// example returns a value that fits; name is the member that it is for.
func (s *schema) example(name string, root *schema) any {
	return (&sampler{root, widest}).sample(s, name, 0)
}

func (p *sampler) sample(s *schema, name string, depth int) any {
	if p.left--; s == nil || depth > deepest || p.left < 0 {
		return nil
	}
	if s.Ref != "" {
		return p.sample(p.root.resolve(s.Ref), name, depth+1)
	}
	if !absent(s.Const) {
		return s.Const
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	for _, list := range [][]*schema{s.Any, s.One, s.All} {
		if s.kind() == "" && len(list) > 0 {
			return p.sample(list[0], name, depth+1)
		}
	}
	switch s.kind() {
	case "object":
		return p.object(s, depth)
	case "array":
		list := []any{}
		for range min(s.LeastItems, 10) {
			list = append(list, p.sample(s.Items, "", depth+1))
		}
		return list
	case "integer", "number":
		if s.Least != "" {
			return s.Least
		}
		return 1
	case "boolean":
		return false
	case "null":
		return nil
	}
	if name == "description" {
		return "a step of a script"
	}
	return nothing
}

func (p *sampler) object(s *schema, depth int) any {
	out := map[string]any{}
	required := s.Required
	if len(required) == 0 {
		required = sortedKeys(s.Properties)
	}
	for _, name := range required {
		out[name] = p.sample(s.Properties[name], name, depth+1)
	}
	return out
}

// resolve follows a reference within the schema.
func (s *schema) resolve(ref string) *schema {
	for prefix, defs := range map[string]map[string]*schema{"#/$defs/": s.Defs, "#/definitions/": s.Old} {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			return defs[name]
		}
	}
	return nil
}
