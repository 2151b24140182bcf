package literal

import (
	"fmt"
	"slices"
)

const (
	// within ParseJS only: a member that has it overrides one of the same name, and is then left out
	undefined Kind = 255

	// maxExpansion bounds what references add to the text: each may repeat all that stands before it.
	maxExpansion = 1 << 20
)

// ParseJS reads what a module of JavaScript or TypeScript exports as its default, or as module.exports, without running
// it. Literals are read, whatever types say of them, and names of literals further up; so is the argument of a function
// that was imported, as in export default defineConfig({…}). All else is a Value of the kind Code: Str is the beginning
// of its first line, Pos where it stands, and NotLiteral says so in words. null and undefined are Null; a member that
// is undefined is left out.
//
// It refuses what would have to be run to be known: a statement that could change what is exported. The error is a
// *SyntaxError.
func ParseJS(data []byte) (Value, error) {
	p := &js{
		json5:    json5{data: data, locate: newLocator(data), script: true},
		bindings: map[string]*binding{}, imported: map[string]bool{}, functions: map[string][]string{},
		noTypes: map[int]bool{},
	}
	v, err := p.module()
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// NotLiteral is the error for the first code in v, nil when there is none. The name says what v is the value of.
func (v Value) NotLiteral(name string) error {
	if code, at, ok := v.code(name); ok {
		return &SyntaxError{
			Pos: code.Pos,
			Message: fmt.Sprintf(
				"the value of %s is code (%s), not a literal; this program reads configuration without running it", at,
				code.Str),
		}
	}
	return nil
}

func (v Value) code(name string) (Value, string, bool) {
	if v.Kind == Code {
		return v, name, true
	}
	for i, item := range v.Items {
		if code, at, ok := item.code(fmt.Sprintf("%s[%d]", name, i)); ok {
			return code, at, true
		}
	}
	for _, m := range v.Members {
		if code, at, ok := m.Value.code(name + "." + shorten(m.Key)); ok {
			return code, at, true
		}
	}
	return Value{}, "", false
}

// js reads a module from the top to its end, once. A name has a value from the end of its declaration on, as in
// JavaScript.
type js struct {
	json5
	bindings  map[string]*binding
	imported  map[string]bool
	functions map[string][]string // the names that a function uses
	uses      []use
	words     []string // names in code, in the order of the text
	used      []string // names whose literals were read
	actors    []actor
	nesting   int // of what is passed over
	copies    int
	noTypes   map[int]bool // where < begins no arguments that are types, so that it is not tried again and again
	compared  int          // up to here, each < and > compares

	whole      *Value // export default, export =, module.exports
	wholePos   int
	modern     bool // export default
	common     bool // module.exports or exports
	exported   members
	commonPos  int
	reexported use // export { name as default }
}

// binding is a name of the module itself.
type binding struct {
	value  Value
	call   bool // the value is the argument of an imported function
	fixed  bool // it is not given another value: a const
	offset int
}

// use is a name where a value belongs, before it had one.
type use struct {
	name   string
	offset int
}

// actor is code that runs when the module is loaded.
type actor struct {
	offset int
	words  []string
}

func (p *js) module() (Value, *SyntaxError) {
	p.exported = members{index: map[string]int{}}
	if err := p.hashbang(); err != nil {
		return Value{}, err
	}
	for {
		if err := p.space(); err != nil {
			return Value{}, err
		}
		if p.ended() {
			break
		}
		if err := p.topStatement(); err != nil {
			return Value{}, err
		}
	}
	v, err := p.result()
	if err != nil {
		return Value{}, err
	}
	if err := p.checkUses(); err != nil {
		return Value{}, err
	}
	if err := p.checkActors(); err != nil {
		return Value{}, err
	}
	budget := 2*len(p.data) + maxExpansion
	return p.finish(v, 0, &budget)
}

func (p *js) hashbang() *SyntaxError {
	if len(p.data) >= 3 && string(p.data[:3]) == byteOrderMark {
		p.at = 3
	}
	if p.at+1 < len(p.data) && p.data[p.at] == '#' && p.data[p.at+1] == '!' {
		p.lineComment()
	}
	return nil
}

// result is what the module exports.
func (p *js) result() (Value, *SyntaxError) {
	switch {
	case p.modern && p.common:
		return Value{}, p.fail(max(p.wholePos, p.commonPos),
			"the module exports twice: by export and by module.exports")
	case p.reexported.name != "":
		b, ok := p.bindings[p.reexported.name]
		if !ok {
			return p.unknownName(p.reexported), nil
		}
		p.used = append(p.used, p.reexported.name)
		return b.value, nil
	case p.common:
		return p.commonResult(), nil
	case p.whole == nil:
		return Value{}, p.fail(len(p.data), "expected export default {…} or module.exports = {…}, found end of input")
	}
	return *p.whole, nil
}

func (p *js) unknownName(u use) Value {
	return Value{Kind: Code, Pos: p.locate.pos(u.offset), End: u.offset + len(u.name), Str: shorten(u.name)}
}

// commonResult is module.exports, or its member default where a module was translated from the other kind.
func (p *js) commonResult() Value {
	v := Value{Kind: Object, Pos: p.locate.pos(p.commonPos), End: p.commonPos, Members: []Member{}}
	if p.whole != nil {
		v = *p.whole
	}
	if v.Kind == Object {
		all := members{index: map[string]int{}}
		for _, m := range slices.Concat(v.Members, p.exported.list) {
			all.set(m)
		}
		v.Members = slices.DeleteFunc(all.list, func(m Member) bool { return m.Key == "__esModule" })
	}
	if m, ok := (Value{Members: p.exported.list}).Member("default"); ok {
		return m.Value
	}
	if m, ok := v.Member("default"); ok {
		return m.Value
	}
	return v
}

// checkUses finds names that get their literal only further down, their own declaration included.
func (p *js) checkUses() *SyntaxError {
	for _, u := range p.uses {
		if b, ok := p.bindings[u.name]; ok && b.offset >= 0 && u.offset < b.offset {
			return p.fail(u.offset, "%s is used before it has its value, at %v", shorten(u.name),
				p.locate.pos(b.offset))
		}
	}
	return nil
}

// checkActors finds code that runs when the module is loaded and that names what is exported, itself or through a
// function of the module: whether it changes it cannot be known without running it.
func (p *js) checkActors() *SyntaxError {
	exposed := map[string]bool{"module": p.common, "exports": p.common}
	for _, name := range p.used {
		b := p.bindings[name]
		exposed[name] = !b.fixed || b.value.Kind == Object || b.value.Kind == Array
	}
	seen := map[string]bool{}
	for _, a := range p.actors {
		for queue := a.words; len(queue) > 0; queue = queue[1:] {
			name := queue[0]
			if exposed[name] {
				return p.fail(a.offset,
					"this statement is code that may change %s, which is exported; this program reads configuration "+
						"without running it", name)
			}
			if !seen[name] {
				seen[name] = true
				queue = slices.Concat(queue, p.functions[name])
			}
		}
	}
	return nil
}

// finish takes out what is undefined and holds the value against the bounds that the text alone cannot pass.
func (p *js) finish(v Value, depth int, budget *int) (Value, *SyntaxError) {
	if *budget -= 1 + len(v.Str) + len(v.Num); *budget < 0 {
		return Value{}, &SyntaxError{Pos: v.Pos, Message: "references make the value much larger than the file"}
	}
	if v.Kind == Object || v.Kind == Array {
		if depth++; depth > maxDepth {
			return Value{}, &SyntaxError{Pos: v.Pos, Message: fmt.Sprintf("nested deeper than %d levels", maxDepth)}
		}
	}
	var err *SyntaxError
	switch v.Kind {
	case undefined:
		v.Kind = Null
	case Array:
		items := make([]Value, len(v.Items))
		for i, item := range v.Items {
			if items[i], err = p.finish(item, depth, budget); err != nil {
				return Value{}, err
			}
		}
		v.Items = items
	case Object:
		kept := make([]Member, 0, len(v.Members))
		for _, m := range v.Members {
			if m.Value.Kind == undefined {
				continue
			}
			*budget -= len(m.Key)
			if m.Value, err = p.finish(m.Value, depth, budget); err != nil {
				return Value{}, err
			}
			kept = append(kept, m)
		}
		v.Members = kept
	}
	return v, nil
}
