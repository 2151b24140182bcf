package run

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/claim"
)

// identity returns a hash of all that the agent shows of a call, except its description for a person. It includes words
// only if the call has neither input nor command.
func identity(c *event.Call, words string) string {
	var input map[string]json.RawMessage
	shown := bytes.TrimSpace(c.Input)
	if json.Unmarshal(shown, &input) == nil {
		delete(input, "description")
		shown, _ = json.Marshal(input) // it sorts the members
	}
	if len(shown) > 0 || c.Command != "" {
		words = ""
	}
	h := sha256.New()
	for _, part := range []string{c.Name, c.Command, c.Path, string(shown), words} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// onlyCommand reports whether a call is a command without anything that changes what it does, such as the wish to run
// it in the background.
func onlyCommand(c *event.Call) bool {
	var input map[string]json.RawMessage
	if c.Command == "" || c.Path != "" || len(c.Input) > 0 && json.Unmarshal(c.Input, &input) != nil {
		return false
	}
	for member := range input {
		if !slices.Contains([]string{"command", "description", "timeout"}, member) {
			return false
		}
	}
	return true
}

// decision returns the person's answer to the question whether a tool may run, or "" if there is none or it is stale.
func (q Question) decision() string {
	switch a := q.Answer; {
	case q.Tool == "" || a == nil || q.Stale:
		return ""
	case a.Option == "" && slices.Contains(q.Options, a.Text):
		return a.Text
	default:
		return a.Option
	}
}

// decide answers a question that a person has answered before: a refusal always, an approval once, and only for the
// file that the person could see. Otherwise it waits for a person or ends the turn.
func (o *Owner) decide(ask event.Ask) (*event.Reply, bool) {
	q := o.Run.plainly(questionOf(ask))
	q.File = claim.Fingerprint(ask.Tool, o.Run.Dir)
	for i := range o.Run.Questions {
		known := &o.Run.Questions[i]
		switch option := known.decision(); {
		case option == Approve && !known.Made && known.resembles(q) && !known.same(q):
			known.Stale, known.File = true, q.File // see staleness
			o.save()
		case !known.same(q) || option == "" || option == Approve && known.Made:
		case option == Approve && known.File != q.File:
			known.Stale = true
			o.save()
		case option == Approve:
			known.Made, known.Call = true, q.Call // it may have been recorded before calls were
			o.save()
			fallthrough
		default:
			return &event.Reply{Option: option, Text: known.comment()}, false
		}
	}
	if o.Patience > 0 && !o.Run.repeats(q) {
		o.Run.ask(q)
		return nil, true
	}
	if o.Run.files == nil {
		o.Run.files = map[string]string{}
	}
	o.Run.files[q.Call] = q.File // the turn ends, and its question is recorded then
	return nil, false
}

// comment returns what a person said in addition to allowing or denying a call.
func (q Question) comment() string {
	if q.Answer.Option == "" {
		return "" // the text is the decision
	}
	return q.Answer.Text
}

// recordMade records which approved calls the agent made, even without asking again, and which of them failed and did
// not succeed afterwards.
func (r *Run) recordMade(e Ending) {
	ended := map[string]string{} // by the identity of a call: "" if it succeeded once, else how it failed
	for id, t := range e.Tools {
		if !t.Ended || slices.ContainsFunc(e.Denials, func(d event.Denial) bool { return d.CallID == id }) {
			continue
		}
		failure := ""
		if t.Failed && t.Kind != event.Shell { // a command that ran has been carried out, whatever its exit code
			failure = cmp.Or(text.OneLine(strings.TrimSpace(t.said), longestCall), "it says no more")
		}
		if before, known := ended[t.identity]; !known || before != "" {
			ended[t.identity] = failure
		}
		for i := range r.Questions {
			if q := &r.Questions[i]; q.decision() == Approve && !q.Made && q.Call == t.identity {
				q.Made = true
				break
			}
		}
	}
	for i := range r.Questions {
		q := &r.Questions[i]
		if failure, made := ended[q.Call]; made && q.Made {
			q.Failure = plain(&r.secrets, failure)
		}
	}
}

// checkApproved returns v, or a failure if a call that a person approved in this run was never made, or failed and did
// not succeed afterwards.
func (r *Run) checkApproved(v Verdict) Verdict {
	for _, q := range r.Questions {
		if q.decision() != Approve || q.Made && q.Failure == "" || q.Attempt == 0 { // another run asked
			continue
		}
		words := text.OneLine(strings.TrimSpace(q.Tool+" "+q.Input), longestCall)
		f := fault.New(fault.AgentFailed, "the agent ended without making the call that was approved: %s", words)
		evidence := "question " + q.ID + " was answered with yes, and no call was like it"
		if q.Made {
			f = fault.New(fault.AgentFailed, "the call that was approved failed: %s: %s", words, q.Failure)
			evidence = "question " + q.ID + " was answered with yes, and its call failed: " + q.Failure
		}
		return Verdict{State: Failed, Reason: NotMade, Asks: v.Asks, Fault: f, Evidence: append(v.Evidence, evidence)}
	}
	return v
}

const longestCall = 300 // in a message

// outcome returns what the agent is told about an answered question.
func (q Question) outcome(secret string) string {
	call := strings.TrimSpace(q.Tool + " " + q.Input)
	switch option := q.decision(); {
	case option == Reject:
		words := "- This call was not run, because the person does not allow it: " + call + "\n  Do not make it.\n"
		if said := cmp.Or(secret, q.comment()); said != "" {
			words += "  The person says: " + said + "\n"
		}
		return words
	case q.Stale:
		return "- The person allowed this call, but " + q.staleness() + " since then. It was not made: " + call + "\n"
	case option != "" && !q.Made:
		return "- This call was stopped before it ran, because a person had to allow it: " + call +
			"\n  The person has allowed it now. It has not run: make exactly this call again.\n"
	case q.Failure != "":
		return "- The person allowed this call. It was made and failed: " + call + "\n"
	case option != "":
		return "- The person allowed this call, and it was made: " + call + "\n"
	}
	return fmt.Sprintf("- Question: %s\n  Answer: %s\n", q.Text, cmp.Or(q.Answer.Text, secret, q.Answer.Option))
}
