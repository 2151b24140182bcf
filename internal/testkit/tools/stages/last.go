package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func (r *runner) conformance() bool {
	if r.ran["test"] == nil {
		fmt.Fprintln(r.out,
			"FAIL  no list of the tests that ran: they run before, in the stages test, kills, agents and hosts")
		return false
	}
	file := filepath.Join(r.tmp, "ran")
	ran := bytes.Join([][]byte{r.ran["test"], r.ran["kills"], r.ran["agents"], r.ran["hosts"]}, nil)
	if err := os.WriteFile(file, ran, 0o644); err != nil {
		return r.fails("conformance", "", nil, err)
	}
	return r.do(r.program("go", "run", "./internal/testkit/conformance/verify", "-ran", file,
		"-whole", r.amounts["OMNIAGENT_WHOLE"]))
}

// packages builds what is handed out, twice, and installs it as people do.
func (r *runner) packages() bool {
	folder := filepath.Join(r.tmp, "packages")
	return r.do(r.program("scripts/packages", folder)) &&
		r.tests("packages", with(r.goTest("./test/packages"),
			"OMNIAGENT_TEST_DEBIAN="+r.debian, "OMNIAGENT_TEST_PACKAGES="+folder))
}

func (r *runner) fuzz() bool {
	if r.amounts["FUZZTIME"] == "0" {
		fmt.Fprintln(r.out, "skip  only the seeds ran, with the tests; FUZZTIME=30s ./scripts/test fuzzes")
		return true
	}
	text, err := r.output(r.program("go", "test", "-list", "^Fuzz", "./..."), true)
	if err != nil {
		return r.fails("go test -list", "", text, err)
	}
	targets := fuzzTargets(string(text))
	if len(targets) == 0 {
		fmt.Fprintln(r.out, "skip  there is no fuzz target")
	}
	ok := true
	for _, t := range targets {
		ok = r.fuzzTarget(t[0], t[1]) && ok
	}
	return ok
}

// fuzzTargets returns packages and their targets. In the list those of a package come first, each on a line, then the
// line "ok package time".
func fuzzTargets(list string) (targets [][2]string) {
	var names []string
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "Fuzz"):
			names = append(names, fields[0])
		case strings.HasPrefix(line, "ok") && len(fields) > 1:
			for _, name := range names {
				targets = append(targets, [2]string{fields[1], name})
			}
			names = nil
		}
	}
	return targets
}

// fuzzTarget runs one target. A fuzzing process that is slow to stop when the time is up makes go test fail with
// "context deadline exceeded" and no input; only that is tried a second time.
func (r *runner) fuzzTarget(pkg, target string) bool {
	name := pkg + " " + target
	for try := 1; ; try++ {
		text, err := r.output(r.program("go", "test", "-run", "^$", "-fuzz", "^"+target+"$",
			"-fuzztime", r.amounts["FUZZTIME"], pkg), true)
		if err == nil {
			fmt.Fprintf(r.out, "ok    %s\n", name)
			return true
		}
		late := bytes.Contains(text, []byte("context deadline exceeded"))
		if try == 2 || !late || bytes.Contains(text, []byte("Failing input written")) {
			return r.fails(name, "", text, err)
		}
		fmt.Fprintf(r.out, "again %s: the time was up, attempt %d\n", name, try)
	}
}
