package hermetic

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestParts: each test is in one part of several, and in as many rounds each part had its turn.
func TestParts(t *testing.T) {
	for _, name := range []string{"TestA", "TestB", "TestLaws", "TestFindings"} {
		var in []string
		for round := 20_000; round < 20_003; round++ {
			if p := PartOf(round, 3); p.Has(name) {
				in = append(in, p.String())
			}
		}
		if len(in) != 1 {
			t.Errorf("%s is in the parts %q", name, in)
		}
		if p := (Part{}); !p.Has(name) || !p.Has(name+"/sub") {
			t.Errorf("%s is not in all tests", name)
		}
		if p := (Part{1, 1}); !p.Has(name + "/sub") {
			t.Errorf("%s is not in the only part", name)
		}
	}
}

func TestParsePart(t *testing.T) {
	for text, want := range map[string]Part{
		"": {}, "1": {}, "matrices": {}, "1/1": {1, 1}, "2/3": {2, 3},
	} {
		if got, err := ParsePart(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"/", "0/3", "4/3", "1/0", "a/b", "1/2/3", "1/2x", "-1/3", "01/3"} {
		if got, err := ParsePart(text); err == nil || !strings.Contains(err.Error(), "not a part such as 2/3") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestTestsOf: the parts of a package have all its tests, each once.
func TestTestsOf(t *testing.T) {
	dir := t.TempDir()
	text := "package p\n\nfunc TestMain(m *testing.M) {}\n\nfunc TestA(t *testing.T) {\n}\n\n" +
		"func TestB(t *testing.T) {}\nfunc help() {}\n\nfunc TestC(tt *testing.T) {}\n"
	if err := os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for n := range 3 {
		names = append(names, PartOf(n, 3).testsOf(dir)...)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"TestA", "TestB", "TestC"}) {
		t.Errorf("got %q", names)
	}
}
