package schema

import (
	"fmt"
	"strings"
)

const (
	branchesTold = 3 // of anyOf and oneOf, in one explanation
	deepestWhy   = 4 // explanations within explanations: each goes through the value once more
)

// logic checks allOf, anyOf, oneOf and not.
func (c *check) logic() (done bool) {
	for _, n := range c.n.allOf {
		if !c.fits(n, c.value, c.seen, c.out) && c.refuse() {
			return true
		}
	}
	if len(c.n.anyOf) > 0 && c.any() || len(c.n.oneOf) > 0 && c.one() {
		return true
	}
	if c.n.not != nil && c.try(c.n.not, c.value, nil) {
		return c.fail("must not fit %s", brief{c.n.not.at.value})
	}
	return c.done()
}

// any stops at the first that fits, unless it matters what all of them looked at.
func (c *check) any() (done bool) {
	found := false
	for _, n := range c.n.anyOf {
		if c.try(n, c.value, c.seen) {
			if found = true; c.seen == nil {
				break
			}
		}
	}
	if found || c.over != nil {
		return c.over != nil
	}
	return c.none("anyOf", c.n.anyOf)
}

func (c *check) one() (done bool) {
	first := -1
	for i, n := range c.n.oneOf {
		if !c.try(n, c.value, c.seen) {
			continue
		}
		if first >= 0 {
			return c.fail("must fit one schema of oneOf only, but fits schemas %d and %d", first+1, i+1)
		}
		first = i
	}
	if first >= 0 || c.over != nil {
		return c.over != nil
	}
	return c.none("oneOf", c.n.oneOf)
}

// none says why none of several schemas fits: the first problem of the first ones.
func (c *check) none(keyword string, nodes []*node) (done bool) {
	if c.out == nil || c.out.full() {
		return c.refuse()
	}
	if len(nodes) == 1 {
		c.fits(nodes[0], c.value, nil, c.out)
		return c.refuse()
	}
	var said strings.Builder
	for i, n := range nodes {
		if i == branchesTold || c.within >= deepestWhy {
			break
		}
		why := problems{most: 1}
		c.explain(n, c.value, &why)
		if len(why.list) > 0 {
			fmt.Fprintf(&said, "; schema %d: %s", i+1, why.first(c.at))
		}
	}
	return c.fail("must fit one of the %d schemas of %s, but fits none%s", len(nodes), keyword, said.String())
}

// explain asks once more, for the words.
func (c *check) explain(n *node, value any, why *problems) {
	c.within++
	c.fits(n, value, nil, why)
	c.within--
}

// conditions checks if, then and else.
func (c *check) conditions() (done bool) {
	if c.n.cond == nil {
		return false
	}
	then := c.n.no
	if c.try(c.n.cond, c.value, c.seen) {
		then = c.n.yes
	}
	if then != nil && !c.fits(then, c.value, c.seen, c.out) {
		return c.refuse()
	}
	return c.done()
}
