package agentsfile

import (
	"fmt"
	"strings"

	"omniagent/internal/kit/literal"
)

func (r *reader) target(v literal.Value, name string) Target {
	t := Target{Pos: v.Pos}
	r.keys(v, name, "id", "displayName", "aliases", "inherits", "override", "outputs", "cli", "usage", "history",
		"hooks")
	if m, ok := r.need(v, name, "id"); ok {
		t.ID, t.Pos = r.id(m, name+".id"), m.Pos
	}
	if m, ok := member(v, "displayName"); ok {
		t.DisplayName = r.str(m, name+".displayName")
	}
	if m, ok := member(v, "aliases"); ok && r.is(m, literal.Array, name+".aliases", "a list of strings") {
		for i, item := range m.Items {
			if alias := r.id(item, fmt.Sprintf("%s.aliases[%d]", name, i)); alias != "" {
				t.Aliases = append(t.Aliases, Name{alias, item.Pos})
			}
		}
	}
	if m, ok := member(v, "inherits"); ok {
		t.Inherits = Name{strings.TrimSpace(r.str(m, name+".inherits")), m.Pos}
	}
	if m, ok := member(v, "override"); ok { // of other tools
		r.is(m, literal.Bool, name+".override", "true or false")
	}
	if m, ok := member(v, "cli"); ok && r.is(m, literal.Object, name+".cli", "an object") {
		t.CLI = r.cli(m, name+".cli")
	}
	return t
}

// id reads an id or alias of an agent, which must be unique regardless of case.
func (r *reader) id(v literal.Value, name string) string {
	s := r.str(v, name)
	if strings.TrimSpace(s) == "" {
		return ""
	}
	const longest = 64
	plain := len(s) <= longest && strings.IndexFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-'
	}) < 0 && s[0] != '-' && s[0] != '.'
	if !plain {
		r.add(v.Pos,
			fmt.Sprintf(
				"%s must be letters, digits, '.', '_' and '-', at most %d, and begin with none of the last two, not %s",
				name, longest, quote(s)), s, "")
		return ""
	}
	lower := strings.ToLower(s)
	if first, taken := r.taken[lower]; taken {
		r.add(v.Pos, fmt.Sprintf("%s is %s, which is already the name of an agent at %v", name, quote(s), first), s, "")
		return ""
	}
	r.taken[lower] = v.Pos
	return s
}

func (r *reader) cli(v literal.Value, name string) *CLI {
	c := &CLI{Passthrough: PassAfter}
	r.keys(v, name, "modes", "prompt", "flags", "passthrough", "translate")
	if m, ok := member(v, "translate"); ok {
		r.add(m.Pos,
			name+".translate has no effect here: say the same with modes, prompt and flags", "", "")
	}
	if m, ok := r.need(v, name, "modes"); ok && r.is(m, literal.Object, name+".modes", "an object") {
		r.keys(m, name+".modes", Interactive, OneShot, ACP)
		_, alone := member(m, ACP) // then the others may be left out
		for i, call := range []*Call{&c.Interactive, &c.OneShot, &c.ACP} {
			mode := []string{Interactive, OneShot, ACP}[i]
			if _, ok := member(m, mode); ok || mode != ACP && !alone {
				*call = r.call(m, name+".modes", mode)
			}
		}
		if alone && c.OneShot.Command == "" {
			c.Prompt.Type = PromptStdin
		}
	}
	m, ok := member(v, "prompt")
	if c.Prompt.Type == "" { // ACP is not its only mode
		m, ok = r.need(v, name, "prompt")
	}
	if ok && r.is(m, literal.Object, name+".prompt", "an object") {
		c.Prompt = r.prompt(m, name+".prompt")
	}
	if m, ok := member(v, "flags"); ok && r.is(m, literal.Object, name+".flags", "an object") {
		r.flags(m, name+".flags", c)
	}
	if m, ok := member(v, "passthrough"); ok && r.is(m, literal.Object, name+".passthrough", "an object") {
		r.keys(m, name+".passthrough", "position", "collisions")
		if p, ok := member(m, "position"); ok {
			c.Passthrough = r.oneOf(p, name+".passthrough.position", PassAfter, PassBeforePrompt)
		}
	}
	return c
}

func (r *reader) call(modes literal.Value, above, mode string) Call {
	v, ok := r.need(modes, above, mode)
	name := above + "." + mode
	if !ok || !r.is(v, literal.Object, name, "an object") {
		return Call{}
	}
	if keys := []string{"command", "args", "offer"}; mode == ACP {
		r.keys(v, name, keys...)
	} else {
		r.keys(v, name, keys[:2]...)
	}
	c := Call{Args: []string{}}
	if m, ok := r.need(v, name, "command"); ok {
		c.Command, c.CommandPos = r.str(m, name+".command"), m.Pos
	}
	if m, ok := member(v, "args"); ok {
		c.Args = r.strings(m, name+".args")
	}
	if m, ok := member(v, "offer"); ok && mode == ACP && r.is(m, literal.Array, name+".offer", "a list") {
		for i, item := range m.Items {
			c.Offer = append(c.Offer, r.oneOf(item, fmt.Sprintf("%s.offer[%d]", name, i), OfferFiles, OfferTerminals))
		}
	}
	return c
}

func (r *reader) prompt(v literal.Value, name string) Prompt {
	r.keys(v, name, "type", "flag", "position")
	m, ok := r.need(v, name, "type")
	if !ok {
		return Prompt{}
	}
	p := Prompt{Type: r.oneOf(m, name+".type", PromptFlag, PromptPositional, PromptStdin)}
	switch p.Type {
	case PromptFlag:
		if m, ok := r.need(v, name, "flag"); ok {
			p.Flag = r.filled(m, name+".flag")
		}
	case PromptPositional:
		p.Position = Last
		if m, ok := member(v, "position"); ok {
			p.Position = r.oneOf(m, name+".position", First, Last)
		}
	}
	return p
}

// filled reads a list that must not be empty.
func (r *reader) filled(v literal.Value, name string) []string {
	if v.Kind == literal.Array && len(v.Items) == 0 {
		r.add(v.Pos, name+" must not be empty", "", "")
	}
	return r.strings(v, name)
}

func (r *reader) flags(v literal.Value, name string, c *CLI) {
	r.keys(v, name, "approval", "sandbox", "output", "model", "web", "structuredOutput", "structuredOutputFallback")
	for _, shared := range []struct {
		key    string
		into   *Flag
		values []string
	}{
		{"approval", &c.Approval, []string{"prompt", "auto-edit", "yolo"}},
		{"sandbox", &c.Sandbox, []string{"workspace-write", "off"}},
		{"output", &c.Output, []string{"text", "json", "stream-json"}},
	} {
		if m, ok := member(v, shared.key); ok && r.is(m, literal.Object, name+"."+shared.key, "an object") {
			*shared.into = r.flag(m, name+"."+shared.key, shared.values)
		}
	}
	if m, ok := member(v, "model"); ok && r.is(m, literal.Object, name+".model", "an object") {
		r.keys(m, name+".model", "flag", "modes")
		if flag, ok := r.need(m, name+".model", "flag"); ok {
			c.Model.Flag = r.filled(flag, name+".model.flag")
		}
		c.Model.Modes = r.modes(m, name+".model")
	}
	if m, ok := member(v, "web"); ok && r.is(m, literal.Object, name+".web", "an object") {
		r.keys(m, name+".web", "on", "off", "modes")
		if on, ok := member(m, "on"); ok {
			c.Web.On = r.strings(on, name+".web.on")
		}
		if off, ok := member(m, "off"); ok {
			c.Web.Off = r.strings(off, name+".web.off")
		}
		c.Web.Modes = r.modes(m, name+".web")
	}
}

func (r *reader) modes(v literal.Value, name string) []string {
	m, ok := member(v, "modes")
	if !ok || !r.is(m, literal.Array, name+".modes", "a list of strings") {
		return nil
	}
	if len(m.Items) == 0 {
		r.add(m.Pos, name+".modes must not be empty; leave it out for every mode", "", "")
	}
	var modes []string
	for i, item := range m.Items {
		if mode := r.oneOf(item, fmt.Sprintf("%s.modes[%d]", name, i), Interactive, OneShot); mode != "" {
			modes = append(modes, mode)
		}
	}
	return modes
}

func (r *reader) flag(v literal.Value, name string, values []string) Flag {
	f := Flag{}
	r.keys(v, name, "values", "byMode")
	if m, ok := member(v, "values"); ok && r.is(m, literal.Object, name+".values", "an object") {
		f.Values = r.emitted(m, name+".values", values)
	}
	if m, ok := member(v, "byMode"); ok && r.is(m, literal.Object, name+".byMode", "an object") {
		f.ByMode = map[string]map[string][]string{}
		r.exactly(m, name+".byMode", []string{Interactive, OneShot})
		for _, mode := range []string{Interactive, OneShot} {
			if of, ok := member(m, mode); ok && r.is(of, literal.Object, name+".byMode."+mode, "an object") {
				f.ByMode[mode] = r.emitted(of, name+".byMode."+mode, values)
			}
		}
	}
	return f
}

// emitted reads what each value of a flag becomes. null means that the value is not supported.
func (r *reader) emitted(v literal.Value, name string, values []string) map[string][]string {
	all := map[string][]string{}
	r.exactly(v, name, values)
	for _, value := range values {
		m, ok := v.Member(value)
		switch {
		case !ok:
		case m.Value.Kind == literal.Null:
			all[value] = nil
		default:
			all[value] = r.strings(m.Value, name+"."+value)
		}
	}
	return all
}
