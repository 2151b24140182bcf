package schema

import (
	"errors"
	"reflect"
)

// validation is one check of one value.
type validation struct {
	dynamic bool
	work    int   // steps that are left
	over    error // why it was given up
	frames  int
	at      path // kept only while problems are told
	within  int  // explanations within explanations
	scope   []*resource
	entered map[*resource]bool
	trials  int            // schemas around this one that are only tried
	known   map[trial]bool // what came out before
}

// trial is a schema and an object or array by its identity. Alternatives that refer to the schema around them would
// else try the same again and again, twice as often with each step into the value.
type trial struct {
	n     *node
	value uintptr
}

// mostKnown bounds the memory for them.
const mostKnown = 1 << 20

// try says whether a value fits, without words.
func (v *validation) try(n *node, value any, s *seen) bool {
	v.trials++
	fits := v.fits(n, value, s, nil)
	v.trials--
	return fits
}

// remembered is the trial under which an answer is kept, if it depends on nothing but the schema and the value.
func (v *validation) remembered(n *node, value any, s *seen, out *problems) (trial, bool) {
	if !n.referred || v.trials == 0 || s != nil || out != nil || v.dynamic {
		return trial{}, false
	}
	switch x := value.(type) {
	case []any:
		return trial{n, reflect.ValueOf(x).Pointer()}, len(x) > 0
	case map[string]any:
		return trial{n, reflect.ValueOf(x).Pointer()}, true
	}
	return trial{}, false
}

// spend takes steps. It is false once there are none.
func (v *validation) spend(steps int) bool {
	if v.work -= steps; v.work < 0 && v.over == nil {
		v.over = errors.New("it takes too long to check against this schema")
	}
	return v.over == nil
}

// seen is what schemas for the same value have looked at, for unevaluatedProperties and unevaluatedItems.
type seen struct {
	names    []string
	items    []int
	prefix   int // items from the first on
	allNames bool
	allItems bool
}

// mark is a state of seen to which one can go back.
type mark struct {
	names, items, prefix int
	allNames, allItems   bool
}

func (s *seen) mark() mark {
	if s == nil {
		return mark{}
	}
	return mark{len(s.names), len(s.items), s.prefix, s.allNames, s.allItems}
}

// back forgets what came after the mark.
func (s *seen) back(m mark) {
	if s != nil {
		s.names, s.items, s.prefix, s.allNames, s.allItems = s.names[:m.names], s.items[:m.items], m.prefix, m.allNames,
			m.allItems
	}
}

// check is one schema against one value.
type check struct {
	*validation
	n     *node
	value any
	seen  *seen
	from  mark
	out   *problems // nil: nobody asks why
	bad   bool
}

// fail notes a problem. It is true if the rest need not be looked at.
func (c *check) fail(format string, args ...any) bool {
	c.bad = true
	if c.out != nil && c.over == nil {
		c.out.add(c.at, format, args...)
	}
	return c.done()
}

// refuse notes that a schema within found a problem and told it.
func (c *check) refuse() bool {
	c.bad = true
	return c.done()
}

func (c *check) done() bool { return c.over != nil || c.bad && (c.out == nil || c.out.full()) }

// fits says whether a value fits a schema. What was looked at is noted in s, and forgotten if it does not fit.
func (v *validation) fits(n *node, value any, s *seen, out *problems) bool {
	if !v.spend(1) {
		return false
	}
	if n.always {
		return true
	}
	if v.frames >= mostFrames {
		v.over = errors.New("it is nested too deeply for this schema")
		return false
	}
	t, remember := v.remembered(n, value, s, out)
	if fits, known := v.known[t]; remember && known {
		return fits
	}
	v.frames++
	enters := v.dynamic && !v.entered[n.home]
	if enters {
		if v.entered == nil {
			v.entered = map[*resource]bool{}
		}
		v.entered[n.home] = true
		v.scope = append(v.scope, n.home)
	}
	fits := v.apply(n, value, s, out)
	if enters {
		delete(v.entered, n.home)
		v.scope = v.scope[:len(v.scope)-1]
	}
	v.frames--
	if remember && v.over == nil && len(v.known) < mostKnown {
		if v.known == nil {
			v.known = map[trial]bool{}
		}
		v.known[t] = fits
	}
	return fits
}

func (v *validation) apply(n *node, value any, s *seen, out *problems) bool {
	own := n.arrays != nil && n.arrays.unevaluated != nil || n.objects != nil && n.objects.unevaluated != nil
	if own && s == nil {
		s = &seen{}
	}
	c := check{validation: v, n: n, value: value, seen: s, from: s.mark(), out: out}
	if own { // what was looked at from beside this schema does not count for it
		s.prefix, s.allNames, s.allItems = 0, false, false
	}
	c.run()
	if c.bad || v.over != nil {
		s.back(c.from)
		return false
	}
	if own {
		s.prefix, s.allNames, s.allItems = max(s.prefix, c.from.prefix), s.allNames || c.from.allNames, s.allItems ||
			c.from.allItems
	}
	return true
}

func (c *check) run() {
	if c.n.never {
		c.fail("is not allowed")
		return
	}
	steps := [...]func(*check) bool{
		(*check).references, (*check).plain, (*check).numbers, (*check).strings, (*check).items, (*check).members,
		(*check).logic, (*check).conditions, (*check).unevaluated,
	}
	for _, step := range steps {
		if step(c) {
			return
		}
	}
}

// references follows $ref and $dynamicRef.
func (c *check) references() (done bool) {
	if c.n.ref != nil && !c.fits(c.n.ref, c.value, c.seen, c.out) && c.refuse() {
		return true
	}
	if target := c.n.dynamic; target != nil {
		if c.n.anchor != "" {
			c.spend(len(c.scope))
			for _, home := range c.scope {
				if named := home.dynamics[c.n.anchor]; named != nil {
					target = named
					break
				}
			}
		}
		if !c.fits(target, c.value, c.seen, c.out) && c.refuse() {
			return true
		}
	}
	return c.n.alone
}

// plain checks type, enum and const. Where the type is wrong the rest would only confuse.
func (c *check) plain() (done bool) {
	if c.n.kinds != 0 && !c.n.kinds.has(c.value) {
		c.fail("must be %s, not %s", c.n.kinds, described{c.value})
		return true
	}
	if c.n.fixed != nil && !c.among(c.n.fixed) && c.fail("must be %s, not %s", brief{c.n.fixed.list[0]},
		brief{c.value}) {
		return true
	}
	if c.n.enum != nil && !c.among(c.n.enum) {
		if len(c.n.enum.list) == 0 {
			return c.fail("cannot be anything: the enum is empty")
		}
		return c.fail("must be one of %s, not %s", briefList(c.n.enum.list), brief{c.value})
	}
	return false
}

func (c *check) among(v *values) bool {
	if v.kinds&kindOf(c.value) == 0 {
		return false
	}
	written := canonical(nil, c.value)
	return c.spend(len(written)/16) && v.known[string(written)]
}

// item checks a value within this one.
func (c *check) item(at step, n *node, value any) bool {
	if c.out != nil {
		c.at.push(at)
		defer c.at.pop()
	}
	return c.fits(n, value, nil, c.out)
}
