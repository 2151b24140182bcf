package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/guard"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random policies")

// policyOf is one that was drawn: rules of any source in any order, a mode, walls, and whether somebody can be asked.
type policyOf struct {
	rules  guard.Rules
	mode   setting.Approval
	walls  engine.Walls
	canAsk bool
	memory *guard.Memory
	host   string // what a hook has decided
	ground guard.Containment
}

func (p policyOf) word(name string, a tool.Action) int {
	what := engine.OutcomeHeard(p.host, p.mode, guard.Judge{
		Known: tool.Ours().Specs(),
		Rules: p.rules, Memory: p.memory,
		Place: guard.Place{Root: "/w", Dir: "/w", Home: "/home/u", Containment: p.ground},
	}, p.walls, name, a, p.canAsk)
	return slices.Index([]string{engine.Runs, engine.Asks, engine.Denied}, what)
}

type subject struct {
	name   string
	action tool.Action
}

func subjects() []subject {
	bash := func(line string) subject {
		return subject{"Bash", tool.Action{Kind: event.Shell, Changes: true, Command: line}}
	}
	file := func(name string, kind event.ToolKind, path string) subject {
		return subject{name, tool.Action{Kind: kind, Changes: kind == event.Write, Paths: []string{path}}}
	}
	return []subject{
		bash("ls"), bash("npm test"), bash("npm test && git push"), bash("git push --force"), bash("echo $(npm test)"),
		bash("cat a > b"), bash("sudo ls"), bash("claude -p hi"), bash("rm -rf dist"), bash("rm -rf big"),
		bash("git reset --hard; make"), bash("curl -d @a example.com"), bash("echo a > /etc/b"), bash("echo ((("),
		bash("cat ~/.ssh/id"), bash("env -S \"$x\""), bash("ls > .git/config"), file("Edit", event.Write, "big"),
		file("Read", event.Read, "a"), file("Read", event.Read, "secrets/k"), file("Write", event.Write, "a"),
		file("Edit", event.Write, ".vscode/x"), file("Edit", event.Write, ".git/config"),
		{"WebFetch", tool.Action{Kind: event.Web, URL: "https://example.com/x"}},
		{"mcp__a__b", tool.Action{Kind: event.MCP}},
		{"TodoWrite", tool.Action{Kind: event.Other}},
		{"AskUserQuestion", tool.Action{Kind: event.Other, Person: true}},
		{"Task", tool.Action{Kind: event.Agent}},
	}
}

func ruleTexts() []string {
	return []string{
		"Bash", "Bash(npm test:*)", "Bash(git push:*)", "Bash(ls)", "Read", "Read(secrets/**)", "Edit(a)",
		"Edit", "WebFetch(domain:example.com)", "mcp__a", "mcp__a__b", "AskUserQuestion", "Task", "*",
	}
}

func grounds() []guard.Containment {
	whole := guard.Cover{Roots: []string{"/w"}}
	partial := guard.Cover{Roots: []string{"/w"}, Gaps: []guard.Gap{{Path: "/w/big", Why: "it is large", Loose: true}}}
	return []guard.Containment{{}, {Cover: whole}, {Cover: partial}, {Cover: whole, Network: true}}
}

func draw(t *testing.T, r *rand.Rand, n int, words ...guard.Decision) guard.Rules {
	t.Helper()
	var rules guard.Rules
	for range n {
		text := ruleTexts()[r.IntN(len(ruleTexts()))]
		rule, err := guard.Known(tool.Ours().Specs()).Rule(words[r.IntN(len(words))], text,
			fmt.Sprintf("source %d", r.IntN(3)))
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return rules
}

// TestLattice: a denial outweighs a question, and that an allowance, whatever the rules, their order and source, the
// mode, the walls and who is there to be asked.
func TestLattice(t *testing.T) {
	hermetic.Long(t)
	t.Logf("-seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 0))
	// Each lets through what those before do, but for plan: it runs what only reads, about which ask asks.
	modes := []setting.Approval{
		setting.DenyAll, setting.AskAll, setting.Plan, setting.Prompt, setting.Default,
		setting.AutoEdit, setting.Yolo,
	}
	for range 2500 {
		p := policyOf{
			draw(t, r, r.IntN(5), guard.Allow, guard.Ask, guard.Deny), modes[r.IntN(len(modes))],
			engine.Walls(r.IntN(4)), r.IntN(2) == 0, &guard.Memory{},
			[]string{"", "", event.Allow, "ask", event.Deny}[r.IntN(5)], grounds()[r.IntN(len(grounds()))],
		}
		s := subjects()[r.IntN(len(subjects()))]
		before := p.word(s.name, s.action)
		fail := func(what string, after int) {
			t.Errorf("%s: %s %+v, %v, mode %s, walls %d, asks %v, hook %q: %d and then %d", what, s.name, s.action,
				p.rules, p.mode, p.walls, p.canAsk, p.host, before, after)
		}

		other := p
		other.rules = slices.Clone(p.rules)
		r.Shuffle(len(other.rules), func(i, j int) { other.rules[i], other.rules[j] = other.rules[j], other.rules[i] })
		if after := other.word(s.name, s.action); after != before {
			fail("another order", after)
		}
		for _, word := range []guard.Decision{guard.Ask, guard.Deny} {
			other.rules = append(slices.Clone(p.rules), draw(t, r, 1, word)...)
			if after := other.word(s.name, s.action); after < before {
				fail(word.String()+" added", after)
			}
		}
		other.rules = append(slices.Clone(p.rules), draw(t, r, 3, guard.Allow)...)
		if after := other.word(s.name, s.action); before == 2 && after != 2 {
			fail("allow added to a denial", after)
		}
		everything, _ := guard.Known(tool.Ours().Specs()).Rule(guard.Ask, "*", "flag")
		other.rules = append(slices.Clone(p.rules), everything)
		if after := other.word(s.name, s.action); after == 0 {
			fail("asked about everything", after)
		}
		other.rules = p.rules
		for _, mode := range modes[:slices.Index(modes, p.mode)] {
			if other.mode = mode; other.word(s.name, s.action) < before &&
				(mode != setting.AskAll || p.mode != setting.Plan) {
				fail("the stricter mode "+string(mode), other.word(s.name, s.action))
			}
		}
		other.mode = p.mode
		other.memory = &guard.Memory{}
		other.memory.Remember(engine.Described(s.name, s.action), guard.Allow)
		if after := other.word(s.name, s.action); before == 2 && after != 2 {
			fail("a denial and an old consent", after)
		}
		other.memory.Remember(engine.Described(s.name, s.action), guard.Deny)
		if after := other.word(s.name, s.action); after != 2 {
			fail("an old refusal", after)
		}
		other.memory = p.memory
		for _, host := range []string{"", event.Allow, "ask", event.Deny} { // "": what there is without a hook
			other.host = host
			word := other.word(s.name, s.action)
			plain := other
			plain.host = ""
			without := plain.word(s.name, s.action)
			switch {
			case without == 2 && word != 2:
				fail("a denial and the hook's "+host, word)
			case host == "ask" && word == 0, host == event.Deny && word != 2, host == event.Allow && word > without:
				fail("the hook's "+host, word)
			}
			plain.host, plain.rules = host, append(slices.Clone(p.rules), everything)
			if after := plain.word(s.name, s.action); after == 0 || after < word {
				fail("asked about everything, and the hook's "+host, after)
			}
		}
		if person := s.action.Person; person && p.host != event.Allow && before == 0 {
			fail("no person is asked", before)
		}
	}
}
