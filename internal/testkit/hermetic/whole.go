package hermetic

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// wholeVariable makes go test run every test. Set to "matrices" it also makes all combinations of what a test varies;
// set to a part such as 2/3, only the tests that take long of that part run. See Part.
const wholeVariable = "OMNIAGENT_WHOLE"

// Thorough reports whether tests that take long run: OMNIAGENT_WHOLE is set, as scripts/test does, or -run names tests.
// With -short they never do.
func Thorough() bool {
	return !testing.Short() && (os.Getenv(wholeVariable) != "" || given("test.run"))
}

// Matrices reports whether a test makes all combinations of what it varies, as scripts/test --long has it. Each in turn
// is enough for every day.
func Matrices() bool { return os.Getenv(wholeVariable) == "matrices" }

// Long skips a test that takes long: it starts very many processes, or waits for time. The race detector makes starting
// a process several times slower, so scripts/test runs what calls Long or Times without it. It finds the calls in the
// test functions themselves.
func Long(t testing.TB) {
	t.Helper()
	longOf(t, topOf(t.Name()))
}

// LongAlone is Long for a subtest that has a part of its own, as if it were a test. Sample does not know of it.
func LongAlone(t testing.TB) {
	t.Helper()
	longOf(t, t.Name())
}

func longOf(t testing.TB, name string) {
	t.Helper()
	switch own := part(); {
	case !Thorough():
		t.Skip("it takes long: OMNIAGENT_WHOLE=1 go test runs it, and so does scripts/test --whole")
	case !given("test.run") && !own.has(name):
		t.Skipf("it takes long, and is not in part %s: OMNIAGENT_WHOLE=1 go test runs it, and so does "+
			"scripts/test --whole", own)
	}
}

// Times is how often a test tries what differs from time to time: few times where Long skips a test.
func Times(whole, few int) int {
	if Thorough() {
		return whole
	}
	return few
}

// Sample runs only the named tests of a suite that takes long, where Long skips a test, and those of the part if there
// is one. With them runs TestSources, which keeps go test from giving a cached result after a change of the program.
func Sample(m *testing.M, names ...string) int {
	flag.Parse()
	own := part()
	if given("test.run") || given("test.bench") || given("test.list") || Thorough() && own.of == 0 {
		return m.Run()
	}
	if Thorough() {
		names = append(names, own.testsOf(".")...)
		fmt.Printf("only part %s: OMNIAGENT_WHOLE=1 go test runs all, and so does scripts/test --whole\n", own)
	} else {
		fmt.Printf("only %s: OMNIAGENT_WHOLE=1 go test runs all, and so does scripts/test --whole\n",
			strings.Join(names, ", "))
	}
	_ = flag.Set("test.run", "^(TestSources|"+strings.Join(names, "|")+")$")
	return m.Run()
}

// given reports whether the command line sets a flag.
func given(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// Often is how often a test tries what depends on the moment, or for how many seconds: the number in an environment
// variable, or usual if it is not set. With 0 the test is skipped: scripts/test sets 0 if its stage kills runs it.
func Often(t testing.TB, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 0:
		t.Fatalf("%s is %q, not a number", variable, text)
	case n == 0:
		t.Skipf("%s is 0: the stage kills of scripts/test runs it", variable)
	}
	return n
}
