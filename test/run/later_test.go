//go:build unix

package run

import (
	"strings"
	"testing"
)

// TestARunSaysWhatRunsLater: the record and the summary of a run name the changed files that run later by themselves,
// and not those that only changed.
func TestARunSaysWhatRunsLater(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("planter", `cat >/dev/null; mkdir -p .newtool; echo x >.newtool/start; echo x >plain.txt
		echo x >>scripts/env.sh; echo x >>.tool/conf; rm -f mise.toml; echo "I did it."`)
	p.put(".envrc", ". ./scripts/env.sh\n")
	p.put("scripts/env.sh", "")
	p.put(".tool/conf", "")
	p.put("mise.toml", "")
	cmd := p.command("run", "--agent", "planter", "-p", "the task", "--yolo", "--output", "plain")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out),
		"Some changed files run by themselves later: .newtool/start, scripts/env.sh\n") {
		t.Errorf("%v %s", err, out)
	}
	out, err = p.command("runs", "list", "--output", "json").Output()
	_, rest, found := strings.Cut(string(out), `"run_id":"`)
	if id, _, ok := strings.Cut(rest, `"`); err != nil || !found || !ok {
		t.Errorf("%v %s", err, out)
	} else if out, err = p.command("runs", "show", id, "--output", "json").Output(); err != nil ||
		!strings.Contains(string(out), `"runs_later":[{"value":".newtool/start",`) ||
		!strings.Contains(string(out), `{"value":"scripts/env.sh",`) {
		t.Errorf("%v %s", err, out)
	}
}
