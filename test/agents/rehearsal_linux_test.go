package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRehearsal: what doctor --rehearse sees of the real agents is what their tables claim. Nothing is left, and the
// home stays as it was.
func TestRehearsal(t *testing.T) {
	needAgents(t)
	b := newBench(t, "")
	state := filepath.Join(b.base, "state")
	b.env = append(b.env, "XDG_STATE_HOME="+state, "XDG_DATA_HOME="+state)
	var out, errs bytes.Buffer
	cmd := exec.Command(program, "doctor", "--rehearse", "--verbose", "--heartbeat-ms", "0")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.base, b.environ(), &out, &errs
	began := time.Now()
	err := cmd.Run()
	var answer struct {
		Data struct {
			Rehearsals []struct {
				Agent, State string
				Findings     []struct{ Feature, Value, Claim, Observed, Verdict string }
			}
		}
	}
	if jerr := json.Unmarshal(out.Bytes(), &answer); err != nil || jerr != nil {
		t.Errorf("%v %v\n%s", err, jerr, errs.String())
	}
	t.Logf("it took %v", time.Since(began).Round(time.Second))
	if len(answer.Data.Rehearsals) != len(subjects())+1 {
		t.Errorf("%d agents were tried", len(answer.Data.Rehearsals))
	}
	for _, r := range answer.Data.Rehearsals {
		if r.State != "fresh" || len(r.Findings) != 15 {
			t.Errorf("%s is %s, with %d findings", r.Agent, r.State, len(r.Findings))
		}
		for _, f := range r.Findings {
			t.Logf("%-9s %-15s %-10s %-15s %s", r.Agent, f.Feature, f.Value, f.Verdict, f.Observed)
			// the network has a switch of its own
			native := r.Agent == "native" && f.Feature == "approval" && f.Value == "yolo"
			// without a tunnel
			here := strings.HasPrefix(f.Observed, "it needs ") || r.Agent == "gemini" || r.Agent == "copilot" &&
				strings.HasPrefix(f.Observed, "no command runs")
			if f.Verdict != "holds" && !native && !(f.Verdict == "cannot-be-tried" && f.Feature == "sandbox" && here) {
				t.Errorf("%s %s %s: claimed %s, seen %s: %s", r.Agent, f.Feature, f.Value, f.Claim, f.Observed,
					f.Verdict)
			}
		}
	}
	if entries, _ := os.ReadDir(b.home); len(entries) > 0 {
		t.Errorf("the home has %v", entries)
	}
	if left, _ := filepath.Glob(filepath.Join(state, "omniagent", "rehearsal*")); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
	if entries, _ := os.ReadDir(filepath.Join(b.base, "tmp")); len(entries) > 0 {
		t.Errorf("the temporary directory has %v", entries)
	}
	ps, _ := exec.Command("ps", "axeww").Output() // with their environment, in which their home is
	if strings.Contains(string(ps), b.base) {
		t.Errorf("processes are left:\n%s", ps)
	}
}
