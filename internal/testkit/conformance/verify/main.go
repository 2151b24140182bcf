// Command verify compares docs/conformance.md, docs/threats.md and docs/orchestration.md with a test run: every test
// that a row names must have run and passed.
//
//	go run ./internal/testkit/conformance/verify -ran FILE
//
// FILE has a line for each test and subtest that ran: its package's import path, its name, and pass, fail or skip. The
// last line on standard output is the summary. With -whole K/N, a part as in OMNIAGENT_WHOLE, a test of another part
// need not have run; how many did not is said. It ends with 1 if a row's test did not pass, with 2 if the page or the
// report cannot be read.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"omniagent/internal/testkit/conformance"
	"omniagent/internal/testkit/hermetic"
)

func main() {
	os.Exit(run(os.Args[1:], runtime.GOOS, os.Stdout, os.Stderr))
}

func run(args []string, goos string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.SetOutput(stderr)
	report := flags.String("ran", "", "report of the test run: lines of package, test, pass|fail|skip")
	page := flags.String("page", "",
		"the one table to look at (default: conformance.md, threats.md and orchestration.md in docs of this module)")
	whole := flags.String("whole", "", "OMNIAGENT_WHOLE of the test run")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var wrong, skips []string
	var summary string
	later := map[string]bool{}
	part, err := hermetic.ParsePart(*whole)
	if err == nil {
		wrong, skips, summary, err = verify(*page, *report, goos, func(test string) bool {
			if !part.Has(test) {
				later[test] = true
			}
			return later[test]
		})
	}
	if err != nil {
		fmt.Fprintln(stderr, "verify:", err)
		return 2
	}
	for _, line := range skips {
		fmt.Fprintln(stdout, "skipped on", goos+":", line)
	}
	for _, line := range wrong {
		fmt.Fprintln(stderr, "verify:", line)
	}
	if len(later) > 0 {
		fmt.Fprintf(stdout, "%d tests are in other parts than %s\n", len(later), part)
	}
	fmt.Fprintln(stdout, summary)
	if len(wrong) > 0 {
		return 1
	}
	return 0
}

func verify(page, report, goos string, elsewhere func(test string) bool) (
	wrong, skips []string, summary string, err error,
) {
	if report == "" {
		return nil, nil, "", fmt.Errorf("give the report of the test run with -ran FILE")
	}
	var claims []conformance.Row
	if page == "" {
		root, err := conformance.Root(".")
		if err != nil {
			return nil, nil, "", err
		}
		page = filepath.Join(root, "docs", "conformance.md")
		for _, name := range []string{"threats.md", "orchestration.md"} {
			text, err := os.ReadFile(filepath.Join(root, "docs", name))
			if err != nil {
				return nil, nil, "", err
			}
			rows, torn := conformance.Claims(string(text))
			claims, wrong = append(claims, rows...), append(wrong, torn...)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, nil, "", err
	}
	rows, torn := conformance.Parse(string(text))
	if len(rows) == 0 {
		return nil, nil, "", fmt.Errorf("%s has no rows", page)
	}
	ran, err := os.ReadFile(report)
	if err != nil {
		return nil, nil, "", err
	}
	unproven, skips, err := conformance.CheckRan(rows, "omniagent", bytes.NewReader(ran), goos, elsewhere)
	if err != nil {
		return nil, nil, "", err
	}
	// What a kernel does not have cannot be attacked on it, and no agent may be installed, so that a skip is only told.
	unattacked, others, err := conformance.CheckRan(claims, "omniagent", bytes.NewReader(ran), "any",
		elsewhere)
	return slices.Concat(wrong, torn, unproven, unattacked), slices.Concat(skips, others), conformance.Summary(rows),
		err
}
