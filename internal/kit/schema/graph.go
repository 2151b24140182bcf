package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// The limits of a check. Each frame of the library takes 4 KB of the stack and repeats the error text from below.
const (
	leastSteps  = 200_000
	stepsByByte = 8
	mostFrames  = 2000
)

// graph is a schema with its references resolved, to predict the cost of a check.
type graph struct {
	nodes   []*node
	names   map[string]*node   // by URI, with an anchor or a JSON pointer
	dynamic map[string][]*node // by $dynamicAnchor
}

// node is a schema, with the schemas that it applies.
type node struct {
	schema  *jsonschema.Schema
	pointer string
	base    *url.URL
	inPlace []*node            // to the same value
	prefix  []*node            // to the item of the same index
	items   []*node            // to any item
	named   map[string][]*node // to the member of the name
	members []*node            // to any member or its name
}

func (n *node) String() string {
	if n.pointer == "" {
		return "the schema"
	}
	return n.pointer
}

// resource is a part of a schema with a URI of its own.
type resource struct {
	uri     string
	pointer string // from the document to it
}

func newGraph(root *jsonschema.Schema) *graph {
	g := &graph{names: map[string]*node{}, dynamic: map[string][]*node{}}
	g.node(root, "", &url.URL{}, []resource{{}})
	return g
}

// node adds a schema, its names and its parts.
func (g *graph) node(s *jsonschema.Schema, pointer string, base *url.URL, around []resource) *node {
	n := &node{schema: s, pointer: pointer, base: base, named: map[string][]*node{}}
	g.nodes = append(g.nodes, n)
	if id, err := base.Parse(s.ID); s.ID != "" && err == nil {
		if id.Fragment != "" {
			g.names[id.String()] = n // an anchor of draft-07
		} else {
			n.base = id
			around = append(around[:len(around):len(around)], resource{strings.TrimSuffix(id.String(), "#"), pointer})
		}
	}
	for _, r := range around {
		g.names[r.uri+"#"+strings.TrimPrefix(pointer, r.pointer)] = n
	}
	home := around[len(around)-1].uri
	for _, anchor := range []string{s.Anchor, s.DynamicAnchor} {
		if anchor != "" {
			g.names[home+"#"+anchor] = n
		}
	}
	if s.DynamicAnchor != "" {
		g.dynamic[s.DynamicAnchor] = append(g.dynamic[s.DynamicAnchor], n)
	}
	g.parts(n, func(token string, part *jsonschema.Schema) *node {
		return g.node(part, pointer+"/"+token, n.base, around)
	})
	return n
}

// parts finds the schemas within a schema.
func (g *graph) parts(n *node, add func(token string, part *jsonschema.Schema) *node) {
	s := n.schema
	one := func(to *[]*node, token string, part *jsonschema.Schema) {
		if part != nil {
			*to = append(*to, add(token, part))
		}
	}
	list := func(to *[]*node, token string, parts []*jsonschema.Schema) {
		for i, part := range parts {
			one(to, token+"/"+strconv.Itoa(i), part)
		}
	}
	byName := func(token string, parts map[string]*jsonschema.Schema, to func(name string, part *node)) {
		escape := strings.NewReplacer("~", "~0", "/", "~1")
		for name, part := range parts {
			if part != nil {
				to(name, add(token+"/"+escape.Replace(name), part))
			}
		}
	}
	list(&n.inPlace, "allOf", s.AllOf)
	list(&n.inPlace, "anyOf", s.AnyOf)
	list(&n.inPlace, "oneOf", s.OneOf)
	one(&n.inPlace, "not", s.Not)
	one(&n.inPlace, "if", s.If)
	one(&n.inPlace, "then", s.Then)
	one(&n.inPlace, "else", s.Else)
	same := func(_ string, part *node) { n.inPlace = append(n.inPlace, part) }
	byName("dependentSchemas", s.DependentSchemas, same)
	byName("dependencies", s.DependencySchemas, same)
	list(&n.prefix, "prefixItems", s.PrefixItems)
	list(&n.prefix, "items", s.ItemsArray)
	one(&n.items, "items", s.Items)
	one(&n.items, "additionalItems", s.AdditionalItems)
	one(&n.items, "contains", s.Contains)
	one(&n.items, "unevaluatedItems", s.UnevaluatedItems)
	byName("properties", s.Properties, func(name string, part *node) { n.named[name] = append(n.named[name], part) })
	byName("patternProperties", s.PatternProperties, func(_ string, part *node) { n.members = append(n.members, part) })
	one(&n.members, "additionalProperties", s.AdditionalProperties)
	one(&n.members, "propertyNames", s.PropertyNames)
	one(&n.members, "unevaluatedProperties", s.UnevaluatedProperties)
	byName("$defs", s.Defs, func(string, *node) {})
	byName("definitions", s.Definitions, func(string, *node) {})
	one(new([]*node), "contentSchema", s.ContentSchema)
}

// connect resolves the references, and refuses a schema that reaches itself without a step into the value, such as
// {"$ref":"#"}: the library would not return.
func (g *graph) connect() error {
	for _, n := range g.nodes {
		if n.schema.Ref != "" {
			target, _, err := g.target(n, n.schema.Ref)
			if err != nil {
				return err
			}
			n.inPlace = append(n.inPlace, target)
		}
		if n.schema.DynamicRef != "" {
			target, fragment, err := g.target(n, n.schema.DynamicRef)
			if err != nil {
				return err
			}
			n.inPlace = append(append(n.inPlace, target), g.dynamic[fragment]...)
		}
	}
	open := map[*node]bool{} // true while its parts are visited, false afterwards
	for _, n := range g.nodes {
		if err := endless(n, open); err != nil {
			return err
		}
	}
	return nil
}

func (g *graph) target(n *node, ref string) (*node, string, error) {
	uri, err := n.base.Parse(ref)
	if err != nil {
		return nil, "", fmt.Errorf("%s: the reference %q is not a URI", n, ref)
	}
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	target := g.names[uri.String()+"#"+fragment]
	if target == nil {
		return nil, "", fmt.Errorf("%s: the reference %q leads nowhere within this document", n, ref)
	}
	return target, fragment, nil
}

func endless(n *node, open map[*node]bool) error {
	if visiting, known := open[n]; visiting {
		return fmt.Errorf("%s: it refers to itself without a step into the value", n)
	} else if known {
		return nil
	}
	open[n] = true
	for _, part := range n.inPlace {
		if err := endless(part, open); err != nil {
			return err
		}
	}
	open[n] = false
	return nil
}

// weight counts the steps of a check.
type weight struct{ left int }

// fits reports whether the check of a value stays within the bounds.
func (w *weight) fits(n *node, value any, frames int) bool {
	if w.left--; w.left < 0 || frames > mostFrames {
		return false
	}
	all := func(nodes []*node, value any) bool {
		for _, part := range nodes {
			if !w.fits(part, value, frames+1) {
				return false
			}
		}
		return true
	}
	if !all(n.inPlace, value) {
		return false
	}
	switch x := value.(type) {
	case []any:
		for i, item := range x {
			if i < len(n.prefix) && !w.fits(n.prefix[i], item, frames+1) || !all(n.items, item) {
				return false
			}
		}
	case map[string]any:
		for name, member := range x {
			if !all(n.named[name], member) || !all(n.members, member) {
				return false
			}
		}
	}
	return true
}
