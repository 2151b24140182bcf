package runs

import (
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/work/run"
)

// TestNextStepOfARunOnce checks that the next step is printed once, with the error, and that a run that could not begin
// is not retryable unless the service was unreachable.
func TestNextStepOfARunOnce(t *testing.T) {
	for reason, again := range map[run.Reason]bool{run.NotInstalled: false, run.Idle: false, run.Unreachable: true} {
		r := run.Record{ID: "run-1", State: run.Failed, Result: &run.Result{
			Reason: reason, State: run.Failed, Changed: &run.Changes{},
			Fault: fault.New(fault.NotInstalled, "it is not there").FixBy("Install it.", "npm install it"),
		}}
		result, err := answerOf(r)
		data, _ := result.Data.(runData)
		if f := fault.Of(err); f.Retryable() != again || f.FixCommand != "npm install it" {
			t.Errorf("%s: %+v", reason, f)
		}
		if len(data.Summary.Next) != 1 || strings.Contains(data.PlainText(), "npm install it") {
			t.Errorf("%s: %q %s", reason, data.Summary.Next, data.PlainText())
		}
		told := runDataOf(r).PlainText()
		if !strings.Contains(told, "Next: npm install it; then: omniagent runs retry run-1") {
			t.Errorf("runs show: %s", told)
		}
	}
}

// TestBranchesAreNamed checks that a report names the branches that an agent made or moved.
func TestBranchesAreNamed(t *testing.T) {
	var d runData
	var b strings.Builder
	d.Changed = &runChanges{Git: []string{".git/HEAD", ".git/refs/heads/feat/x", "sub/.git/refs/heads/main"}}
	if d.repository(&b); !strings.HasPrefix(b.String(), "Commits were made or branches moved: feat/x, main\n") {
		t.Errorf("%s", b.String())
	}
}

// TestDoubtfulNamesTheOtherRun checks that a change that another run may have made is not said to be yours.
func TestDoubtfulNamesTheOtherRun(t *testing.T) {
	d := runData{doubts: []run.Doubt{{Path: "a.txt"}}, beside: []string{"run-2"}}
	var b strings.Builder
	if d.doubtful(&b); !strings.HasPrefix(b.String(), "Changed meanwhile, perhaps by run-2:\n") {
		t.Errorf("%s", b.String())
	}
}
