package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestThreats is the check of the real page.
func TestThreats(t *testing.T) { claims(t, "threats.md") }

// claims checks a page and returns its rows.
func claims(t *testing.T, name string) []Row {
	t.Helper()
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	rows, wrong := Claims(string(page))
	for _, line := range append(wrong, CheckTests(rows, root)...) {
		t.Error("docs/" + name + ": " + line)
	}
	tests := 0
	for _, row := range rows {
		tests += len(row.Proof)
	}
	t.Logf("%d rows, %d tests named", len(rows), tests)
	return rows
}

// TestOrchestration: docs/orchestration.md has a row for each requirement of PRD-007, in its order, and no other.
func TestOrchestration(t *testing.T) {
	var want, got []string
	for _, part := range []struct{ name, numbers string }{
		{"Goal", "1 2 3 4 5"},
		{"Architecture", "A B C D E"},
		{"Security", "1 2 3 4 5"},
		{"UX", "1 2 3 4"},
		{"Phase", "1.1 1.2 1.3 1.4 2.1 2.2 2.3 3.1 3.2 3.3"},
		{"Criterion", "1 2 3 4 5"},
		{"Scenario", "1 2"},
	} {
		for number := range strings.FieldsSeq(part.numbers) {
			want = append(want, part.name+" "+number)
		}
	}
	for _, row := range claims(t, "orchestration.md") {
		id, _, _ := strings.Cut(row.ID, ":")
		got = append(got, id)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are\n%q\nnot\n%q", got, want)
	}
}

// TestEidolon: docs/eidolon.md has a row for each scenario of the specification of Eidolon, and no other.
func TestEidolon(t *testing.T) {
	var want, got []string
	for n := range 23 {
		want = append(want, fmt.Sprintf("S%d", n+1))
	}
	for _, row := range claims(t, "eidolon.md") {
		id, _, _ := strings.Cut(row.ID, ":")
		got = append(got, id)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are\n%q\nnot\n%q", got, want)
	}
}

// TestBadClaims holds each check against a row that it must refuse, and against one that it must not.
func TestBadClaims(t *testing.T) {
	const head = "# Threats\n\n| Class | What stands against it | Tests | What remains |\n|---|---|---|---|\n"
	for row, want := range map[string][]string{
		"| a | b | `internal/cli/contract.TestPlain` | – |":              nil,
		"| a | b \\| c | `internal/cli/contract.TestLiterals/one` | d |": nil,
		"| a | b | – | not built yet |":                                  nil,
		"| a | b | – | – |":                                              {"no test shows it"},
		"| a | b | `internal/cli/contract.TestPlain` |":                  {"this one 3"},
		"| a |  | `internal/cli/contract.TestPlain` | – |":               {"a cell is empty"},
		"| a | b | see `internal/cli/contract.TestPlain` | – |": {
			"text outside backticks",
		},
		"| a | b | `TestA` | – |": {"is not of the form"},
		"| a | b | `internal/cli/contract.TestGone`, `internal/gone.TestA` | – |": {
			"internal/cli/contract.TestGone does not exist", "internal/gone.TestA does not exist",
		},
		"| a | b | `internal/cli/contract.TestPlain` | – |\n| a | b | `internal/x.TestA` | – |\n": {"a is there twice"},
		"": {"there are no rows"},
	} {
		rows, wrong := Claims(head + row)
		compare(t, append(wrong, CheckTests(rows, filepath.Join("testdata", "module"))...), want)
	}
}
