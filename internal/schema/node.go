package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// node is one schema, ready to be applied.
type node struct {
	at   *place
	home *resource

	never, always bool // false and true
	alone         bool // $ref of draft-07, beside which nothing counts
	referred      bool // a $ref leads here

	ref     *node
	dynamic *node  // where $dynamicRef leads if nothing on the way says otherwise
	anchor  string // the name under which what is on the way is asked; empty: nothing is

	kinds   kinds
	enum    *values
	fixed   *values // const
	numbers *limits
	strings *stringRules
	arrays  *arrayRules
	objects *objectRules

	allOf, anyOf, oneOf []*node
	not, cond, yes, no  *node
}

// limits are what a number has to keep.
type limits struct {
	least, most, above, below, multiple *number
}

// span is how many there may be; most is below zero where there is no end.
type span struct{ least, most int }

type stringRules struct {
	length  span
	pattern *pattern
}

type arrayRules struct {
	size              span
	unique            bool
	prefix            []*node
	rest, unevaluated *node
	contains          *node
	found             span // by contains
	marks             bool // what contains finds counts as evaluated
}

type objectRules struct {
	size              span
	required          []string
	properties        map[string]*node
	patterns          []patternProperty
	additional, names *node
	unevaluated       *node
	dependents        []dependent
}

type patternProperty struct {
	pattern *pattern
	node    *node
}

// dependent is what holds where a property is there.
type dependent struct {
	name     string
	required []string
	node     *node
}

// resource is a schema with a URI of its own, and what can be named in it.
type resource struct {
	base     *url.URL
	root     *node
	draft    draft
	anchors  map[string]*node
	dynamics map[string]*node // by $dynamicAnchor
}

type draft int

const (
	draft2020 draft = iota
	draft07
)

// place is a value of the schema's document and the way to it. Ways are not kept as text: deep in a document they are
// long.
type place struct {
	value  any
	parent *place
	name   string
	named  bool // in an object
	below  map[string]*place
	node   *node
}

// child is the member or item of that name, nil where there is none.
func (p *place) child(name string) *place {
	if c := p.below[name]; c != nil {
		return c
	}
	c := &place{parent: p, name: name}
	switch x := p.value.(type) {
	case map[string]any:
		value, ok := x[name]
		if !ok {
			return nil
		}
		c.value, c.named = value, true
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(x) || strconv.Itoa(i) != name {
			return nil
		}
		c.value = x[i]
	default:
		return nil
	}
	if p.below == nil {
		p.below = map[string]*place{}
	}
	p.below[name] = c
	return c
}

func (p *place) path() path {
	var up path
	for at := p; at.parent != nil; at = at.parent {
		up.push(step{name: at.name, named: true})
	}
	for i, j := 0, len(up)-1; i < j; i, j = i+1, j-1 {
		up[i], up[j] = up[j], up[i]
	}
	return up
}

// String is a JSON pointer in words.
func (p *place) String() string {
	if p.parent == nil {
		return "the schema"
	}
	return p.path().String()
}

// follow goes along a JSON pointer.
func (p *place) follow(pointer string) *place {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if p = p.child(unescape(token)); p == nil {
			return nil
		}
	}
	return p
}
