//go:build unix

package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAudited: the audit log has each start of an agent and each refusal.
func TestAudited(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `echo done`)
	p.run("scribe", "--yolo").is(t, 0, "succeeded", "done_unchanged")
	p.call("agents", "deny", "scribe")
	p.run("scribe", "--yolo").is(t, 7, "blocked", "not_allowed")
	log, err := os.ReadFile(filepath.Join(p.home, ".local/share/omniagent/audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	started, refused := 0, 0
	for line := range strings.Lines(string(log)) {
		if !strings.Contains(line, `"run --agent scribe"`) {
			continue
		}
		if !strings.Contains(line, `"agent=scribe"`) || !strings.Contains(line, filepath.Join(p.bin, "scribe")) {
			t.Errorf("the line does not say what was started: %s", line)
		}
		if strings.Contains(line, `"AGENT_NOT_ALLOWED"`) {
			refused++
			continue
		}
		started++
	}
	if started != 1 || refused != 1 {
		t.Errorf("%d starts and %d refusals are on record\n%s", started, refused, log)
	}
}

// TestKeep: the record of a run that is over goes when it is old.
func TestKeep(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `echo done`).configured("[run]\nkeep = '1ms'\n")
	first := p.run("scribe", "--yolo")
	second := p.run("scribe", "--yolo")
	if a := p.call("runs", "show", first.Data.ID); a.Code != 5 {
		t.Errorf("%s", a)
	}
	if a := p.call("runs", "show", second.Data.ID); a.Code != 0 {
		t.Errorf("%s", a)
	}
}
