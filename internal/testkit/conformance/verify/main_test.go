package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	page := write("page.md", "| REQ-F-001 | P0 | a | applies | b | `internal/cli/contract.TestA/x` |\n")
	empty := write("empty.md", "# nothing\n")
	pass := write("pass", "omniagent/internal/cli/contract TestA/x pass\n")
	fail := write("fail", "omniagent/internal/cli/contract TestA/x fail\n")
	skip := write("skip", "omniagent/internal/cli/contract TestA/x skip\n")
	torn := write("torn", "omniagent/internal/cli/contract\n")
	const summary = "1 requirements: 1 apply, 0 in part, 0 not, 0 due; 1 tests prove them"
	another := hermetic.PartOf(0, 2)
	if another.Has("TestA/x") {
		another = hermetic.PartOf(1, 2)
	}
	for _, tc := range []struct {
		name, goos     string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"passed", "linux", []string{"-page", page, "-ran", pass}, 0, summary, ""},
		{"failed", "linux", []string{"-page", page, "-ran", fail}, 1, summary, "TestA/x failed"},
		{"skipped", "linux", []string{"-page", page, "-ran", skip}, 1, summary, "TestA/x was skipped"},
		{
			"in another part", "linux",
			[]string{"-page", page, "-ran", skip, "-whole", another.String()},
			0,
			"1 tests are in other parts than " + another.String(), "",
		},
		{
			"in this part", "linux",
			[]string{"-page", page, "-ran", skip, "-whole", "1/1"},
			1, summary,
			"TestA/x was skipped",
		},
		{"no part", "linux", []string{"-page", page, "-ran", skip, "-whole", "3/2"}, 2, "", "not a part"},
		{"skipped elsewhere", "windows", []string{"-page", page, "-ran", skip}, 0, "skipped on windows: REQ-F-001", ""},
		{"torn report", "linux", []string{"-page", page, "-ran", torn}, 2, "", "line 1 of the report"},
		{"no report", "linux", []string{"-page", page}, 2, "", "-ran FILE"},
		{"no rows", "linux", []string{"-page", empty, "-ran", pass}, 2, "", "has no rows"},
		{"no page", "linux", []string{"-page", filepath.Join(dir, "gone"), "-ran", pass}, 2, "", "gone"},
		{"wrong flag", "linux", []string{"-x"}, 2, "", "-x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if code := run(tc.args, tc.goos, &stdout, &stderr); code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			if !strings.Contains(stdout.String(), tc.stdout) || tc.code == 2 && stdout.String() != "" {
				t.Errorf("stdout: %s", stdout.String())
			}
			if !strings.Contains(stderr.String(), tc.stderr) || tc.stderr == "" && stderr.String() != "" {
				t.Errorf("stderr: %s", stderr.String())
			}
		})
	}
}
