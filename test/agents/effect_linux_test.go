package agents

import "strings"

// effect is what came of a run: the exit code, and what is there of what the model tried.
type effect struct {
	code    int
	shell   bool // a file that a command made in the workspace
	outside bool // one that a command made beside the workspace
	write   bool // one that the agent's own tool wrote in the workspace
}

// does lets the model use the shell inside, then the agent's tool that writes, then the shell outside, and compares
// what came of it. A denial has to be in the report, and an answer on stdout.
func (b *bench) does(want effect, args ...string) outcome {
	b.t.Helper()
	outside := b.base + "/outside.txt"
	o := b.run(`[{"shell":"touch inside.txt"},{"write":{"path":"written.txt","content":"x"}},{"shell":"touch `+outside+
		`"},{"say":"heard ${input}"}]`, args...)
	got := effect{o.code, b.took("inside.txt"), b.took(outside), b.took("written.txt")}
	if got != want {
		b.t.Errorf("%q: %+v, want %+v\nstdout: %s\nstderr: %s\nreport: %+v", args, got, want, o.stdout, o.stderr,
			o.report)
	}
	if o.code == 3 && (len(o.report.Denials) == 0 || o.report.code() != "BLOCKED_BY_POLICY") {
		b.t.Errorf("%q: blocked without evidence: %+v", args, o.report)
	}
	if o.code == 0 && !strings.Contains(o.stdout, "heard hello there") {
		b.t.Errorf("%q: the prompt did not arrive: %s", args, o.stdout)
	}
	return o
}
