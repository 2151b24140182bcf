package session

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDamage: lines that are no records are ignored, and everything else is there.
func TestDamage(t *testing.T) {
	prepare := func(t *testing.T) (Store, []string) {
		s := store(t)
		own := create(t, s, "x")
		add(t, own, user("one"))
		add(t, own, assistant("two"))
		add(t, own, user("three"))
		check(t, own.Close())
		data, err := os.ReadFile(s.file("x", journalEnding))
		check(t, err)
		return s, strings.SplitAfter(string(data), "\n")[:4]
	}
	huge, err := Entry{Number: 5, Parent: 4, Record: user(strings.Repeat("h", 3*chunk))}.line()
	check(t, err)
	old := func(l []string) []string { // as version 0.1 wrote them
		l = slices.Clone(l)
		for i := range l {
			l[i] = regexp.MustCompile(`,"c":"[0-9a-f]{8}"`).ReplaceAllString(l[i], "")
		}
		return l
	}
	for name, row := range map[string]struct {
		change  func(lines []string) string
		want    string
		damaged int
	}{
		"version 0.1": {
			func(l []string) string { return strings.Join(old(l), "") }, "u one | a two | u three",
			0,
		},
		"torn": {
			func(l []string) string { return strings.Join(l, "") + string(huge[:40]) },
			"u one | a two | u three", 0,
		},
		"not ours": {
			func(l []string) string { return strings.Join(l, "") + l[1][:40] },
			"u one | a two | u three", 1,
		},
		"torn, huge": {
			func(l []string) string { return strings.Join(l, "") + string(huge[:2*chunk]) },
			"u one | a two | u three", 0,
		},
		"only newline lost": {
			func(l []string) string { return strings.TrimSuffix(strings.Join(l, ""), "\n") },
			"u one | a two | u three", 0,
		},
		"only newline lost, huge": {
			func(l []string) string { return strings.Join(l, "") + strings.TrimSuffix(string(huge), "\n") },
			"u one | a two | u three " + strings.Repeat("h", 3*chunk), 0,
		},
		"zeros at the end": {
			func(l []string) string { return strings.Join(l, "") + strings.Repeat("\x00", 5000) },
			"u one | a two | u three", 0,
		},
		"garbage": {func(l []string) string {
			return l[0] + l[1] + "garbage\n\n{}\n[]\n" + l[2] +
				"\x00\xff\n" + l[3]
		}, "u one | a two | u three", 4},
		"huge garbage": {
			func(l []string) string { return l[0] + l[1] + strings.Repeat("g", 5*chunk) + "\n" + l[2] + l[3] },
			"u one | a two | u three", 1,
		},
		"a line gone": {func(l []string) string { return l[0] + l[1] + l[3] }, "u one three", 1},
		"a line cut": {
			func(l []string) string { return l[0] + l[1] + l[2][:50] + "\n" + l[3] }, "u one three",
			1,
		},
		"data damaged": {func(l []string) string {
			return l[0] + l[1] + strings.Replace(l[2], "blocks", `bl"cks`,
				1) + l[3]
		}, "u one three", 1},
		"twice": {
			func(l []string) string { return l[0] + l[1] + l[1] + l[2] + l[3] },
			"u one | a two | u three", 1,
		},
		"no beginning": {func(l []string) string { return l[1] + l[2] + l[3] }, "u one | a two | u three", 1},
		"beginning damaged": {
			func(l []string) string { return l[0][:80] + "}\n" + l[1] + l[2] + l[3] },
			"u one | a two | u three", 1,
		},
		"an unknown kind": {func(l []string) string {
			l = old(l)
			return l[0] + l[1] + strings.Replace(l[2], "message", "novelty", 1) + l[3]
		}, "u one three", 0},
		"an editor": {
			func(l []string) string {
				l = old(l)
				return l[0] + strings.ReplaceAll(strings.TrimSuffix(l[1], "\n"), `,"`, `, "`) + "\r\n" +
					strings.ReplaceAll(l[2], `":`, `": `) + l[3]
			},
			"u one | a two | u three", 0,
		},
		"a parent that is not there": {func(l []string) string {
			l = old(l)
			return l[0] + l[1] + l[2] + strings.Replace(l[3], `"p":3`, `"p":77`, 1)
		}, "u one | a two | u three", 0},
		"huge line": {
			func(l []string) string { return strings.Join(l, "") + string(huge) },
			"u one | a two | u three " + strings.Repeat("h", 3*chunk), 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, lines := prepare(t)
			check(t, os.WriteFile(s.file("x", journalEnding), []byte(row.change(lines)), 0o600))
			_, skipped, err := s.List(t.Context(), Filter{})
			if check(t, err); len(skipped) > 0 {
				t.Errorf("skipped %v", skipped)
			}
			own := resume(t, s, "x")
			for _, again := range []string{"", " more"} {
				if got := said(own.Messages()); got != row.want+again {
					t.Errorf("got %.200s\nwant %.200s", got, row.want+again)
				}
				if n := own.State().Damaged; n != row.damaged {
					t.Errorf("%d damaged, want %d", n, row.damaged)
				}
				if again == "" {
					add(t, own, user("more"))
				}
				check(t, own.Close())
				own = resume(t, s, "x")
			}
		})
	}
}
