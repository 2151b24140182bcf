package runs

import (
	"fmt"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/talk/session"
	"omniagent/internal/work/run"
)

// runRow is a line of run --stream about a state. The other lines are events of the conversation.
type runRow struct {
	Run     string `json:"run_id"`
	Attempt int    `json:"attempt"`
	State   string `json:"state,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session_id,omitempty"`
	// when the service lifts the limit that the run waits for
	Until time.Time `json:"until,omitzero"`
}

// progressTeller returns a function that shows the progress of a run: states and repeated requests to people, and with
// --stream everything to programs.
func progressTeller(c *contract.Call, r *run.Run) func(run.Progress) {
	retried := "" // an agent without a network may retry for ever: print each sentence once
	return func(now run.Progress) {
		if e := now.Event; e != nil && e.Kind == event.Retry && !c.Bool("quiet") {
			if sentence := e.Retry.Sentence(); sentence != retried {
				parts.LogLine(c, "%s %s", time.Since(r.Created).Round(100*time.Millisecond), sentence)
				retried = sentence
			}
		}
		tellProgress(c, r, now)
	}
}

func tellProgress(c *contract.Call, r *run.Run, now run.Progress) {
	if now.Event != nil {
		if !c.Emits() {
			return
		}
		entry := session.Entry{Number: now.Event.Seq, Time: now.Event.Time, Record: session.Logged{Event: now.Event}}
		if line, err := entry.AppendRow(nil); err == nil {
			c.Emit(line)
		}
		return
	}
	row := runRow{Run: r.ID, Attempt: len(r.Attempts), State: string(now.State), Until: r.Until}
	if n := len(r.Attempts); n > 0 {
		row.Agent, row.Session = r.Attempts[n-1].Agent, r.Attempts[n-1].Session
	}
	asked := now.State == run.NeedsInput && c.Attended() && !r.Detached // the question itself is on the screen
	limited := now.State == run.Queued && !r.Until.IsZero()             // silence would look like a hang
	if (c.Host.StderrTerminal || limited) && !c.Bool("quiet") && !asked {
		parts.LogLine(c, "%s %s", time.Since(r.Created).Round(100*time.Millisecond), stateLine(r, now))
	}
	if line, err := text.Line(row); err == nil {
		c.Emit(append(line, '\n')) // last, because its reader may change the run
	}
}

// stateLine describes the state that a run has entered, for people.
func stateLine(r *run.Run, now run.Progress) string {
	agent := r.Agents[0]
	if n := len(r.Attempts); n > 0 {
		agent = r.Attempts[n-1].Agent
	}
	switch now.State {
	case run.Queued:
		if !r.Until.IsZero() {
			return untilLifted(r.Record)
		}
		if now.Behind != "" {
			return "waits behind " + now.Behind
		}
		return "waits until another run ends"
	case run.Starting:
		if n := len(r.Attempts); n > 1 {
			return fmt.Sprintf("%s is being started, attempt %d", agent, n)
		}
		return agent + " is being started"
	case run.Running:
		return agent + " works"
	}
	if now.State == run.NeedsInput && len(r.Attempts) == 0 {
		return "the task: " + statusWords(string(now.State)) // no agent has seen it
	}
	return agent + ": " + statusWords(string(now.State))
}
