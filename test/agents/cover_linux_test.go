package agents

import (
	"fmt"
	"hash/crc32"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/testkit/hermetic"
)

// scenario is one thing that is tried on one agent, in a bench of its own. covers are the points that it proves; points
// lists them all.
type scenario struct {
	name   string
	covers []string
	run    func(b *bench)
}

// subject is an agent with all that is tried on it.
type subject struct {
	driver    agent.Driver
	scenarios []scenario
}

func subjects() []subject {
	return []subject{
		{claude.New(), append(claudeScenarios(), strict(), resumed())},
		{codex.New(), append(codexScenarios(), strict(), resumed())},
		{gemini.New(), append(geminiScenarios(), strict(), resumed())},
		{copilot.New(), append(copilotScenarios(), strict(), resumed())},
		{opencode.New(), append(opencodeScenarios(), strict(), resumed())},
	}
}

// someSubjects are two of the agents: others in each round, and not the same ones for each test.
func someSubjects(t *testing.T) []subject {
	t.Helper()
	all := subjects()
	first := int(crc32.ChecksumIEEE([]byte(t.Name()))) % len(all)
	return hermetic.InTurn(t, append(all[first:], all[:first]...), 2)
}

// points are what has to be proven on a real agent: every cell of its matrix in both modes, every pair of approval and
// sandbox, followed by a passthrough that wants something else, and the rest.
func points(d agent.Driver) []string {
	var list []string
	for _, row := range d.Matrix("").Rows {
		cell := row.Feature
		if row.Value != "" {
			cell += "=" + row.Value
		}
		list = append(list, cell+" one-shot", cell+" interactive")
	}
	for _, a := range setting.Common() {
		for _, s := range []string{"-", string(setting.WorkspaceWrite), string(setting.Off)} {
			list = append(list, fmt.Sprintf("pair %s/%s", a, s), fmt.Sprintf("pair %s/%s, then passthrough", a, s))
		}
	}
	return append(list,
		"prompt at the limit", "prompt beyond the limit",
		"screen: flags visible", "screen: dialog under prompt", "screen: no dialog under yolo", "screen: resize",
		"screen: suspend",
		"denial", "API error", "rate limit", "stall",
		"hostile: hooks", "hostile: MCP", "hostile: base URL", "hostile: modes",
	)
}

// covered reports whether a list has a point. "pair *" stands for all that begin so.
func covered(list []string, point string) bool {
	return slices.ContainsFunc(list, func(c string) bool {
		begin, all := strings.CutSuffix(c, "*")
		return c == point || all && strings.HasPrefix(point, begin)
	})
}

// TestEveryPointIsTried: a new cell of a matrix needs a scenario, and a scenario names only what exists. It needs no
// agent.
func TestEveryPointIsTried(t *testing.T) {
	for _, s := range subjects() {
		all := points(s.driver)
		var claims []string
		for _, one := range s.scenarios {
			claims = append(claims, one.covers...)
			for _, c := range one.covers {
				if !slices.ContainsFunc(all, func(p string) bool { return covered([]string{c}, p) }) {
					t.Errorf("%s: %s covers %q, which is not a point", s.driver.Name(), one.name, c)
				}
			}
		}
		for _, p := range all {
			if !covered(claims, p) {
				t.Errorf("%s: nothing tries %q", s.driver.Name(), p)
			}
		}
	}
}

// TestReal runs the scenarios of every agent that is installed. Those of one agent run side by side.
func TestReal(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range subjects() {
		t.Run(s.driver.Name(), func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(filepath.Join(bin, s.driver.Describe().Binary)); err != nil {
				t.Fatal(err)
			}
			for one := range inTurn(t, s.driver.Name(), s.scenarios) {
				t.Run(one.name, func(t *testing.T) {
					t.Parallel()
					one.run(newBench(t, s.driver.Name()))
				})
			}
		})
	}
}

// inTurn yields the cases that are tried with an agent: each case is tried with one of the five, more of them with
// those that start quickly. The length of the test's name decides which agent has the first case.
// OMNIAGENT_WHOLE=matrices tries all.
func inTurn[T any](t *testing.T, agent string, all []T) iter.Seq[T] {
	turns := []string{
		"claude", "codex", "copilot", "claude", "codex", "gemini", "claude", "codex", "copilot", "opencode",
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	return func(yield func(T) bool) {
		left := 0
		for i, one := range all {
			if !hermetic.Matrices() && turns[(i+len(name))%len(turns)] != agent {
				left++
			} else if !yield(one) {
				return
			}
		}
		if left > 0 {
			t.Run("others", func(t *testing.T) {
				t.Skipf("%d more with %s: OMNIAGENT_WHOLE=matrices tries them", left, agent)
			})
		}
	}
}

// spare skips a test with opencode, which takes seconds of processor time to start and is driven as gemini is.
func spare(t *testing.T, agent string) {
	t.Helper()
	if agent == "opencode" && !hermetic.Matrices() {
		t.Skip("it starts slowly, and is driven as gemini is: OMNIAGENT_WHOLE=matrices tries it too")
	}
}

func needAgents(t *testing.T) {
	t.Helper()
	if bin == "" {
		t.Skip("the agents are not here: OMNIAGENT_TEST_AGENTS=$(scripts/agents) go test ./test/agents")
	}
}

// needPrograms skips what cannot hold without programs of the system.
func needPrograms(b *bench, names ...string) {
	b.t.Helper()
	for _, name := range names {
		if !slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err == nil
		}) {
			b.t.Skipf("%s is not installed here, and %s needs it", name, b.agent)
		}
	}
}
