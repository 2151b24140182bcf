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
