package run

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// Advised returns what went wrong, with a suggestion that names a command to type. It returns nil if nothing went
// wrong, or a person has to answer.
func (r Record) Advised() *fault.Fault {
	if r.Result == nil || r.Result.Fault == nil || r.State == NeedsInput || r.ID == "" {
		return nil
	}
	const ours = "omniagent "
	f := *r.Result.Fault
	if r.Unkept {
		f.Suggestion = cmp.Or(f.Suggestion, f.Code.Entry().NextStep)
		return &f
	}
	if f.Code == fault.Blocked && f.Suggestion == "" && r.Approval == setting.Yolo {
		f.Suggestion = "Read the reason for each denial; no --approval allows more than yolo."
	}
	retry := ours + "runs retry " + r.ID
	if f.Code == fault.Interrupted && r.NeverBegan() {
		f.Suggestion = "It never began. To begin it: " + retry
		return &f
	}
	words := strings.TrimSuffix(cmp.Or(f.Suggestion, f.Code.Entry().NextStep), ".")
	switch {
	case f.Detail["connect_timeout"] != nil: // a run has no flag for it
		words = fmt.Sprintf("It may need longer to begin: omniagent config set run.first_output %s --global; then: %s",
			2*r.First, retry)
	case f.FixCommand != "":
		if words = strings.TrimSuffix(f.Suggestion, "."); !strings.Contains(words, f.FixCommand) {
			words = strings.TrimPrefix(words+": "+f.FixCommand, ": ")
		}
		words += "; then: " + retry
	case strings.Contains(words, ours):
		words = strings.ReplaceAll(words, ours+"runs retry RUN", retry)
		agent := "NAME"
		if n := len(r.Attempts); n > 0 {
			agent = r.Attempts[n-1].Agent
		} else if len(r.Agents) > 0 {
			agent = r.Agents[0]
		}
		words = strings.ReplaceAll(words, "allow NAME", "allow "+agent)
	case f.Code == fault.Unsafe && f.Detail["path"] == r.Dir: // runs retry would begin in the same directory
		words += "; then there, with the same task: omniagent run"
	default:
		next := r.command(f.Code, retry)
		if next == retry && !strings.Contains(words, "again") { // the words are about something else to do first
			words += "; then"
		}
		words += ": " + next
	}
	f.Suggestion = words
	return &f
}

// command returns the command to suggest for a fault whose own words name none.
func (r Record) command(code fault.Code, retry string) string {
	logs, diff := "omniagent runs logs "+r.ID, "omniagent runs diff "+r.ID
	switch code {
	case fault.TimedOut:
		longer := max(2*r.Timeout, 2*time.Hour).Round(time.Hour)
		return fmt.Sprintf("%s; then: %s --timeout %.0fh", diff, retry, longer.Hours())
	case fault.Stalled, fault.Interrupted, fault.UnknownOutcome:
		return diff + "; then: " + retry
	case fault.AgentFailed, fault.APIError, fault.AgentUsage, fault.Blocked, fault.NoAnswer, fault.SchemaUnmet,
		fault.OutputLimit:
		return logs
	case fault.ModelRefused, fault.ContextFull, fault.Repeated, fault.PromptTooLong: // another task
		agent := "native"
		if n := len(r.Attempts); n > 0 {
			agent = r.Attempts[n-1].Agent
		}
		return "omniagent run --agent " + agent + " -p 'WHAT TO DO'"
	}
	return retry
}
