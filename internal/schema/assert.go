package schema

import (
	"encoding/json"
	"maps"
	"slices"
)

func (c *check) numbers() (done bool) {
	written, ok := c.value.(json.Number)
	if c.n.numbers == nil || !ok {
		return false
	}
	n, l := numberOf(string(written)), c.n.numbers
	said := func(keyword string) brief { // as the schema has it
		object, _ := c.n.at.value.(map[string]any)
		return brief{object[keyword]}
	}
	switch given := (described{c.value}); {
	case l.least != nil && n.compare(*l.least) < 0:
		return c.fail("must be at least %s, not %s", said("minimum"), given)
	case l.most != nil && n.compare(*l.most) > 0:
		return c.fail("must be at most %s, not %s", said("maximum"), given)
	case l.above != nil && n.compare(*l.above) <= 0:
		return c.fail("must be greater than %s, not %s", said("exclusiveMinimum"), given)
	case l.below != nil && n.compare(*l.below) >= 0:
		return c.fail("must be less than %s, not %s", said("exclusiveMaximum"), given)
	case l.multiple != nil && c.spend((len(n.digits)+len(l.multiple.digits))/16) && !n.multiple(*l.multiple):
		return c.fail("must be a multiple of %s, not %s", said("multipleOf"), given)
	}
	return c.done()
}

func (c *check) strings() (done bool) {
	s, ok := c.value.(string)
	if c.n.strings == nil || !ok {
		return false
	}
	rules := c.n.strings
	if rules.length != (span{0, -1}) {
		c.spend(len(s) / 64)
		if c.counted(length(s), rules.length, "characters") {
			return true
		}
	}
	if p := rules.pattern; p != nil && !c.matches(p, s) {
		return c.fail("must match the pattern %s, but is %s", quoted(p.source), quoted(s))
	}
	return c.done()
}

// counted holds how many there are against a span.
func (c *check) counted(count int, s span, of string) (done bool) {
	switch {
	case count < s.least:
		return c.fail("must have at least %d %s, not %d", s.least, of, count)
	case s.most >= 0 && count > s.most:
		return c.fail("must have at most %d %s, not %d", s.most, of, count)
	}
	return false
}

// matches takes as many steps as a matcher may.
func (c *check) matches(p *pattern, s string) bool {
	return c.spend(1+len(s)*p.size/32) && p.match.MatchString(s)
}

func (c *check) items() (done bool) {
	list, ok := c.value.([]any)
	if c.n.arrays == nil || !ok {
		return false
	}
	a := c.n.arrays
	if c.counted(len(list), a.size, "items") || a.unique && c.unique(list) {
		return true
	}
	for i, n := range a.prefix[:min(len(a.prefix), len(list))] {
		if !c.item(step{index: i}, n, list[i]) && c.refuse() {
			return true
		}
	}
	if c.seen != nil {
		c.seen.prefix = max(c.seen.prefix, len(a.prefix))
	}
	if a.rest != nil {
		if c.seen != nil {
			c.seen.allItems = true
		}
		if a.rest.never && len(list) > len(a.prefix) {
			if c.fail("must have at most %d items, not %d", len(a.prefix), len(list)) {
				return true
			}
		} else {
			for i := len(a.prefix); i < len(list); i++ {
				if !c.item(step{index: i}, a.rest, list[i]) && c.refuse() {
					return true
				}
			}
		}
	}
	return a.contains != nil && c.contain(list) || c.done()
}

func (c *check) unique(list []any) (done bool) {
	known := make(map[string]int, len(list))
	var written []byte
	for i, item := range list {
		written = canonical(written[:0], item)
		if !c.spend(1 + len(written)/16) {
			return true
		}
		if first, twice := known[string(written)]; twice {
			return c.fail("must not have the same item twice, but items %d and %d are both %s", first, i, brief{item})
		}
		known[string(written)] = i
	}
	return false
}

func (c *check) contain(list []any) (done bool) {
	a, found := c.n.arrays, 0
	for i, item := range list {
		if !c.try(a.contains, item, nil) {
			continue
		}
		found++
		if c.seen != nil && a.marks {
			c.seen.items = append(c.seen.items, i)
		}
	}
	switch {
	case c.over != nil:
		return true
	case found < a.found.least:
		return c.fail("must have at least %d items that fit %s, not %d", a.found.least, brief{a.contains.at.value},
			found)
	case a.found.most >= 0 && found > a.found.most:
		return c.fail("must have at most %d items that fit %s, not %d", a.found.most, brief{a.contains.at.value}, found)
	}
	return false
}

func (c *check) members() (done bool) {
	object, ok := c.value.(map[string]any)
	if c.n.objects == nil || !ok {
		return false
	}
	o := c.n.objects
	if c.counted(len(object), o.size, "properties") {
		return true
	}
	c.spend(len(o.required) / 4)
	for _, name := range o.required {
		if _, ok := object[name]; !ok && c.fail("must have the property %s", quoted(name)) {
			return true
		}
	}
	if o.names != nil && c.names(object) || c.dependents(object) {
		return true
	}
	if len(o.properties)+len(o.patterns) == 0 && o.additional == nil {
		return c.done()
	}
	for _, name := range c.sorted(object) {
		if c.member(name, object[name]) {
			return true
		}
	}
	return c.done()
}

// sorted are the names of an object, in order where somebody reads what is wrong with them.
func (c *check) sorted(object map[string]any) []string {
	c.spend(len(object) / 4)
	if c.out != nil {
		return slices.Sorted(maps.Keys(object))
	}
	return slices.AppendSeq(make([]string, 0, len(object)), maps.Keys(object))
}

// member checks one property by all that is said of it.
func (c *check) member(name string, value any) (done bool) {
	o, at, known := c.n.objects, step{name: name, named: true}, false
	if n := o.properties[name]; n != nil {
		known = true
		if !c.item(at, n, value) && c.refuse() {
			return true
		}
	}
	for _, p := range o.patterns {
		if c.matches(p.pattern, name) {
			known = true
			if !c.item(at, p.node, value) && c.refuse() {
				return true
			}
		}
	}
	if !known && o.additional != nil {
		known = true
		if o.additional.never {
			return c.fail("must not have the property %s%s", quoted(name), c.allowed())
		}
		if !c.item(at, o.additional, value) && c.refuse() {
			return true
		}
	}
	if known && c.seen != nil {
		c.seen.names = append(c.seen.names, name)
	}
	return c.over != nil
}

// allowed says which properties there may be, where that is known.
func (c *check) allowed() string {
	o := c.n.objects
	if c.out == nil || len(o.properties) == 0 {
		return ""
	}
	var names []any
	for _, name := range slices.Sorted(maps.Keys(o.properties)) {
		names = append(names, name)
	}
	return ", only " + briefList(names).String()
}

func (c *check) names(object map[string]any) (done bool) {
	for _, name := range c.sorted(object) {
		if c.try(c.n.objects.names, name, nil) {
			continue
		}
		if c.out == nil || c.over != nil {
			return c.refuse()
		}
		why := problems{most: 1}
		c.explain(c.n.objects.names, name, &why)
		if c.fail("must not have a property of the name %s, which %s", quoted(name), why.first(c.at)) {
			return true
		}
	}
	return false
}

func (c *check) dependents(object map[string]any) (done bool) {
	c.spend(len(c.n.objects.dependents) / 4)
	for _, d := range c.n.objects.dependents {
		if _, there := object[d.name]; !there {
			continue
		}
		c.spend(len(d.required) / 4)
		for _, name := range d.required {
			if _, ok := object[name]; !ok && c.fail("must have the property %s, since it has %s", quoted(name),
				quoted(d.name)) {
				return true
			}
		}
		if d.node != nil && !c.fits(d.node, c.value, c.seen, c.out) && c.refuse() {
			return true
		}
	}
	return false
}

// unevaluated checks what no schema beside or within this one, for the same value, has looked at.
func (c *check) unevaluated() (done bool) {
	if c.bad { // what a schema that does not fit has looked at is forgotten
		return true
	}
	if list, ok := c.value.([]any); ok && c.n.arrays != nil && c.n.arrays.unevaluated != nil && !c.seen.allItems {
		found := map[int]bool{}
		for _, i := range c.seen.items[c.from.items:] {
			found[i] = true
		}
		for i := c.seen.prefix; i < len(list); i++ {
			if found[i] {
				continue
			}
			if n := c.n.arrays.unevaluated; n.never {
				if c.fail("must not have the item %d, %s", i, brief{list[i]}) {
					return true
				}
			} else if !c.item(step{index: i}, n, list[i]) && c.refuse() {
				return true
			}
		}
		c.seen.allItems = true
	}
	object, ok := c.value.(map[string]any)
	if !ok || c.n.objects == nil || c.n.objects.unevaluated == nil || c.seen.allNames {
		return c.done()
	}
	c.spend(len(c.seen.names) - c.from.names)
	found := map[string]bool{}
	for _, name := range c.seen.names[c.from.names:] {
		found[name] = true
	}
	for _, name := range c.sorted(object) {
		if found[name] {
			continue
		}
		if n := c.n.objects.unevaluated; n.never {
			if c.fail("must not have the property %s", quoted(name)) {
				return true
			}
		} else if !c.item(step{name: name, named: true}, n, object[name]) && c.refuse() {
			return true
		}
	}
	c.seen.allNames = true
	return c.done()
}
