package hermetic

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Part is one of several parts of the tests that take long, which take turns: scripts/test runs one a day. The zero
// value has all tests.
type Part struct{ number, of int }

// ParsePart reads a value of OMNIAGENT_WHOLE. Only one such as 2/3 is a part; the others are all tests.
func ParsePart(text string) (Part, error) {
	if !strings.Contains(text, "/") {
		return Part{}, nil
	}
	var p Part
	_, err := fmt.Sscanf(text, "%d/%d", &p.number, &p.of)
	if err != nil || p.of < 1 || p.number < 1 || p.number > p.of || p.String() != text {
		return Part{}, fmt.Errorf("%s is %q, not a part such as 2/3", wholeVariable, text)
	}
	return p, nil
}

// PartOf is the part whose turn it is in a round.
func PartOf(round, of int) Part { return Part{round%of + 1, of} }

func (p Part) String() string { return fmt.Sprintf("%d/%d", p.number, p.of) }

// Has reports whether a test or subtest may run: it and all that it is a part of, down from the test, are in the part.
func (p Part) Has(test string) bool {
	for i, c := range test {
		if c == '/' && !p.has(test[:i]) {
			return false
		}
	}
	return p.has(test)
}

// has reports whether a name is in the part.
func (p Part) has(name string) bool {
	if p.of == 0 {
		return true
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return int(sum.Sum32()%uint32(p.of)) == p.number-1
}

// topOf is the name of the test that a subtest belongs to.
func topOf(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

// part is the part that this process runs.
func part() Part {
	p, err := ParsePart(os.Getenv(wholeVariable))
	if err != nil {
		panic(err)
	}
	return p
}

// testsOf returns the names of the tests of the package in a folder, for any system, that are in the part.
func (p Part) testsOf(dir string) (names []string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	begin := regexp.MustCompile(`(?m)^func (Test\w*)\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err) // a test that is not found would be left out
		}
		for _, m := range begin.FindAllSubmatch(text, -1) {
			if name := string(m[1]); name != "TestMain" && p.has(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
