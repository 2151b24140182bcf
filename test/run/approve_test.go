//go:build unix

package run

import (
	"strings"
	"testing"
)

const writes = `[{"write":{"path":"made","content":"x"}},{"say":"You said: ${input}"}]`

// asksToWrite is a run of the native agent that waits for a word about a call.
func asksToWrite(t *testing.T, script string) (p *place, id string) {
	t.Helper()
	p = newPlace(t).model(script).configured("")
	a := p.run("native", "-m", "m", "--provider", "openai", "--approval", "prompt")
	a.is(t, 4, "needs_input", "question")
	if len(a.Data.Questions) != 1 || a.Data.Questions[0].Tool != "Write" || p.read("made") != "" {
		t.Fatalf("%s", a)
	}
	return p, a.Data.ID
}

// TestAnApprovedCallIsMade: the agent is told that it may, and the same call needs no second answer.
func TestAnApprovedCallIsMade(t *testing.T) {
	t.Parallel()
	p, id := asksToWrite(t, writes)
	a := p.call("answer", id, "--approve", "--provider", "openai")
	a.is(t, 0, "succeeded", "done")
	if p.read("made") != "x" || !strings.Contains(a.Data.Text.Value, "make exactly this call again") {
		t.Errorf("%q %s", p.read("made"), a)
	}
}

// TestAnApprovalHoldsOnce: what is approved is one call. The same once more, and another one to the same place, are
// asked about again.
func TestAnApprovalHoldsOnce(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]string{
		"the same": `[{"write":{"path":"made","content":"x"}},{"write":{"path":"made","content":"x"}},{"say":"done"}]`,
		"another":  `[{"write":{"path":"made","content":"other"}},{"say":"done"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, id := asksToWrite(t, writes)
			p.model(then)
			a := p.call("answer", id, "--approve", "--provider", "openai")
			a.is(t, 4, "needs_input", "question")
			made := p.read("made")
			if len(a.Data.Questions) != 1 || made == "other" || (made == "x") != (name == "the same") {
				t.Errorf("%q %s", made, a)
			}
		})
	}
}

// TestAnApprovedCallIsNotMade: an agent that goes on without the call that was approved has not succeeded, and the
// record and the terminal say why.
func TestAnApprovedCallIsNotMade(t *testing.T) {
	t.Parallel()
	p, id := asksToWrite(t, writes)
	p.model(`[{"say":"I am done."}]`)
	a := p.call("answer", id, "--approve", "--provider", "openai")
	a.is(t, 1, "failed", "approved_not_made")
	if p.read("made") != "" || !strings.Contains(a.Error.Message, "approved: Write") ||
		!strings.Contains(a.Stderr, "without making the call that was approved") {
		t.Errorf("%s", a)
	}
	if shown := p.call("runs", "show", id); shown.Data.Reason != "approved_not_made" {
		t.Errorf("%s", shown)
	}
}

// TestARejectedCall: the agent is told that the person refused, and what they said, and not that nobody answered.
func TestARejectedCall(t *testing.T) {
	t.Parallel()
	p, id := asksToWrite(t, writes)
	p.model(`[{"say":"You said: ${input}"}]`)
	a := p.call("answer", id, "--reject", "use the other file", "--provider", "openai")
	a.is(t, 0, "succeeded", "done_unchanged")
	if said := a.Data.Text.Value; p.read("made") != "" || !strings.Contains(said, "does not allow it") ||
		!strings.Contains(said, "use the other file") {
		t.Errorf("%s", a)
	}
	p, id = asksToWrite(t, writes) // it tries all the same
	a = p.call("answer", id, "--reject", "no", "--provider", "openai")
	if p.read("made") != "" || a.Data.Status == "needs_input" {
		t.Errorf("%s", a)
	}
}

// TestTakenBackAsTold: what a run changed without asking is taken back by the command that its end names.
func TestTakenBackAsTold(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(writes).configured("")
	out, err := p.command("run", "--agent", "native", "-m", "m", "--provider", "openai", "-p", "go", "--output",
		"plain").CombinedOutput()
	_, line, told := strings.Cut(string(out), "Take back: omniagent ")
	command, _, _ := strings.Cut(line, "\n")
	if err != nil || !told || p.read("made") != "x" {
		t.Fatalf("%v %s", err, out)
	}
	if a := p.call(strings.Fields(command)...); a.Code != 0 || p.read("made") != "" {
		t.Errorf("%s", a)
	}
}

// TestAnApprovedCallFails: a call that was approved and could not be carried out has not succeeded, and the answer has
// its own error.
func TestAnApprovedCallFails(t *testing.T) {
	t.Parallel()
	const inDir = `[{"write":{"path":"made/it","content":"x"}},{"say":"I am done."}]`
	p, id := asksToWrite(t, inDir)
	p.put(p.work+"/made", "a file stands where the directory would be")
	a := p.call("answer", id, "--approve", "--provider", "openai")
	a.is(t, 1, "failed", "approved_not_made")
	if !strings.Contains(a.Error.Message, "not a directory") {
		t.Errorf("%s", a)
	}
}
