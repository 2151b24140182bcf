package opencode

import (
	"testing"
	"time"

	"omniagent/internal/core/agent"
)

// TestManySessions: the database has 600 older sessions, then those of the recorded runs, and 600 sub-agents of the
// last run. A sub-agent that lies six deep, in a circle, was denied something.
func TestManySessions(t *testing.T) {
	dir := home(t, unzip(t, "testdata/many.db.gz"), nil)
	last, deep := runs()[5], runs()[4]
	if e := observed(dir, last.title, last.began, agent.Exit{}); e.Session != last.session {
		t.Errorf("behind its sub-agents: %+v", e)
	}
	// What is so far behind the sessions that were there before is not looked at, or every run would read all of them.
	if e := observed(dir, "beyond", last.began, agent.Exit{}); e.Session != "" {
		t.Errorf("behind more than %d older ones: %+v", mostEarlier, e)
	}
	if e := observed(dir, deep.title, deep.began, agent.Exit{}); e.Session != deep.session || !e.DenialsKnown ||
		len(e.Denials) != deep.denied {
		t.Errorf("deep sub-agents: %+v", e)
	}
	o := observer{
		launch: agent.Launch{Env: []string{"HOME=" + dir}, Dir: "/continued", Spec: agent.Spec{Newest: true}},
		began:  time.UnixMilli(last.began),
	}
	if e := o.After(agent.Exit{}); e.Session != "continued" {
		t.Errorf("--continue: %+v", e)
	}
}
