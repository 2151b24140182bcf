package run

import (
	"slices"
	"strings"

	"omniagent/internal/sys/redact"
)

// prompt returns the message for the agent, and the session to resume, if any.
func (r *Run) prompt(agent string) (words, resume string) {
	var b strings.Builder
	resume = r.resumes(agent)
	if len(r.Attempts) == 0 && r.Session != "" {
		return r.Comments, r.Session
	}
	known := r.answers(resume != "")
	if resume == "" {
		b.WriteString(r.Text)
		if r.Comments != "" {
			b.WriteString("\n\nThis was worked on before, and the files are as they were left then. " + r.Comments)
		}
		if known != "" {
			b.WriteString("\n\nThese questions were answered before:\n" + known)
		}
		return b.String(), ""
	}
	if known != "" {
		b.WriteString(known + "\nGo on with the task.")
		return b.String(), resume
	}
	return "Go on with the task.", resume
}

// resumes returns the session that an agent resumes, or "".
func (r *Run) resumes(agent string) string {
	for _, a := range slices.Backward(r.Attempts) {
		// After a failure, begin a new session, because nothing was done.
		if a.Agent == agent && a.Resumes && (a.Reason == Asked || r.WaitQuota && a.Turn > 0 && a.Worked) {
			return a.Session
		}
	}
	return ""
}

// answers lists all answers, or, if fresh, only those to questions of the last attempt.
func (r *Run) answers(fresh bool) string {
	var b strings.Builder
	for _, q := range r.Questions {
		if q.Answer == nil || fresh && q.Attempt != len(r.Attempts) {
			continue
		}
		secret := ""
		if q.Answer.Secret {
			secret = r.secrets.of(q.ID) + "\n  (This is a secret, and not recorded. If you see " + redact.Mask +
				" in its place, ask for it again.)"
		}
		b.WriteString(q.outcome(secret))
	}
	return b.String()
}
