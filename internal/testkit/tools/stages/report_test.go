package main

import (
	"strings"
	"testing"
)

// stream builds events in short form: "action package test output", "." for an empty field.
func stream(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		f := strings.SplitN(line, " ", 4)
		b.WriteString(`{"Action":"` + f[0] + `","Package":"` + f[1] + `"`)
		if len(f) > 2 && f[2] != "." {
			b.WriteString(`,"Test":"` + f[2] + `"`)
		}
		if len(f) > 3 {
			b.WriteString(`,"Output":"` + f[3] + `\n"`)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func TestReport(t *testing.T) {
	tests := []struct {
		name, in, out, record string
		failed                bool
	}{
		{
			name: "pass, skip and fail",
			in: stream(
				"start m/a", "run m/a TestOne", "run m/a TestOne/sub", "output m/a TestOne/sub quiet",
				"pass m/a TestOne/sub",
				"pass m/a TestOne", "run m/a TestTwo", "output m/a TestTwo === RUN   TestTwo",
				"output m/a TestTwo     a_test.go:3: needs a kernel",
				"output m/a TestTwo --- SKIP: TestTwo (0.00s)", "skip m/a TestTwo", "output m/a . PASS", "pass m/a",
				"start m/b", "run m/b TestBad", "output m/b TestBad     b_test.go:9: got 1, want 2", "fail m/b TestBad",
				"output m/b . FAIL", "fail m/b",
				"start m/c", "output m/c . ?   m/c [no test files]", "skip m/c",
			),
			out: `skip  m/a TestTwo: a_test.go:3: needs a kernel
ok    m/a (0.0s, 3 tests)
FAIL  m/b TestBad
          b_test.go:9: got 1, want 2
FAIL  m/b (0.0s)
      FAIL
-     m/c: no tests
2 passed, 1 failed, 1 skipped
`,
			record: "m/a TestOne pass\nm/a TestOne/sub pass\nm/a TestTwo skip\nm/b TestBad fail\n",
			failed: true,
		},
		{
			name: "a package that fails without a failed test",
			in:   stream("start m/a", "run m/a TestOne", "pass m/a TestOne", "output m/a . exit status 3", "fail m/a"),
			out: `FAIL  m/a (0.0s)
      exit status 3
1 passed, 1 failed, 0 skipped
`,
			record: "m/a TestOne pass\n",
			failed: true,
		},
		{
			name: "a test that does not end, in a package that does not end",
			in:   stream("start m/a", "run m/a TestOne", "output m/a TestOne last words"),
			out: `FAIL  m/a TestOne
      last words
          it began and did not end
FAIL  m/a (0.0s)
0 passed, 1 failed, 0 skipped
`,
			record: "m/a TestOne fail\n",
			failed: true,
		},
		{
			name: "a build that breaks is printed once",
			in: `{"ImportPath":"m/x","Action":"build-output","Output":"x.go:1:1: broken\n"}
{"ImportPath":"m/x","Action":"build-fail"}
{"Action":"fail","Package":"m/a","FailedBuild":"m/x"}
{"Action":"fail","Package":"m/b","FailedBuild":"m/x"}
`,
			out: `FAIL  m/a (0.0s)
      x.go:1:1: broken
FAIL  m/b (0.0s)
0 passed, 2 failed, 0 skipped
`,
			failed: true,
		},
		{
			name:   "a line that is not an event",
			in:     "panic: lost\n" + stream("start m/a", "run m/a TestOne", "pass m/a TestOne", "pass m/a"),
			out:    "FAIL  not an event: panic: lost\nok    m/a (0.0s, 1 tests)\n1 passed, 1 failed, 0 skipped\n",
			record: "m/a TestOne pass\n",
			failed: true,
		},
		{
			name:   "all is well",
			in:     stream("start m/a", "run m/a FuzzOne", "pass m/a FuzzOne", "pass m/a"),
			out:    "ok    m/a (0.0s, 1 tests)\n1 passed, 0 failed, 0 skipped\n",
			record: "m/a FuzzOne pass\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			record, ok := read(strings.NewReader(tt.in), &out)
			if ok == tt.failed {
				t.Errorf("ok = %v, want %v", ok, !tt.failed)
			}
			if out.String() != tt.out {
				t.Errorf("printed:\n%s\nwant:\n%s", out.String(), tt.out)
			}
			if string(record) != tt.record {
				t.Errorf("recorded:\n%s\nwant:\n%s", record, tt.record)
			}
		})
	}
}

func TestReportRefusesAnEmptyStream(t *testing.T) {
	var out strings.Builder
	if _, ok := read(strings.NewReader("\n"), &out); ok || !strings.HasPrefix(out.String(), "FAIL  ") {
		t.Errorf("ok = %v, and it printed %q; want a failure", ok, out.String())
	}
}
