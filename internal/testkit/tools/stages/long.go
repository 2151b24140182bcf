package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// reportLong writes the row of a stage into the report of the long runs.
func (r *runner) reportLong(name, result, took string) {
	const page = "docs/evaluation/long.md"
	describe := r.program("git", "describe", "--always", "--dirty", "--exclude=*")
	describe.Stderr = nil
	commit, err := r.output(describe, false)
	if err != nil {
		commit = []byte("unknown")
	}
	row := fmt.Sprintf("| %s | %s | %s | %s | %s | %d |\n", name, result, took, line(commit),
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU())
	text, err := os.ReadFile(page)
	if err == nil { // the page has a table
		err = os.WriteFile(page, []byte(withRow(string(text), name, row)), 0o644)
	}
	if err != nil {
		fmt.Fprintln(r.out, "note  the row of this stage is not written:", err)
	}
}

// withRow returns a page with a row in its table, in the place of the one that has its name or at the end of the table.
func withRow(page, name, row string) string {
	if old := regexp.MustCompile(`(?m)^\| ` + name + ` \|.*\n`); old.MatchString(page) {
		return old.ReplaceAllLiteralString(page, row)
	}
	end := strings.LastIndex(page, "|\n") + len("|\n")
	return page[:end] + row + page[end:]
}
