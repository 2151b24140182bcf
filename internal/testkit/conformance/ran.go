package conformance

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// The outcomes of a test.
const (
	passed  = "pass"
	failed  = "fail"
	skipped = "skip"
)

// CheckRan compares the rows with a report of what ran: lines of package, test and pass, fail or skip, where the
// package is an import path of the module. A named test must have passed. On linux a skipped one counts as not run;
// elsewhere it is listed in skips. A test all of whose subtests were skipped was skipped, whatever is reported of it.
// One that another run has, by its name, need not have run in this one.
func CheckRan(rows []Row, module string, report io.Reader, goos string, elsewhere func(test string) bool) (
	wrong, skips []string, err error,
) {
	ran := map[string]string{}
	lines := bufio.NewScanner(report)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0:
			continue
		case len(fields) != 3 || fields[2] != passed && fields[2] != failed && fields[2] != skipped:
			return nil, nil, fmt.Errorf("line %d of the report is not `package test pass|fail|skip`: %s", n,
				lines.Text())
		}
		key := fields[0] + " " + fields[1]
		ran[key] = worse(ran[key], fields[2])
	}
	if err := lines.Err(); err != nil {
		return nil, nil, err
	}
	emptied := hollow(ran)
	seen := map[Test]bool{}
	for _, row := range rows {
		for _, test := range row.Proof {
			if seen[test] {
				continue
			}
			seen[test] = true
			key := module + "/" + test.Package + " " + test.Name()
			state := ran[key]
			if state == passed && emptied[key] {
				state = skipped
			}
			switch {
			case state == passed, state != failed && elsewhere(test.Name()):
			case state == skipped && goos != "linux":
				skips = append(skips, fmt.Sprintf("%s: %s was skipped", row.ID, test))
			case state == skipped:
				wrong = append(wrong, fmt.Sprintf("%s: %s was skipped, so it shows nothing", row.ID, test))
			case state == failed:
				wrong = append(wrong, fmt.Sprintf("%s: %s failed", row.ID, test))
			default:
				wrong = append(wrong, fmt.Sprintf("%s: %s did not run", row.ID, test))
			}
		}
	}
	return wrong, skips, nil
}

// worse joins two outcomes of one test, which may run more than once: a failure stays, a skip is made good by a pass.
func worse(a, b string) string {
	for _, state := range []string{failed, passed, skipped} {
		if a == state || b == state {
			return state
		}
	}
	return b
}

// hollow are the tests whose subtests, at least one, were all skipped.
func hollow(ran map[string]string) map[string]bool {
	empty := map[string]bool{}
	for key, state := range ran {
		for i := strings.LastIndexByte(key, '/'); i > strings.IndexByte(key, ' '); i = strings.LastIndexByte(key[:i],
			'/') {
			above := key[:i]
			was, known := empty[above]
			empty[above] = (was || !known) && state == skipped
		}
	}
	return empty
}
