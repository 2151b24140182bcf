//go:build unix

package run

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// TestHelpOfScripts: the help has a page about scripts under three names, its example works as it is typed, and the
// errors about a script name it.
func TestHelpOfScripts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	page, err := p.command("help", "script").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rehearse", "rehearsal"} {
		if other, err := p.command("help", name).Output(); err != nil || string(other) != string(page) {
			t.Errorf("help %s: %v\n%s", name, err, other)
		}
	}
	lines := []string{}
	for line := range strings.Lines(string(page)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "echo ") || strings.HasPrefix(line, "omniagent ") {
			lines = append(lines, strings.Replace(line, "omniagent", program, 1))
		}
	}
	cmd := exec.Command("/bin/sh", "-c", strings.Join(lines, "\n"))
	cmd.Dir, cmd.Env = p.work, p.env
	out, err := cmd.Output()
	if len(lines) != 2 || err != nil || !strings.Contains(string(out), "It said: script.json") {
		t.Errorf("%q: %v\n%s", lines, err, out)
	}
	p.put("bad.json", `[{"sigh": "x"}]`)
	for _, script := range []string{"absent.json", "bad.json", "."} {
		out, err := p.command("run", "--rehearse", "--script", script, "-p", "x").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "omniagent help script") {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}

// TestReviewIsRehearsed: a script reviews, and a review without one finds nothing.
func TestReviewIsRehearsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script string
		args   []string
		code   int
		worst  string
	}{
		{"", nil, 0, "none"},
		{`[{"say": "{\"file\":\"a.txt\",\"line\":2,\"severity\":\"warning\",\"title\":\"It shouts.\",\"detail\":\"\"}\n` +
			`{\"findings\":1}"}]`, []string{"--script", "../home/script.json"}, 81, "warning"},
		{"", []string{"--model", "m"}, 2, ""},
	} {
		p := newPlace(t).changed()
		p.put(p.home+"/script.json", c.script)
		r := reviewed{}
		cmd := p.command(append([]string{"review", "--base", "trunk", "--json", "--rehearse"}, c.args...)...)
		out, _ := cmd.Output()
		if json.Unmarshal(out, &r) != nil || cmd.ProcessState.ExitCode() != c.code || r.Data.Worst != c.worst {
			t.Errorf("%v: %v\n%s", c.args, cmd.ProcessState, out)
		}
	}
}
