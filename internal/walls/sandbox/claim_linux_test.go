package sandbox

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestThePageHasEachHole: docs/threats.md lists what the walls can leave open, each tier with the phrases of its claim,
// and nothing else.
func TestThePageHasEachHole(t *testing.T) {
	claimed := map[Tier]map[string]bool{Namespaces: {}, Landlock: {}}
	open, shut := Policy{Hidden: []string{"x"}, KeptNames: []string{"x"}, MoreRepositories: true}, Policy{}
	open.Network.Open, open.Limits.Memory = true, 1
	for range fewRepositories + 1 {
		open.Repositories = append(open.Repositories, "")
	}
	for tier, all := range claimed {
		for _, tried := range []trial{{ABI: 9}, {OldProcesses: true, Names: true, NoNumbers: true}} {
			tried.Names = tried.Names && tier == Landlock // the walls namespaces always have a supervisor
			for _, p := range []Policy{open, shut} {
				for _, root := range []bool{false, true} {
					for _, hole := range tried.holes(p, tier, root) {
						all[hole] = true
					}
				}
			}
		}
	}
	page, err := os.ReadFile("../../../docs/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What the walls do not hold\n")
	section = regexp.MustCompile(`\n +`).ReplaceAllString(section, " ")
	listed := func(heading string) (list []string) {
		_, rest, _ := strings.Cut(section, "\n"+heading+":\n\n")
		rest, _, _ = strings.Cut(rest, "\n\n")
		for line := range strings.Lines(rest) {
			phrase, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "- ")), ". ")
			list = append(list, phrase)
		}
		return list
	}
	for tier, heading := range map[Tier]string{Namespaces: "`namespaces`, besides", Landlock: "`landlock`, besides"} {
		want := slices.Sorted(maps.Keys(claimed[tier]))
		got := slices.Sorted(slices.Values(append(listed("`namespaces` and `landlock`"), listed(heading)...)))
		for _, hole := range want {
			if !slices.Contains(got, hole) {
				t.Errorf("%v: the page lacks %q", tier, hole)
			}
		}
		for _, hole := range got {
			if !slices.Contains(want, hole) {
				t.Errorf("%v: no claim has %q", tier, hole)
			}
		}
	}
}
