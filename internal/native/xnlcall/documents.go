package xnlcall

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/xnl"
	"omniagent/internal/native/tool"
)

//go:embed docs
var docs embed.FS

// Document is a part of the prompt.
type Document struct {
	Name string `json:"name"` // such as bash.brief.xnl
	Text string `json:"text"`
}

// SystemPrompt returns the first part of the prompt. It names the routes of seed 2 instead of the engine's tools.
func SystemPrompt() string { return document("SystemPrompt.md") }

func document(name string) string {
	text, err := docs.ReadFile("docs/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return strings.TrimSpace(string(text))
}

// Documents returns the parts of the prompt that follow the system prompt: the notation, the protocol, and for each
// tool a description and its usage.
func Documents(tools []event.ToolSpec) []Document {
	all := []Document{
		{"XnlDataFormatForAi.md", document("XnlDataFormatForAi.md")},
		{"XnlToolcallSpec.md", document("XnlToolcallSpec.md")},
	}
	n, i := namesOf(tools), 0
	for _, t := range tools {
		if t.Name == tool.RejectedName {
			continue
		}
		namespace, name, _ := strings.Cut(n.list[i], ".")
		i++
		brief, detail := name+".brief.xnl", name+".detail.xnl"
		if namespace == tool.Namespace {
			all = append(all, Document{brief, document(brief)}, Document{detail, document(detail)})
			continue
		}
		all = append(all, Document{brief, briefOf(namespace, name, t)}, Document{detail, detailOf(namespace, name, t)})
	}
	return all
}

// briefOf returns the description of a tool.
func briefOf(namespace, name string, t event.ToolSpec) string {
	return xnl.Print(&xnl.Node{Tag: "tool", Attributes: xnl.Object{
		{Key: "namespace", Value: namespace}, {Key: "name", Value: name}, {Key: "description", Value: t.Description},
	}}, "  ")
}

// detailOf returns the usage of a tool, from the schema of its input.
func detailOf(namespace, name string, t event.ToolSpec) string {
	v, _ := xnl.FromJSON(t.Input) // an invalid schema describes nothing
	schema, _ := v.(xnl.Object)
	types := "\nexport type " + name + "Input = " + typeOf(schema, 0) + ";\nexport type " + name +
		"Output = string;\n" +
		"export type " + name + " = (input: " + name + "Input) => Promise<" + name + "Output>;\n"
	return xnl.Print([]*xnl.Node{
		{Kind: xnl.Text, Tag: "type_def", Metadata: xnl.Object{{Key: "lang", Value: "typescript"}}, Text: types},
		{
			Kind: xnl.Text, Tag: "demo", Marker: "good_usage_demo1",
			Text: "\n" + blockWith("x1", namespace+"."+name, exampleOf(schema)),
		},
	}, "  ")
}

// deepest limits the depth of the types that are described.
const deepest = 4

// typeOf returns a schema as a TypeScript type, which is unknown if it has no equivalent.
func typeOf(schema xnl.Object, depth int) string {
	if list := listIn(schema, "enum"); len(list) > 0 {
		return union(list, quoted)
	}
	for _, member := range []string{"anyOf", "oneOf"} {
		if _, ok := schema.Get(member); ok && depth < deepest {
			return union(listIn(schema, member), func(v any) string {
				one, _ := v.(xnl.Object)
				return typeOf(one, depth+1)
			})
		}
	}
	kind, _ := schema.Get("type")
	if list, ok := kind.([]any); ok {
		return union(list, func(v any) string { return typeOf(xnl.Object{{Key: "type", Value: v}}, depth+1) })
	}
	switch kind {
	case "string", "boolean", "null":
		return fmt.Sprint(kind)
	case "integer", "number":
		return "number"
	case "array":
		element := typeOf(objectIn(schema, "items"), depth)
		if strings.ContainsAny(element, "|{") {
			return "Array<" + element + ">"
		}
		return element + "[]"
	case "object":
		if _, ok := schema.Get("properties"); ok && depth < deepest {
			return objectType(schema, depth)
		}
		return "Record<string, unknown>"
	}
	return "unknown"
}

func union(list []any, print func(any) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = print(v)
	}
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, " | ")
}

func quoted(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "unknown"
	}
	return string(raw)
}

func objectType(schema xnl.Object, depth int) string {
	var b strings.Builder
	margin := strings.Repeat("  ", depth+1)
	b.WriteString("{\n")
	for _, m := range objectIn(schema, "properties") {
		about, _ := m.Value.(xnl.Object)
		if text := strings.Join(strings.Fields(about.String("description")), " "); text != "" {
			b.WriteString(margin + "/** " + strings.ReplaceAll(text, "*/", "* /") + " */\n")
		}
		mark := "?"
		if slices.Contains(listIn(schema, "required"), any(m.Key)) {
			mark = ""
		}
		b.WriteString(margin + keyOf(m.Key) + mark + ": " + typeOf(about, depth+1) + ";\n")
	}
	return b.String() + strings.Repeat("  ", depth) + "}"
}

func objectIn(schema xnl.Object, key string) xnl.Object {
	v, _ := schema.Get(key)
	o, _ := v.(xnl.Object)
	return o
}

func listIn(schema xnl.Object, key string) []any {
	v, _ := schema.Get(key)
	list, _ := v.([]any)
	return list
}

func keyOf(key string) string {
	if identifier(key) == key {
		return key
	}
	return quoted(key)
}

// exampleOf returns an example input with the members that a schema requires.
func exampleOf(schema xnl.Object) string {
	var parts []string
	for _, m := range objectIn(schema, "properties") {
		about, _ := m.Value.(xnl.Object)
		if slices.Contains(listIn(schema, "required"), any(m.Key)) {
			parts = append(parts, keyOf(m.Key)+": "+valueOf(about))
		}
	}
	if parts == nil {
		return "{}"
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

func valueOf(schema xnl.Object) string {
	if list := listIn(schema, "enum"); len(list) > 0 {
		return quoted(list[0])
	}
	kind, _ := schema.Get("type")
	switch kind {
	case "integer", "number":
		return "1"
	case "boolean":
		return "true"
	case "array":
		return "[]"
	case "object":
		return exampleOf(schema)
	}
	return `"…"`
}
