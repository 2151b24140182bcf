package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestNothingCountsWhileARunWaits: what others change between a question and its answer is not the run's.
func TestNothingCountsWhileARunWaits(t *testing.T) {
	t.Parallel()
	p := newPlace(t).walled().agent("asker",
		`case "$(cat)" in *zebra*) echo "All is done.";; *) echo "Which database do you want, A or B?";; esac`)
	p.put("old.txt", "old\n")
	a := p.run("asker", "--yolo")
	a.is(t, 4, "needs_input", "question")
	p.put("mine.txt", "mine\n")
	p.put("old.txt", "mine\n")
	out, err := p.command("answer", a.Data.ID, "zebra", "--output", "json").Output()
	var done struct {
		Data struct {
			Reason  string
			Changed struct {
				Count   int
				Perhaps []struct{ Path string }
			}
		}
	}
	if err != nil || json.Unmarshal(out, &done) != nil || done.Data.Reason != "done_unchanged" ||
		done.Data.Changed.Count != 0 || len(done.Data.Changed.Perhaps) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := p.command("runs", "diff", a.Data.ID).Output(); err != nil || len(out) > 0 {
		t.Errorf("%v: the diff has what others changed:\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(p.work, "mine.txt")); err != nil || string(text) != "mine\n" {
		t.Errorf("%q, %v", text, err)
	}
}
