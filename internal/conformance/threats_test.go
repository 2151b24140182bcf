package conformance

import (
	"os"
	"path/filepath"
	"testing"
)

// TestThreats is the check of the real page.
func TestThreats(t *testing.T) {
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "threats.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, wrong := Threats(string(page))
	for _, line := range append(wrong, CheckTests(rows, root)...) {
		t.Error("docs/threats.md: " + line)
	}
	tests := 0
	for _, row := range rows {
		tests += len(row.Proof)
	}
	t.Logf("%d classes, %d tests named", len(rows), tests)
}

// TestBadThreats holds each check against a row that it must refuse, and against one that it must not.
func TestBadThreats(t *testing.T) {
	const head = "# Threats\n\n| Class | What stands against it | Tests | What remains |\n|---|---|---|---|\n"
	for row, want := range map[string][]string{
		"| a | b | `internal/contract.TestPlain` | – |":              nil,
		"| a | b \\| c | `internal/contract.TestLiterals/one` | d |": nil,
		"| a | b | – | not built yet |":                              nil,
		"| a | b | – | – |":                                          {"no test attacks it"},
		"| a | b | `internal/contract.TestPlain` |":                  {"this one 3"},
		"| a |  | `internal/contract.TestPlain` | – |":               {"a cell is empty"},
		"| a | b | see `internal/contract.TestPlain` | – |": {
			"text outside backticks",
		},
		"| a | b | `TestA` | – |": {"is not of the form"},
		"| a | b | `internal/contract.TestGone`, `internal/gone.TestA` | – |": {
			"internal/contract.TestGone does not exist", "internal/gone.TestA does not exist",
		},
		"| a | b | `internal/contract.TestPlain` | – |\n| a | b | `internal/x.TestA` | – |\n": {"a is there twice"},
		"": {"there are no rows"},
	} {
		rows, wrong := Threats(head + row)
		compare(t, append(wrong, CheckTests(rows, filepath.Join("testdata", "module"))...), want)
	}
}
