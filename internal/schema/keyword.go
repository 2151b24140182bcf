package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// keywords reads what a schema demands.
func (r *reader) keywords() {
	r.schemas("$defs")
	r.schemas("definitions")
	if r.n.alone {
		return
	}
	r.values()
	r.numbers()
	r.strings()
	r.arrays()
	r.objects()
	r.n.allOf, r.n.anyOf, r.n.oneOf = r.list("allOf"), r.list("anyOf"), r.list("oneOf")
	r.n.not, r.n.cond = r.schema("not"), r.schema("if")
	r.n.yes, r.n.no = r.schema("then"), r.schema("else")
}

func (r *reader) values() {
	if value, ok := r.object["type"]; ok {
		names, _ := value.([]any)
		if name, one := value.(string); one {
			names = []any{name}
		}
		if len(names) == 0 {
			r.fail("type", "it is the name of a type or an array of them, not %s", described{value})
		}
		for _, value := range names {
			name, _ := value.(string)
			kind, known := kindNamed(name)
			if !known {
				r.fail("type", "there is no type %s", brief{value})
			}
			r.n.kinds |= kind
		}
	}
	if value, ok := r.object["enum"]; ok {
		if list, ok := value.([]any); ok {
			r.n.enum = newValues(list)
		} else {
			r.fail("enum", "it is an array, not %s", described{value})
		}
	}
	if value, ok := r.object["const"]; ok {
		r.n.fixed = newValues([]any{value})
	}
}

func (r *reader) numbers() {
	l := limits{
		least: r.number("minimum"), most: r.number("maximum"),
		above: r.number("exclusiveMinimum"), below: r.number("exclusiveMaximum"), multiple: r.number("multipleOf"),
	}
	if l.multiple != nil && l.multiple.sign() <= 0 {
		r.fail("multipleOf", "it is greater than 0")
	}
	if l != (limits{}) {
		r.n.numbers = &l
	}
}

func (r *reader) strings() {
	s := stringRules{length: r.span("minLength", "maxLength", 0)}
	if source, ok := r.word("pattern"); ok {
		s.pattern = r.pattern("pattern", source)
	}
	if s != (stringRules{length: span{0, -1}}) {
		r.n.strings = &s
	}
}

func (r *reader) arrays() {
	a := arrayRules{
		size: r.span("minItems", "maxItems", 0), unique: r.truth("uniqueItems"),
		contains: r.schema("contains"), found: span{1, -1},
	}
	used := a.unique || a.contains != nil || a.size != span{0, -1}
	if r.draft() == draft07 {
		if _, several := r.object["items"].([]any); several {
			a.prefix, a.rest = r.list("items"), r.schema("additionalItems")
		} else {
			a.rest = r.schema("items")
			r.schema("additionalItems")
		}
	} else {
		if _, several := r.object["items"].([]any); several {
			r.fail("items",
				"it is one schema in draft 2020-12; prefixItems is an array of them, or $schema may say draft-07")
		}
		a.prefix, a.rest, a.unevaluated = r.list("prefixItems"), r.schema("items"), r.schema("unevaluatedItems")
		a.found, a.marks = r.span("minContains", "maxContains", 1), true
	}
	if used || len(a.prefix) > 0 || a.rest != nil || a.unevaluated != nil {
		r.n.arrays = &a
	}
}

func (r *reader) objects() {
	o := objectRules{
		size: r.span("minProperties", "maxProperties", 0), required: r.words("required"),
		properties: r.schemas("properties"), additional: r.schema("additionalProperties"),
		names: r.schema("propertyNames"),
	}
	patterns := r.schemas("patternProperties")
	for _, source := range slices.Sorted(maps.Keys(patterns)) {
		o.patterns = append(o.patterns, patternProperty{r.pattern("patternProperties", source), patterns[source]})
	}
	r.dependents(&o, "dependencies")
	if r.draft() != draft07 {
		r.dependents(&o, "dependentRequired")
		r.dependents(&o, "dependentSchemas")
		o.unevaluated = r.schema("unevaluatedProperties")
	}
	used := len(o.required)+len(o.properties)+len(o.patterns)+len(o.dependents) > 0 || o.size != span{0, -1}
	if used || o.additional != nil || o.names != nil || o.unevaluated != nil {
		r.n.objects = &o
	}
}

// dependents reads dependentRequired, dependentSchemas, or dependencies, where the two were one. Draft 2020-12 leaves
// the last to the reader; who writes it without $schema means it.
func (r *reader) dependents(o *objectRules, keyword string) {
	members, ok := r.members(keyword)
	if !ok {
		return
	}
	within := r.within(keyword)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		_, several := members[name].([]any)
		d := dependent{name: name}
		switch {
		case keyword == "dependentRequired", several && keyword == "dependencies":
			d.required = within.words(name)
		default:
			d.node = within.schema(name)
		}
		o.dependents = append(o.dependents, d)
	}
	r.take(within)
}

// within reads the members of a keyword's value as if they were keywords.
func (r *reader) within(keyword string) *reader {
	members, _ := r.object[keyword].(map[string]any)
	at := r.n.at.child(keyword)
	return &reader{compiler: r.compiler, n: &node{at: at, home: r.n.home}, object: members}
}

func (r *reader) take(within *reader) {
	if r.err == nil {
		r.err = within.err
	}
}

// schema reads a keyword whose value is a schema.
func (r *reader) schema(keyword string) *node {
	if _, ok := r.object[keyword]; !ok || r.err != nil {
		return nil
	}
	n, err := r.node(r.n.at.child(keyword), r.n.home)
	if err != nil {
		r.err = err
	}
	return n
}

// schemas reads a keyword whose value is an object of schemas.
func (r *reader) schemas(keyword string) map[string]*node {
	members, ok := r.members(keyword)
	if !ok {
		return nil
	}
	within := r.within(keyword)
	nodes := make(map[string]*node, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		nodes[name] = within.schema(name)
	}
	r.take(within)
	return nodes
}

// list reads a keyword whose value is an array of schemas.
func (r *reader) list(keyword string) (nodes []*node) {
	value, ok := r.object[keyword]
	if !ok || r.err != nil {
		return nil
	}
	items, _ := value.([]any)
	if len(items) == 0 && (keyword != "items" && keyword != "prefixItems" || items == nil) {
		r.fail(keyword, "it is an array of schemas, not %s", described{value})
		return nil
	}
	at := r.n.at.child(keyword)
	for i := range items {
		n, err := r.node(at.child(strconv.Itoa(i)), r.n.home)
		if err != nil {
			r.err = err
			return nil
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (r *reader) members(keyword string) (map[string]any, bool) {
	value, ok := r.object[keyword]
	members, right := value.(map[string]any)
	if ok && !right {
		r.fail(keyword, "it is an object, not %s", described{value})
	}
	return members, right
}

func (r *reader) word(keyword string) (string, bool) {
	value, ok := r.object[keyword]
	word, right := value.(string)
	if ok && !right {
		r.fail(keyword, "it is a string, not %s", described{value})
	}
	return word, right
}

func (r *reader) words(keyword string) (words []string) {
	value, ok := r.object[keyword]
	if !ok {
		return nil
	}
	list, right := value.([]any)
	for _, item := range list {
		word, isWord := item.(string)
		right = right && isWord
		words = append(words, word)
	}
	if !right {
		r.fail(keyword, "it is an array of strings, not %s", brief{value})
	}
	return words
}

func (r *reader) truth(keyword string) bool {
	value, ok := r.object[keyword]
	truth, right := value.(bool)
	if ok && !right {
		r.fail(keyword, "it is true or false, not %s", described{value})
	}
	return truth
}

func (r *reader) number(keyword string) *number {
	value, ok := r.object[keyword]
	if !ok {
		return nil
	}
	written, right := value.(json.Number)
	if !right {
		r.fail(keyword, "it is a number, not %s", described{value})
	}
	n := numberOf(string(written))
	return &n
}

// span reads the two keywords that say how many there may be.
func (r *reader) span(least, most string, usual int) span {
	s := span{usual, -1}
	for keyword, to := range map[string]*int{least: &s.least, most: &s.most} {
		if n := r.number(keyword); n != nil {
			count, ok := n.count()
			if !ok {
				r.fail(keyword, "it is a whole number from 0, not %s", brief{r.object[keyword]})
			}
			*to = count
		}
	}
	return s
}
