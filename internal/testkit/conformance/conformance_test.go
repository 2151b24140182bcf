package conformance

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/requirements.tsv
var requirements string

// TestPage is the check of the real page.
func TestPage(t *testing.T) {
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, wrong := Parse(string(page))
	wrong = append(wrong, Check(rows, Requirements(requirements))...)
	wrong = append(wrong, CheckSource(rows, root)...)
	for _, line := range wrong {
		t.Error("docs/conformance.md: " + line)
	}
	t.Log(Summary(rows))
}

// TestRequirements holds the list of ids against the counts of the specification.
func TestRequirements(t *testing.T) {
	got := map[string]int{}
	list := Requirements(requirements)
	for i, r := range list {
		got[r.ID[:len("REQ-F")]]++
		got[r.Priority]++
		if i > 0 && slices.ContainsFunc(list[:i], func(o Requirement) bool { return o.ID == r.ID }) {
			t.Errorf("%s is there twice", r.ID)
		}
	}
	for key, want := range map[string]int{
		"REQ-F": 78, "REQ-C": 30, "REQ-O": 50, "P0": 51, "P1": 63, "P2": 35,
		"P3": 9,
	} {
		if got[key] != want {
			t.Errorf("%s: %d, want %d", key, got[key], want)
		}
	}
	if len(list) != 158 {
		t.Errorf("%d requirements, want 158", len(list))
	}
}

// TestBadPages holds each check against a small page that it must refuse, and against one that it must not. The first
// lines of a page in testdata/bad say what is to be reported: one "wants: TEXT" for each problem, and nothing else may
// be.
func TestBadPages(t *testing.T) {
	pages, err := filepath.Glob("testdata/bad/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	want := []Requirement{{"REQ-F-001", "P0"}, {"REQ-C-001", "P1"}, {"REQ-O-001", "P2"}}
	for _, file := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rows, wrong := Parse(string(text))
			wrong = append(wrong, Check(rows, want)...)
			wrong = append(wrong, CheckSource(rows, "testdata/module")...)
			compare(t, wrong, wants(string(text)))
		})
	}
}

func wants(page string) []string {
	var list []string
	for line := range strings.Lines(page) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "wants: "); ok {
			list = append(list, text)
		}
	}
	return list
}

// compare wants each text in one line of got, and each line of got to hold one of the texts.
func compare(t *testing.T, got, want []string) {
	t.Helper()
	for _, text := range want {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, text) }) {
			t.Errorf("nothing says %q", text)
		}
	}
	for _, line := range got {
		if !slices.ContainsFunc(want, func(text string) bool { return strings.Contains(line, text) }) {
			t.Errorf("unexpected: %s", line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d problems, want %d", len(got), len(want))
	}
}

func TestCheckRan(t *testing.T) {
	page := "" +
		"| REQ-F-001 | P0 | a | applies | b | `internal/cli/contract.TestA/x`, `internal/cli/contract.TestB` |\n" +
		"| REQ-C-001 | P1 | a | applies | b | `test/walk.TestC` |\n"
	rows, wrong := Parse(page)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	const a, b, c = "omniagent/internal/cli/contract TestA/x ", "omniagent/internal/cli/contract TestB ",
		"omniagent/test/walk TestC "
	for _, tc := range []struct {
		name, report, goos string
		wrong, skips       []string
	}{
		{"all passed", a + "pass\n" + b + "pass\n\n" + c + "pass\n", "linux", nil, nil},
		{"not run", a + "pass\n" + c + "pass\n", "linux", []string{"internal/cli/contract.TestB did not run"}, nil},
		{"nothing ran", "", "linux", []string{"TestA/x did not run", "TestB did not run", "TestC did not run"}, nil},
		{
			"parent alone", "omniagent/internal/cli/contract TestA pass\n" + b + "pass\n" + c + "pass\n", "linux",
			[]string{"TestA/x did not run"},
			nil,
		},
		{
			"other package", "omniagent/internal/sys/audit TestB pass\n" + a + "pass\n" + c + "pass\n", "linux",
			[]string{"TestB did not run"},
			nil,
		},
		{"failed", a + "pass\n" + b + "fail\n" + c + "pass\n", "linux", []string{"TestB failed"}, nil},
		{
			"failed once", a + "pass\n" + b + "fail\n" + b + "pass\n" + c + "pass\n", "linux",
			[]string{"TestB failed"},
			nil,
		},
		{"skipped", a + "pass\n" + b + "skip\n" + c + "pass\n", "linux", []string{"TestB was skipped"}, nil},
		{"skipped once", a + "pass\n" + b + "skip\n" + b + "pass\n" + c + "pass\n", "linux", nil, nil},
		{"skipped elsewhere", a + "pass\n" + b + "skip\n" + c + "pass\n", "darwin", nil, []string{"TestB was skipped"}},
		{"failed elsewhere", a + "pass\n" + b + "fail\n" + c + "pass\n", "darwin", []string{"TestB failed"}, nil},
		{
			"all subtests skipped", a + "pass\n" + b + "pass\n" + c +
				"pass\nomniagent/test/walk TestC/one skip\nomniagent/test/walk TestC/two skip\n", "linux",
			[]string{"TestC was skipped"},
			nil,
		},
		{"some subtests skipped", a + "pass\n" + b + "pass\n" + c +
			"pass\nomniagent/test/walk TestC/one skip\nomniagent/test/walk TestC/two pass\n", "linux", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wrong, skips, err := CheckRan(rows, "omniagent", strings.NewReader(tc.report), tc.goos, never)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, wrong, tc.wrong)
			compare(t, skips, tc.skips)
		})
	}
	for _, bad := range []string{"omniagent/internal/cli/contract TestA\n", "a b ok\n", "=== RUN TestA\nx y pass z\n"} {
		if _, _, err := CheckRan(rows, "omniagent", strings.NewReader(bad), "linux", never); err == nil {
			t.Errorf("a report that cannot be read was read: %q", bad)
		}
	}
}

// never says that no other run has a test.
func never(string) bool { return false }

// TestElsewhere: what another run has need not have run, but must not have failed.
func TestElsewhere(t *testing.T) {
	rows, _ := Parse("| REQ-F-001 | P0 | a | applies | b | `test/walk.TestA/x`, `test/walk.TestB` |\n")
	for report, want := range map[string][]string{
		"": {"TestB did not run"},
		"omniagent/test/walk TestA/x skip\nomniagent/test/walk TestB pass\n": nil,
		"omniagent/test/walk TestA/x fail\nomniagent/test/walk TestB skip\n": {"TestA/x failed", "TestB was skipped"},
	} {
		wrong, _, err := CheckRan(rows, "omniagent", strings.NewReader(report), "linux",
			func(test string) bool { return test == "TestA/x" })
		if err != nil {
			t.Fatal(err)
		}
		compare(t, wrong, want)
	}
}

func TestParseTest(t *testing.T) {
	for text, want := range map[string]Test{
		"internal/cli/contract.TestA":       {"internal/cli/contract", "TestA", ""},
		"internal/cli/contract.TestA/b/c.d": {"internal/cli/contract", "TestA", "b/c.d"},
		"internal/kit/text.FuzzClean":       {"internal/kit/text", "FuzzClean", ""},
	} {
		got, err := ParseTest(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "TestA", "internal/cli/contract", "internal/cli/contract.Command", ".TestA"} {
		if _, err := ParseTest(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestSummary(t *testing.T) {
	rows, _ := Parse("" +
		"| REQ-F-001 | P0 | a | applies | b | `x.TestA`, `x.TestB` |\n" +
		"| REQ-F-002 | P0 | a | in part | b | `x.TestA` |\n" +
		"| REQ-F-003 | P0 | a | not | b |  |\n" +
		"| REQ-F-004 | P0 | a | due with the shim | `Command.Network` | `x.TestA/c` |\n")
	if got, want := Summary(rows), "4 requirements: 1 apply, 1 in part, 1 not, 1 due; 3 tests prove them"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
