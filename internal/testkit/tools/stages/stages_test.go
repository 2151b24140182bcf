package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestChoiceOfStages(t *testing.T) {
	t.Chdir("../../../..") // the root of the module
	tests := []struct {
		args, environment string
		wants             []string // of lint, kills and fuzz
		err               string
	}{
		{args: "", wants: []string{"lint", "kills", "fuzz"}},
		{args: "kills fuzz", wants: []string{"kills", "fuzz"}},
		{args: "--long fuzz", wants: []string{"fuzz"}},
		{args: "--quick kit/text", wants: nil},
		{args: "speed", err: "unknown argument speed: the stages are lint build test kills"},
		{args: "lint --long", err: "unknown argument --long"},
		{args: "--quick lint", err: "there is no folder internal/lint"},
		{args: "--quick kit/text/text.go", err: "there is no folder"},
		{args: "kills", environment: "KILLS=many", err: `KILLS is "many", not a number`},
		{args: "kills", environment: "FLOOD=-1", err: `FLOOD is "-1", not a number`},
	}
	for _, tt := range tests {
		t.Run(tt.args+" "+tt.environment, func(t *testing.T) {
			variable, value, _ := strings.Cut(tt.environment, "=")
			c, err := parse(strings.Fields(tt.args), func(name string) string {
				if name == variable {
					return value
				}
				return ""
			})
			if tt.err != "" || err != nil {
				if tt.err == "" || err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			var wanted []string
			for _, name := range []string{"lint", "kills", "fuzz"} {
				if c.wants(name) {
					wanted = append(wanted, name)
				}
			}
			if !slices.Equal(wanted, tt.wants) {
				t.Errorf("wants %q, not %q", wanted, tt.wants)
			}
		})
	}
}

// TestAmounts: a variable counts more than --long, and --long more than what is usual.
func TestAmounts(t *testing.T) {
	getenv := func(name string) string { return map[string]string{"KILLS": "7"}[name] }
	for _, long := range []bool{false, true} {
		got, err := amountsOf(long, getenv)
		flood, scripts := "20", ""
		if long {
			flood, scripts = "100", "1000"
		}
		if err != nil || got["KILLS"] != "7" || got["FLOOD"] != flood || got["UNDO_SCRIPTS"] != scripts {
			t.Errorf("long %v: %q, %v", long, got, err)
		}
	}
}

// TestUsageNamesAll: --help names every stage and every variable.
func TestUsageNamesAll(t *testing.T) {
	var names []string
	for _, s := range stages(nil) {
		names = append(names, s.name)
	}
	amounts, err := amountsOf(false, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for name := range amounts {
		names = append(names, name)
	}
	for _, name := range names {
		if !strings.Contains(usage, name) {
			t.Errorf("--help does not name %s", name)
		}
	}
}

func TestInnermost(t *testing.T) {
	record := "p TestA/sub fail\np TestA fail\np TestAB fail\np TestB/x/y fail\np TestB/x fail\np TestB fail\n"
	want := []string{"TestA/sub", "TestAB", "TestB/x/y"}
	if got := innermost([]byte(record)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := only("TestA/sub[1].x"), `^TestA$/^sub\[1\]\.x$`; got != want {
		t.Errorf("the pattern is %s, want %s", got, want)
	}
}

func TestFailures(t *testing.T) {
	record := []byte("p TestA pass\np Testfail skip\np TestB fail\n")
	if got := string(failures(record)); got != "p TestB fail\n" {
		t.Errorf("failures: %q", got)
	}
	if got := string(others(record)); got != "p TestA pass\np Testfail skip\n" {
		t.Errorf("others: %q", got)
	}
}

func TestFuzzTargets(t *testing.T) {
	list := "FuzzA\nFuzzB\nok  \tm/a\t0.1s\n?   \tm/b\t[no test files]\nok  \tm/c\t0.1s\nFuzzD\nok  \tm/d\t(cached)\n"
	want := [][2]string{{"m/a", "FuzzA"}, {"m/a", "FuzzB"}, {"m/d", "FuzzD"}}
	if got := fuzzTargets(list); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRowOfALongRun(t *testing.T) {
	page := "# Page\n\n| Stage | Result |\n|---|---|\n| kills | ok |\n\nEnd.\n"
	for name, want := range map[string]string{
		"kills": "# Page\n\n| Stage | Result |\n|---|---|\n| kills | new |\n\nEnd.\n",
		"fuzz":  "# Page\n\n| Stage | Result |\n|---|---|\n| kills | ok |\n| fuzz | new |\n\nEnd.\n",
	} {
		if got := withRow(page, name, "| "+name+" | new |\n"); got != want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestLongTests: a test that calls hermetic.Long or hermetic.Times is found by its name.
func TestLongTests(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "package p\n\nfunc TestA(t *testing.T) {\n\thermetic.Long(t)\n}\n\nfunc helper() {}\n\n" +
		"func TestB(t *testing.T) {}\n\nfunc TestC(t *testing.T) {\n\tfor range hermetic.Times(9, 1) {\n\t}\n}\n"
	if err := os.WriteFile("p_test.go", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("q", 0o755); err != nil {
		t.Fatal(err)
	}
	text = "package q\n\nfunc f() {\n\tgo f()\n}\n"
	if err := os.WriteFile(filepath.Join("q", "q.go"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if names, called := longTests("omniagent"); !called || !slices.Equal(names, []string{"TestA", "TestC"}) {
		t.Errorf("got %q, %v", names, called)
	}
	if names, called := longTests("omniagent/q"); called || names != nil {
		t.Errorf("got %q, %v", names, called)
	}
	if startsGoroutines("omniagent") || !startsGoroutines("omniagent/q") {
		t.Error("only q starts goroutines")
	}
}

// TestChoiceOfTests: of the tests that take long, a part runs whose turn it is, unless all are asked for.
func TestChoiceOfTests(t *testing.T) {
	t.Chdir("../../../..")
	for _, tt := range []struct {
		args            []string
		variables       map[string]string
		want, complaint string
	}{
		{nil, map[string]string{"OMNIAGENT_ROUND": "3"}, "1/3", ""},
		{[]string{"test"}, map[string]string{"OMNIAGENT_ROUND": "5"}, "3/3", ""},
		{nil, map[string]string{"OMNIAGENT_WHOLE": "2/5"}, "2/5", ""},
		{nil, map[string]string{"OMNIAGENT_WHOLE": "1"}, "1", ""},
		{[]string{"--whole", "test"}, nil, "1", ""},
		{[]string{"--long"}, nil, "matrices", ""},
		{nil, map[string]string{"OMNIAGENT_WHOLE": "4/3"}, "", "not a part such as 2/3"},
		{nil, map[string]string{"OMNIAGENT_ROUND": "today"}, "", "not a number"},
	} {
		c, err := parse(tt.args, func(name string) string { return tt.variables[name] })
		switch {
		case tt.complaint != "" && (err == nil || !strings.Contains(err.Error(), tt.complaint)):
			t.Errorf("%q %v: error %v, want %q", tt.args, tt.variables, err, tt.complaint)
		case tt.complaint == "" && (err != nil || c.amounts["OMNIAGENT_WHOLE"] != tt.want):
			t.Errorf("%q %v: %q, %v, want %q", tt.args, tt.variables, c.amounts["OMNIAGENT_WHOLE"], err, tt.want)
		}
	}
}
