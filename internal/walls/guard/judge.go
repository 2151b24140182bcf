package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/core/event"
)

// Call is a tool call to be judged.
type Call struct {
	Tool    string
	Kind    string // read, write, command, web, mcp, other
	Command string // of the kind command
	Dir     string // where a command starts, relative to Place.Root; empty: Place.Dir
	Paths   []string
	URL     string
	Input   json.RawMessage // as the tool gets it; remembered answers are bound to it
}

// Judge combines the built-in tables, a user's rules, and earlier answers. Deny outweighs Ask, and Ask outweighs Allow,
// whatever the order and the source.
type Judge struct {
	Set    Set
	Rules  Rules
	Memory *Memory // may be nil
	Place  Place
	Known  Known // any other tool is asked about
}

// Call returns the verdict on a call.
func (j Judge) Call(c Call) Verdict {
	if c.Dir != "" {
		j.Place.Dir = resolve(j.Place.Root, filepath.FromSlash(c.Dir))
	}
	if strings.HasPrefix(c.Tool, routes+".") {
		j.Set = SysBuiltIn
	}
	pieces, line := j.pieces(c)
	strict, lax := j.divide(c)
	var v Verdict
	explicit, hit := j.restricted(strict, c, pieces, line)
	lifted := false
	// A person reads the reason with the gravest effect first.
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(b.beyond, a.beyond) })
	for i := range pieces {
		p := &pieces[i]
		if c.Kind == "command" || c.Kind == "write" {
			p.settle(j.Place)
			if v.Refusal == "" && j.Place.Containment.Walls && p.refusedByWalls(j.Place.Containment) {
				v.Refusal = p.because
			}
			v.NeedsNetwork = v.NeedsNetwork || c.Kind == "command" && p.needsNetwork(j.Place.Containment)
		}
		if p.decision == Ask {
			if r, ok := j.lifts(lax, *p, c); ok {
				p.decision, lifted = Allow, true
				v.add(Reason{
					Decision: Allow, Text: fmt.Sprintf("the allow rule %s", r), Piece: p.text, Source: r.source,
				})
			}
		}
		if p.decision > Allow {
			v.Firm, v.NeedsPerson = v.Firm || p.firm, v.NeedsPerson || p.beyond.needsPerson()
			v.add(Reason{Decision: p.decision, Text: p.why, Piece: p.text, Source: BuiltIn})
		}
	}
	built := v.Decision
	// Nothing forbids it, but a mode may ask: then the user's rule counts.
	if len(pieces) == 0 && explicit == Allow && c.Kind != "command" {
		if r, ok := j.lifts(lax, piece{}, c); ok {
			lifted = true
			v.add(Reason{Decision: Allow, Text: fmt.Sprintf("the allow rule %s", r), Source: r.source})
		}
	}
	if answer, ok := j.Memory.recall(c); ok {
		hitText := "it was answered so before, for exactly this call"
		switch {
		case answer == Deny:
			hit = append(hit, Reason{Decision: Deny, Text: hitText, Source: "this conversation"})
			explicit = Deny
		case answer == Allow && built < Deny && explicit == Allow:
			v.Decision, v.Firm, v.NeedsPerson, built, lifted, v.Answered = Allow, false, false, Allow, true, true
			v.Reasons = []Reason{{Decision: Allow, Text: hitText, Source: "this conversation"}}
		}
	}
	for _, r := range hit {
		v.add(r)
	}
	v.Decision = max(built, explicit)
	v.Explicit = explicit > Allow && explicit >= built || v.Decision == Allow && lifted
	if explicit > Allow { // if rules contradict each other, show both
		for _, r := range lax {
			if j.wouldLift(r, c, pieces) {
				v.add(Reason{
					Decision: Allow, Text: fmt.Sprintf("the allow rule %s, which does not count against it", r),
					Source: r.source,
				})
			}
		}
	}
	v.sort()
	return v
}

// restricted returns the strictest decision of the deny and ask rules, and the rules that apply.
func (j Judge) restricted(strict []Rule, c Call, pieces []piece, line *survey) (explicit Decision, hit []Reason) {
	if slices.ContainsFunc(strict, func(r Rule) bool { return !r.bare && aboutKind(r, "read") }) {
		for i := range pieces {
			pieces[i].expand(j.Place, c.Command)
		}
	}
	for _, r := range strict {
		if word, what := j.against(r, c, pieces, line); word > Allow {
			why := fmt.Sprintf("the %s rule %s", r.decision, r)
			if word < r.decision {
				why += " may be about this: it is not known before it runs"
			}
			hit = append(hit, Reason{Decision: word, Text: why, Piece: what, Source: r.source})
			explicit = max(explicit, word)
		}
	}
	return explicit, hit
}

// divide returns the rules about a tool: those that restrict it, and those that allow it.
func (j Judge) divide(c Call) (strict, lax []Rule) {
	for _, r := range j.Rules {
		switch {
		case r.decision == Allow:
			if coversTool(r, c.Tool) || c.Kind == "command" && (r.tool == "Edit" || r.tool == "Write") {
				lax = append(lax, r)
			}
		case coversTool(r, c.Tool) || aboutKind(r, c.Kind) || c.Kind == "command" &&
			(aboutKind(r, "read") || aboutKind(r, "write")):
			strict = append(strict, r)
		}
	}
	return strict, lax
}

// pieces returns the built-in verdicts on the parts of a call.
func (j Judge) pieces(c Call) ([]piece, *survey) {
	var pieces []piece
	say := func(word Decision, text, why string) {
		pieces = append(pieces, piece{shape: structure, decision: word, text: text, why: why})
	}
	switch c.Kind {
	case "command":
		line := j.Set.look(c.Command, j.Place)
		return line.pieces, line
	case "write", "read":
		for _, path := range c.Paths {
			v := j.Set.Read(path, j.Place)
			if c.Kind == "write" {
				v = j.Set.Write(path, j.Place)
			}
			for _, r := range v.Reasons {
				say(r.Decision, r.Piece, r.Text)
				p := &pieces[len(pieces)-1]
				if p.firm, p.never = v.Firm, v.never; c.Kind == "write" {
					p.reaches(guarded, r.Text)
				}
			}
			if g, gone := j.Place.Containment.Cover.gap(resolve(j.Place.Dir, path)); gone && c.Kind == "write" {
				say(Ask, path, j.Place.lacks(g))
				pieces[len(pieces)-1].reaches(uncovered, j.Place.lacks(g))
			}
		}
		if c.Kind == "write" && len(c.Paths) == 0 {
			say(Ask, c.Tool, "it cannot be told what it changes")
			pieces[len(pieces)-1].reaches(uncovered, "it cannot be told what it changes")
		}
	case "web":
		say(Ask, c.URL, "it talks to the network")
	case "mcp":
		say(Ask, c.Tool, "a tool of a server is not known here")
	default:
		if t := j.Known.of(c.Tool); t.Name == "" || t.Rule != event.RuleBare || t.Changes {
			say(Ask, c.Tool, "the tool is not known here")
		}
	}
	return pieces, nil
}

// against returns the decision of a deny or ask rule about a call, and the part to which it applies.
func (j Judge) against(r Rule, c Call, pieces []piece, line *survey) (Decision, string) {
	mine := coversTool(r, c.Tool) || aboutKind(r, c.Kind)
	if mine && r.bare {
		return r.decision, ""
	}
	switch c.Kind {
	case "command":
		return j.againstCommand(r, mine, c, pieces, line)
	case "web":
		if r.matchesURL(c.URL) {
			return r.decision, c.URL
		}
	default:
		for _, path := range c.Paths {
			if r.matchesPath(resolve(j.Place.Dir, path), j.Place) {
				return r.decision, path
			}
		}
	}
	return Allow, ""
}

func (j Judge) againstCommand(r Rule, mine bool, c Call, pieces []piece, line *survey) (word Decision, what string) {
	said := func(w Decision, text string) {
		if w > word {
			word, what = w, text
		}
	}
	if mine {
		if r.tokens == nil && strings.TrimSpace(c.Command) == strings.TrimSpace(r.inner) {
			said(r.decision, c.Command)
		}
		for _, p := range pieces {
			if p.runsUnknown || r.named(p.values) {
				said(Ask, p.text)
			}
			switch r.matchesCommand(p.argv) {
			case yes:
				said(r.decision, p.text)
			case perhaps:
				if p.shape == simple {
					said(Ask, p.text)
				}
			default:
				if r.mentioned(p) {
					said(Ask, p.text)
				}
			}
		}
		if line != nil && line.broken {
			said(Ask, c.Command)
		}
		return word, what
	}
	writes := aboutKind(r, "write")
	for _, p := range pieces {
		paths := p.writes
		if !writes {
			paths = append(slices.Clone(p.reads), j.named(p)...)
		}
		for _, path := range paths {
			if r.bare && writes || !r.bare && r.matchesPath(path, j.Place) {
				said(r.decision, p.text)
			}
		}
		if !writes && !r.bare && p.unexpanded {
			said(Ask, p.text)
		}
	}
	return word, what
}

// named returns the paths that the words of a command may mean.
func (j Judge) named(p piece) (paths []string) {
	for _, a := range p.argv {
		if a.known && a.text != "" && !strings.HasPrefix(a.text, "-") {
			paths = append(paths, resolve(j.Place.Dir, a.text))
		}
		if _, value, found := strings.Cut(a.text, "="); found && value != "" {
			paths = append(paths, resolve(j.Place.Dir, value))
		}
	}
	return paths
}

// lifts returns the allow rule that lifts the question about a piece.
func (j Judge) lifts(lax []Rule, p piece, c Call) (Rule, bool) {
	for _, r := range lax {
		if p.firm && !r.names(p.denied) {
			continue
		}
		if c.Kind == "command" {
			if j.liftsCommand(r, p, c) {
				return r, true
			}
			continue
		}
		switch {
		case r.bare:
			return r, true
		case c.Kind == "web":
			if r.matchesURL(c.URL) {
				return r, true
			}
		case len(c.Paths) > 0:
			if !slices.ContainsFunc(c.Paths,
				func(path string) bool { return !r.matchesPath(resolve(j.Place.Dir, path), j.Place) }) {
				return r, true
			}
		}
	}
	return Rule{}, false
}

func (j Judge) liftsCommand(r Rule, p piece, c Call) bool {
	if r.tool == "Edit" || r.tool == "Write" {
		if p.shape != redirect || p.inner || len(p.writes) == 0 {
			return false
		}
		return r.bare || !slices.ContainsFunc(p.writes, func(path string) bool { return !r.matchesPath(path, j.Place) })
	}
	named := p.agent != "" && r.namesAgent(p.agent, j.Place.Agents)
	whole := !r.prefix && !r.bare && r.inner == strings.TrimSpace(c.Command)
	switch {
	case p.agent != "" && !named && !(whole && strings.Contains(r.inner, p.agent)):
		return false // a rule that covers more does not allow an agent
	case r.bare, whole:
		return true
	case p.shape != simple:
		return false
	}
	return r.permitsCommand(p.argv)
}

// wouldLift reports whether an allow rule applies to a call at all.
func (j Judge) wouldLift(r Rule, c Call, pieces []piece) bool {
	switch {
	case r.bare:
		return coversTool(r, c.Tool)
	case c.Kind == "command":
		return slices.ContainsFunc(pieces, func(p piece) bool { return p.shape == simple && r.permitsCommand(p.argv) })
	case c.Kind == "web":
		return r.matchesURL(c.URL)
	}
	return slices.ContainsFunc(c.Paths,
		func(path string) bool { return r.matchesPath(resolve(j.Place.Dir, path), j.Place) })
}

// names reports whether a rule has a pattern and, if denied is a program, names that program.
func (r Rule) names(denied string) bool {
	return !r.bare && (denied == "" || len(r.tokens) == 0 || slices.ContainsFunc(r.tokens, func(t token) bool {
		return !t.star && program(t.text) == denied
	}))
}

// namesAgent reports whether a rule for a command names an agent, by itself or behind a wrapper or a package runner.
func (r Rule) namesAgent(agent string, agents Agents) bool {
	words := make([]word, len(r.tokens))
	for i, t := range r.tokens {
		if !t.star {
			words[i] = word{text: t.text, known: true}
		}
	}
	for i := range words {
		if agents.starts(program(words[i].text), words[i:]) == agent {
			return true
		}
	}
	return false
}
