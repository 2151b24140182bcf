// Command testreport turns the stream of "go test -json" on its standard input into what a person wants to read: one
// line a package, the whole output of every failed test, every skipped test with its reason, and at the end the counts
// alone on a line. Each test and each subtest counts as one; a package that fails without a failed test counts as one
// failure.
//
// It promises that a failure is never lost: a test that began and did not end is a failure, so is a build that broke
// and a line that is not an event. It refuses an empty stream. With -record FILE it also stores one line for each test
// that ran:
//
//	import/path TestName/subtest pass|fail|skip
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	record := flag.String("record", "", "store the result of each test in `FILE`")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "testreport: it reads standard input and takes no arguments")
		os.Exit(2)
	}
	failed, err := run(os.Stdin, os.Stdout, *record)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}
