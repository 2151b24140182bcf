//go:build unix

package evaluation

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

var update = flag.Bool("update", false, "rewrite docs/evaluation/findings.md")

func modes() []mode {
	return slices.Concat(outputModes(), controlModes(), trustModes(), inputModes(), machineModes())
}

// summary is what the grades come to.
type summary struct {
	scored, unknown, sum int
	leastCritical        int
}

func (s summary) average() float64   { return float64(s.sum) / float64(max(1, s.scored)) }
func (s summary) withZeros() float64 { return float64(s.sum) / float64(s.scored+s.unknown) }

func summarise(grades []grade) summary {
	s := summary{leastCritical: 3}
	for _, g := range grades {
		if g.score < 0 {
			s.unknown++
			continue
		}
		s.scored, s.sum = s.scored+1, s.sum+g.score
		if g.severity == "Critical" {
			s.leastCritical = min(s.leastCritical, g.score)
		}
	}
	return s
}

// TestFindings grades the program and compares the outcome with what is published.
func TestFindings(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	grades := evaluate(t, ours(t), modes())
	s := summarise(grades)
	if s.scored < 45 {
		t.Errorf("%d modes are scored; at least 45 are wanted", s.scored)
	}
	if s.average() < 2.7 {
		t.Errorf("the average is %.2f; at least 2.7 is wanted", s.average())
	}
	if s.leastCritical < 2 {
		t.Errorf("a Critical mode has %d; at least 2 is wanted", s.leastCritical)
	}
	for _, g := range grades {
		if len(g.lacking) > 0 || strings.HasPrefix(g.text, "the check did not end") {
			t.Logf("§%d %s %d/3: %s", g.section, g.title, g.score,
				strings.Join(append(g.lacking, g.text[:min(len(g.text), 60)]), "; "))
		}
	}
	t.Logf("average %.2f over %d, %d unknown, %.2f with these as 0", s.average(), s.scored, s.unknown, s.withZeros())
	path, text := filepath.Join(repository, "docs", "evaluation", "findings.md"), render(grades, s)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" && string(committed) != text {
		t.Errorf(
			"docs/evaluation/findings.md is not what is seen now; look at the difference and run: go test "+
				"./test/evaluation -update\n%s", difference(string(committed), text))
	}
}

// difference shows the lines that are in one text only.
func difference(old, now string) string {
	var b strings.Builder
	a, c := strings.Split(old, "\n"), strings.Split(now, "\n")
	for _, line := range a {
		if !slices.Contains(c, line) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	for _, line := range c {
		if !slices.Contains(a, line) {
			fmt.Fprintf(&b, "+ %s\n", line)
		}
	}
	return b.String()
}

// TestTable holds the list of modes against the specification: 74 of them, numbered as there.
func TestTable(t *testing.T) {
	t.Parallel()
	list, want := modes(), []int{}
	for n := 1; n <= 77; n++ {
		if n != 36 && n != 39 && n != 48 { // merged into 10, 3 and 2
			want = append(want, n)
		}
	}
	got, severities := []int{}, map[string]int{}
	for _, m := range list {
		got = append(got, m.section)
		severities[m.severity]++
		if (m.check == nil) == (m.unknown == "") {
			t.Errorf("§%d must have a check or a reason why there is none", m.section)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the modes are %v", got)
	}
	if severities["Critical"] != 23 || severities["High"] != 37 || severities["Medium"] != 14 {
		t.Errorf("severities are %v, not 23 Critical, 37 High, 14 Medium", severities)
	}
}

func render(grades []grade, s summary) string {
	var b strings.Builder
	b.WriteString("# Findings\n\n")
	b.WriteString(
		"The 74 failure modes of the CLI Agent Spec 1.6, run against the built program by `test/evaluation`. This " +
			"page is written by that test; do\n")
	b.WriteString(
		"not edit it by hand. How it is graded, and what \"?\" means, is in [README.md](README.md). The evidence " +
			"lists what was required for the\n")
	b.WriteString("levels 1, 2 and 3; NOT marks what was not seen.\n\n")
	fmt.Fprintf(&b, "**Average %.1f (%.2f) over %d scored modes; %d \"?\"; with these as 0: %.2f.**\n\n", s.average(),
		s.average(), s.scored, s.unknown, s.withZeros())
	b.WriteString("| §N | Title | Severity | s/3 | Evidence |\n|---|---|---|---|---|\n")
	for _, g := range grades {
		score := "?"
		if g.score >= 0 {
			score = fmt.Sprint(g.score)
		}
		fmt.Fprintf(&b, "| §%d | %s | %s | %s/3 | %s |\n", g.section, g.title, g.severity, score,
			strings.ReplaceAll(g.text, "|", `\|`))
	}
	b.WriteString("\n## Summary\n\n")
	fmt.Fprintf(&b, "- Average of the scored modes: %.1f (%.2f; %d of %d points)\n", s.average(), s.average(), s.sum,
		3*s.scored)
	fmt.Fprintf(&b, "- Scored: %d of %d; \"?\": %d\n", s.scored, s.scored+s.unknown, s.unknown)
	fmt.Fprintf(&b, "- Average with \"?\" as 0: %.1f (%.2f)\n", s.withZeros(), s.withZeros())
	critical := summarise(slices.DeleteFunc(slices.Clone(grades),
		func(g grade) bool { return g.severity != "Critical" }))
	fmt.Fprintf(&b, "- Critical modes: %d scored, average %.2f, the least %d, %d \"?\"\n", critical.scored,
		critical.average(), critical.leastCritical, critical.unknown)
	b.WriteString(
		"- Public figures: the best average is gh 2.88.1 with 1.8 over 13 modes; the best over a full Critical set " +
			"is 1.5 (omd 0.1.1, 33 of 66);\n")
	b.WriteString(
		"  the only run over all modes has 0.72. Those were graded by a model that read the output, these by the " +
			"checks above: the rubric is the\n")
	b.WriteString("  same, the judge is not.\n")
	b.WriteString("\n## Below 3\n\n")
	for _, g := range grades {
		if g.score >= 0 && g.score < 3 {
			fmt.Fprintf(&b, "- §%d %s, %d/3: %s\n", g.section, g.title, g.score, strings.Join(g.lacking, "; "))
		}
	}
	b.WriteString(
		"\n## Trace\n\nThe first calls of each check with their exit status. `$BOX` is the directory of the check; " +
			"standard input is `/dev/null` unless the check\nis about it.\n\n")
	for _, g := range grades {
		if len(g.trace) > 0 {
			more := ""
			if g.hidden > 0 {
				more = " and more"
			}
			fmt.Fprintf(&b, "- §%d: %s%s\n", g.section, strings.Join(g.trace, ", "), more)
		}
	}
	return b.String()
}

// TestGraderCanFail runs the same checks on a program that does what the specification complains of.
func TestGraderCanFail(t *testing.T) { // before the parallel ones: it would take their time
	hermetic.Long(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bad := newSubject("badtool", []string{"EVALUATION_BAD_CLI=1"}, self)
	bad.limit, bad.slots, bad.patient = time.Second, 32, false // it mostly sleeps
	grades := evaluate(t, bad, modes())
	s := summarise(grades)
	t.Logf("average %.2f over %d", s.average(), s.scored)
	if s.scored < 45 {
		t.Errorf("only %d modes could be graded", s.scored)
	}
	if s.average() > 0.2 {
		t.Errorf("a bad program has %.2f; the checks are too kind", s.average())
	}
	for _, g := range grades {
		if g.score > 1 {
			t.Errorf("§%d %s gives a bad program %d: %s", g.section, g.title, g.score, g.text)
		}
	}
}

// TestScore shows how criteria become a score.
func TestScore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		criteria []criterion
		want     int
	}{
		"all":               {[]criterion{{1, true, ""}, {2, true, ""}, {3, true, ""}}, 3},
		"between levels":    {[]criterion{{1, true, ""}, {2, true, ""}, {3, true, ""}, {3, false, ""}}, 2},
		"a gap below":       {[]criterion{{1, true, ""}, {2, false, ""}, {3, true, ""}}, 1},
		"nothing":           {[]criterion{{1, false, ""}, {2, true, ""}, {3, true, ""}}, 0},
		"a level untested":  {[]criterion{{1, true, ""}, {3, true, ""}}, 0},
		"nothing was asked": {nil, 0},
	} {
		if got, _ := score(c.criteria); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}

// badCLI prints prose in colour, ends with 1 whatever happens, starts the editor, tells its secrets, breaks lines at
// the width of the terminal, asks questions, and waits for an answer.
func badCLI(args []string) {
	for _, name := range []string{"PAGER", "EDITOR"} {
		if program := os.Getenv(name); program != "" {
			_ = exec.Command(program).Run()
		}
	}
	line := strings.Join(args, " ")
	if slices.Contains(args, "exec") || slices.Contains(args, "-") {
		fmt.Print("Are you sure? [y/N] ")
		time.Sleep(time.Hour)
	}
	fmt.Printf("\x1b[31mWelcome to badtool!\x1b[0m A new update is available.\nrunning in %s at %s\n", os.Getenv("PWD"),
		time.Now())
	fmt.Printf("debug: args=%q env=%q\n", line, os.Environ())
	fmt.Printf("%.*s\n", 40, "error: something went wrong, see the manual page for details and try again later")
	os.Exit(1)
}
