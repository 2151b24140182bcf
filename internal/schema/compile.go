package schema

import (
	"fmt"
	"net/url"
	"strings"
)

// compiler makes nodes of a document.
type compiler struct {
	resources map[string]*resource
	nodes     []*node // in the order in which they were found
	dynamic   bool
	size      int // of all patterns
}

func (c *compiler) compile(document any) (*node, error) {
	root, err := c.node(&place{value: document}, nil)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(c.nodes); i++ { // a reference may lead to a place that is no schema elsewise
		if err := c.resolve(c.nodes[i]); err != nil {
			return nil, err
		}
	}
	return root, c.endless()
}

func wrong(at *place, format string, args ...any) error {
	return fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...))
}

// node makes one of a place. Home is the resource around it, nil for the document itself.
func (c *compiler) node(at *place, home *resource) (*node, error) {
	if at.node != nil {
		return at.node, nil
	}
	n := &node{at: at, home: home}
	at.node = n
	c.nodes = append(c.nodes, n)
	if home == nil {
		n.home = &resource{base: &url.URL{}, root: n, anchors: map[string]*node{}, dynamics: map[string]*node{}}
		c.resources[""] = n.home
	}
	switch x := at.value.(type) {
	case bool:
		n.always, n.never = x, !x
		return n, nil
	case map[string]any:
		r := reader{compiler: c, n: n, object: x}
		r.identity(home == nil)
		r.keywords()
		return n, r.err
	}
	return nil, wrong(at, "a schema is an object, true or false, not %s", described{at.value})
}

// reader fills one node. It keeps the first error.
type reader struct {
	*compiler
	n      *node
	object map[string]any
	err    error
}

func (r *reader) draft() draft { return r.n.home.draft }

func (r *reader) fail(keyword, format string, args ...any) {
	if r.err == nil {
		r.err = wrong(&place{parent: r.n.at, name: keyword, named: true}, format, args...)
	}
}

// identity reads $schema, $id and anchors.
func (r *reader) identity(document bool) {
	meant := r.draft()
	if _, resource := r.object["$id"]; resource || document {
		meant = r.dialect(meant)
	}
	if document {
		r.n.home.draft = meant
	}
	_, refers := r.object["$ref"]
	r.n.alone = refers && meant == draft07
	if r.n.alone {
		return
	}
	if id, ok := r.word("$id"); ok {
		r.identify(id, meant)
	}
	if r.draft() == draft07 {
		return
	}
	if name, ok := r.word("$anchor"); ok {
		r.name("$anchor", name)
	}
	if name, ok := r.word("$dynamicAnchor"); ok {
		r.name("$dynamicAnchor", name)
		r.n.home.dynamics[name] = r.n
	}
}

// dialect is what $schema says.
func (r *reader) dialect(usual draft) draft {
	uri, said := r.word("$schema")
	if !said {
		return usual
	}
	_, name, _ := strings.Cut(strings.TrimSuffix(uri, "#"), "://")
	switch name {
	case "json-schema.org/draft/2020-12/schema":
		return draft2020
	case "json-schema.org/draft-07/schema":
		return draft07
	}
	r.fail("$schema", "%s is neither of draft 2020-12 nor of draft-07", quoted(uri))
	return usual
}

// identify makes a resource of its own of the node, or gives it a name, which is how draft-07 has anchors.
func (r *reader) identify(id string, meant draft) {
	uri, err := r.n.home.base.Parse(id)
	if err != nil {
		r.fail("$id", "%s is no URI", quoted(id))
		return
	}
	name := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	if name != "" && meant == draft2020 {
		r.fail("$id", "%s must not have a fragment; $anchor gives a name", quoted(id))
		return
	}
	if !strings.HasPrefix(id, "#") {
		key := uri.String()
		if other := r.resources[key]; other != nil && other.root != r.n {
			r.fail("$id", "%s is that of %s too", quoted(id), other.root.at)
			return
		}
		if r.n.home.root != r.n {
			r.n.home = &resource{root: r.n, anchors: map[string]*node{}, dynamics: map[string]*node{}}
		}
		r.n.home.base, r.n.home.draft = uri, meant
		r.resources[key] = r.n.home
	}
	if name != "" {
		r.name("$id", name)
	}
}

// name makes the node known under a name within its resource.
func (r *reader) name(keyword, name string) {
	if other := r.n.home.anchors[name]; other != nil && other != r.n {
		r.fail(keyword, "%s is the name of %s too", quoted(name), other.at)
		return
	}
	r.n.home.anchors[name] = r.n
}

// resolve finds where the references of a node lead. They are found only now, for they may lead anywhere.
func (c *compiler) resolve(n *node) (err error) {
	object, _ := n.at.value.(map[string]any)
	r := reader{compiler: c, n: n, object: object}
	if ref, ok := r.word("$ref"); ok {
		if n.ref, _ = r.target("$ref", ref); n.ref != nil {
			n.ref.referred = true
		}
	}
	if r.draft() == draft07 {
		return r.err
	}
	if ref, ok := r.word("$dynamicRef"); ok {
		c.dynamic = true
		var name string
		if n.dynamic, name = r.target("$dynamicRef", ref); n.dynamic != nil &&
			n.dynamic.home.dynamics[name] == n.dynamic {
			n.anchor = name
		}
	}
	return r.err
}

// target is the schema to which a reference leads, and the name by which it does, if it is one.
func (r *reader) target(keyword, ref string) (*node, string) {
	uri, err := r.n.home.base.Parse(ref)
	if err != nil {
		r.fail(keyword, "%s is no URI", quoted(ref))
		return nil, ""
	}
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	home := r.resources[uri.String()]
	switch {
	case home == nil:
		r.fail(keyword, "%s leads out of this document, and nothing is fetched", quoted(ref))
		return nil, ""
	case fragment == "":
		return home.root, ""
	case fragment[0] != '/':
		n := home.anchors[fragment]
		if n == nil {
			r.fail(keyword, "%s leads nowhere", quoted(ref))
		}
		return n, fragment
	}
	at := home.root.at.follow(fragment)
	if at == nil {
		r.fail(keyword, "%s leads nowhere", quoted(ref))
		return nil, ""
	}
	around := at
	for around.node == nil {
		around = around.parent
	}
	n, err := r.node(at, around.node.home)
	if r.err == nil {
		r.err = err
	}
	return n, ""
}

// endless refuses schemas that come back to themselves without a step into the value, such as {"$ref":"#"}: nothing
// fits or fails them.
func (c *compiler) endless() error {
	named := map[string][]*node{}
	for _, n := range c.nodes {
		for name, root := range n.home.dynamics {
			if root == n {
				named[name] = append(named[name], n)
			}
		}
	}
	seen := map[*node]bool{} // true: on the way to where we are; false: done
	var follow func(n *node) error
	follow = func(n *node) error {
		if onTheWay, known := seen[n]; onTheWay {
			return wrong(n.at, "it refers to itself without a step into the value")
		} else if known {
			return nil
		}
		seen[n] = true
		next := n.inPlace()
		if n.anchor != "" { // which of them is known only on the way
			next = append(next, named[n.anchor]...)
		}
		for _, other := range next {
			if err := follow(other); err != nil {
				return err
			}
		}
		seen[n] = false
		return nil
	}
	for _, n := range c.nodes {
		if err := follow(n); err != nil {
			return err
		}
	}
	return nil
}

// inPlace are the schemas that a schema applies to the same value, always or under a condition.
func (n *node) inPlace() (next []*node) {
	for _, one := range []*node{n.ref, n.dynamic, n.not, n.cond, n.yes, n.no} {
		if one != nil {
			next = append(next, one)
		}
	}
	next = append(append(append(next, n.allOf...), n.anyOf...), n.oneOf...)
	if n.objects != nil {
		for _, d := range n.objects.dependents {
			if d.node != nil {
				next = append(next, d.node)
			}
		}
	}
	return next
}
