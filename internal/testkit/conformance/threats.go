package conformance

import (
	"fmt"
	"strings"
)

// NotBuilt is what the last cell of a claim says that belongs to a part which does not exist.
const NotBuilt = "not built yet"

// Claims reads the table of docs/threats.md, docs/orchestration.md or docs/eidolon.md, and what is wrong with it. A row
// has four cells: a class of attack or a requirement, what is done about it, the tests, and what remains. It has no
// test only where a part is not built yet.
func Claims(page string) ([]Row, []string) {
	var rows []Row
	var wrong []string
	n, seen := 0, map[string]bool{}
	for line := range strings.Lines(page) {
		n++
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Class |") ||
			strings.HasPrefix(line, "| Requirement |") || strings.HasPrefix(line, "| Scenario |") {
			continue
		}
		row, err := parseClaim(line)
		if err == nil && seen[row.ID] {
			err = fmt.Errorf("%s is there twice", row.ID)
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("line %d: %v", n, err))
			continue
		}
		seen[row.ID], row.Line = true, n
		rows = append(rows, row)
	}
	if len(rows)+len(wrong) == 0 {
		wrong = append(wrong, "there are no rows")
	}
	return rows, wrong
}

func parseClaim(line string) (Row, error) {
	const bar = "\x00" // an escaped bar is text
	cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, bar), "|"), "|")
	if len(cells) != 4 {
		return Row{}, fmt.Errorf("a row has 4 cells (subject, what is done, tests, what remains), this one %d",
			len(cells))
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], bar, "|"))
	}
	row := Row{ID: cells[0], How: cells[1]}
	names, rest := quoted(cells[2])
	switch {
	case cells[0] == "" || cells[1] == "" || cells[3] == "":
		return row, fmt.Errorf("%s: a cell is empty", row.ID)
	case strings.Trim(rest, ", –") != "":
		return row, fmt.Errorf("%s: the tests have text outside backticks: %s", row.ID, strings.TrimSpace(rest))
	case len(names) == 0 && !strings.Contains(cells[3], NotBuilt):
		return row, fmt.Errorf("%s: no test shows it, and it is not said to be %s", row.ID, NotBuilt)
	}
	for _, name := range names {
		test, err := ParseTest(name)
		if err != nil {
			return row, fmt.Errorf("%s: %w", row.ID, err)
		}
		row.Proof = append(row.Proof, test)
	}
	return row, nil
}

// CheckTests looks for each test that a row names in the source below root.
func CheckTests(rows []Row, root string) []string {
	var wrong []string
	source := sources{root: root, tests: map[string]map[string]testFunc{}}
	for _, row := range rows {
		for _, test := range row.Proof {
			if why := source.missing(test); why != "" {
				wrong = append(wrong, fmt.Sprintf("line %d: %s: %s", row.Line, row.ID, why))
			}
		}
	}
	return wrong
}
