// Package conformance keeps docs/conformance.md honest.
//
// The page has a row for each of the 158 requirements of the CLI Agent Spec: whether it holds here, by what mechanism,
// and which test shows it. This package promises that no row can be forgotten, misspelt, left without a reason or rest
// on a test that does not exist or did not run. It refuses to judge whether a test shows enough: that is for its
// reader.
//
// Check looks at the page alone, CheckSource compares it with the source of the tests and of the declaration, CheckRan
// with what a test run reported. Each returns all that is wrong, one line a problem.
package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The values of the column "Here". Due is followed by the name of a later part.
const (
	Applies = "applies"
	InPart  = "in part"
	Not     = "not"
	Due     = "due with"
)

// Parts are what may follow Due.
func Parts() []string {
	return []string{
		"the drivers", "the shim", "the native engine", "the conversation", "the orchestrator",
		"the gateway",
	}
}

// Row is one requirement as the page tells it.
type Row struct {
	Line     int
	ID       string // REQ-F-001
	Priority string // P0 to P3
	Asks     string // what the requirement wants, in a few words
	Here     string // Applies, InPart, Not, or Due and a part
	How      string // the mechanism, or the reason
	Proof    []Test
}

// Is tells whether the row has the status, which for Due is followed by a part.
func (r Row) Is(status string) bool {
	return r.Here == status || status == Due && strings.HasPrefix(r.Here, Due+" ")
}

// Test names a test function of this module and perhaps one of its subtests.
type Test struct {
	Package string // its directory, slash-separated, from the root of the module
	Func    string
	Sub     string // empty: the whole test
}

// Name is the test's name as `go test -v` prints it.
func (t Test) Name() string {
	if t.Sub == "" {
		return t.Func
	}
	return t.Func + "/" + t.Sub
}

func (t Test) String() string { return t.Package + "." + t.Name() }

// ParseTest reads internal/cli/contract.TestName/subtest.
func ParseTest(text string) (Test, error) {
	path, sub, _ := strings.Cut(text, ".")
	name, sub, _ := strings.Cut(sub, "/")
	if path == "" || !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") {
		return Test{}, fmt.Errorf("%q is not of the form internal/cli/contract.TestName/subtest", text)
	}
	return Test{path, name, sub}, nil
}

// Requirement is an id of the specification with its priority.
type Requirement struct{ ID, Priority string }

// Requirements reads lines of an id, a tab and a priority.
func Requirements(text string) []Requirement {
	var list []Requirement
	for line := range strings.Lines(text) {
		if id, priority, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			list = append(list, Requirement{id, priority})
		}
	}
	return list
}

// Root is the nearest directory at or above dir that holds go.mod.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", fmt.Errorf("no go.mod at or above the working directory")
		}
		dir = above
	}
}

// Parse reads the rows out of the page. A row is a line that begins with "| REQ-"; all other lines are prose.
func Parse(page string) ([]Row, []string) {
	var rows []Row
	var wrong []string
	n := 0
	for line := range strings.Lines(page) {
		n++
		if !strings.HasPrefix(line, "| REQ-") {
			continue
		}
		row, err := parseRow(strings.TrimSpace(line))
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("line %d: %v", n, err))
			continue
		}
		row.Line = n
		rows = append(rows, row)
	}
	return rows, wrong
}

func parseRow(line string) (Row, error) {
	const bar = "\x00" // an escaped bar is text
	line = strings.ReplaceAll(line, `\|`, bar)
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], bar, "|"))
	}
	if len(cells) != 6 {
		return Row{}, fmt.Errorf("a row has 6 cells (ID, P, What it asks, Here, How, Proof), this one %d", len(cells))
	}
	row := Row{ID: cells[0], Priority: cells[1], Asks: cells[2], Here: cells[3], How: cells[4]}
	names, rest := quoted(cells[5])
	if strings.Trim(rest, ", –") != "" {
		return Row{}, fmt.Errorf("%s: the proof has text outside backticks: %s", row.ID, strings.TrimSpace(rest))
	}
	for _, name := range names {
		test, err := ParseTest(name)
		if err != nil {
			return Row{}, fmt.Errorf("%s: %w", row.ID, err)
		}
		row.Proof = append(row.Proof, test)
	}
	return row, nil
}

// quoted are the parts of the text between backticks, and what remains.
func quoted(text string) (in []string, out string) {
	for {
		before, after, ok := strings.Cut(text, "`")
		out += before
		if !ok {
			return in, out
		}
		inner, after, ok := strings.Cut(after, "`")
		if !ok {
			return in, out + inner
		}
		in = append(in, inner)
		text = after
	}
}

// Check compares the rows with the requirements and looks for what each kind of row must have.
func Check(rows []Row, want []Requirement) []string {
	var wrong []string
	seen := map[string]int{}
	priority := map[string]string{}
	for _, r := range want {
		priority[r.ID] = r.Priority
	}
	for _, row := range rows {
		bad := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("line %d: %s: %s", row.Line, row.ID, fmt.Sprintf(format, args...)))
		}
		p, known := priority[row.ID]
		switch {
		case !known:
			bad("no such requirement")
		case seen[row.ID] != 0:
			bad("is already on line %d", seen[row.ID])
		case p != row.Priority:
			bad("the priority is %s, not %q", p, row.Priority)
		}
		seen[row.ID] = row.Line
		row.check(bad)
	}
	for _, r := range want {
		if seen[r.ID] == 0 {
			wrong = append(wrong, r.ID+": no row")
		}
	}
	return wrong
}

func (r Row) check(bad func(string, ...any)) {
	if r.Asks == "" {
		bad("does not say what it asks")
	}
	if r.How == "" || strings.Trim(r.How, "–- ") == "" {
		bad("has no reason")
	}
	switch {
	case r.Is(Applies), r.Is(InPart):
		if len(r.Proof) == 0 {
			bad("%s, and names no test", r.Here)
		}
	case r.Is(Not):
	case r.Is(Due):
		part := strings.TrimPrefix(r.Here, Due+" ")
		known := false
		for _, p := range Parts() {
			known = known || p == part
		}
		if !known {
			bad("is due with %q, which is not one of %s", part, strings.Join(Parts(), ", "))
		}
		if len(r.Fields()) == 0 {
			bad("is due, and names no field of the declaration such as `Command.Network`")
		}
		if len(r.Proof) == 0 {
			bad("is due, and names no test that refuses a command without the declaration")
		}
	default:
		bad("%q is not one of: applies, in part, not, due with <part>", r.Here)
	}
}

// Fields are the fields of the declaration that the row names: `Command.Network`, `Command.Params.Pattern`.
func (r Row) Fields() []string {
	var list []string
	names, _ := quoted(r.How)
	for _, name := range names {
		if path, ok := strings.CutPrefix(name, "Command."); ok {
			list = append(list, path)
		}
	}
	return list
}

// Summary counts the rows by what they say, and the tests that stand behind them.
func Summary(rows []Row) string {
	var applies, part, not, due int
	tests := map[Test]bool{}
	for _, r := range rows {
		switch {
		case r.Is(Applies):
			applies++
		case r.Is(InPart):
			part++
		case r.Is(Not):
			not++
		case r.Is(Due):
			due++
		}
		for _, t := range r.Proof {
			tests[t] = true
		}
	}
	return fmt.Sprintf("%d requirements: %d apply, %d in part, %d not, %d due; %d tests prove them",
		len(rows), applies, part, not, due, len(tests))
}
