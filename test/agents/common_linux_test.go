package agents

import (
	"encoding/json"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestOutputs: the forms, and what the exit code says in each.
func TestOutputs(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		agent := s.driver.Name()
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			spare(t, agent)
			b := newBench(t, agent)
			for _, form := range []string{"json", "stream-json"} { // most other tests read text
				o := b.run(`[{"say":"the answer"}]`, "--output", form)
				if o.code != 0 || !strings.Contains(o.stdout, "the answer") || o.report.Answered == nil ||
					!*o.report.Answered {
					t.Errorf("%s: %+v", form, o)
				}
				for i, line := range strings.Split(strings.TrimSpace(o.stdout), "\n") {
					if form == "stream-json" && !json.Valid([]byte(line)) {
						t.Errorf("%s: line %d is not JSON: %s", form, i, line)
					}
				}
			}
		})
	}
}

// TestErrors: no API error is a success, in no form of output, and the report knows which it was.
func TestErrors(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		agent := s.driver.Name()
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agent)
			expired := "CREDENTIALS_EXPIRED"
			if agent == "copilot" { // it keeps the API's words for itself
				expired = "AUTH_REQUIRED"
			}
			cases := []struct{ script, code, form string }{
				{`[{"error":401}]`, "AUTH_REQUIRED", "text"},
				{`[{"error":401,"message":"The token has expired."}]`, expired, "stream-json"},
				{`[{"error":429,"retry_after":1}]`, "RATE_LIMITED", "text"},
				{`[{"error":400}]`, "API_ERROR", "stream-json"},
			}
			if agent == "opencode" && !hermetic.Matrices() { // it starts slowly
				cases = cases[:1]
			}
			for _, c := range cases {
				forms := []string{c.form}
				if hermetic.Matrices() {
					forms = []string{"text", "stream-json"}
				}
				for _, form := range forms {
					o := b.run(c.script, "--output", form, "--timeout", "5m")
					if o.code != 1 || o.report.Error == nil || o.report.Error.Code != c.code {
						t.Errorf("%s, %s: exit code %d, %+v, want %s\n%s\n%s", c.script, form, o.code, o.report.Error,
							c.code, o.stdout, o.stderr)
					}
				}
			}
		})
	}
}

// TestStall: an agent whose model is silent is ended by our clock.
func TestStall(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		agent := s.driver.Name()
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			o := newBench(t, agent).run(`[{"stall":"headers"}]`, "--timeout", "8s")
			if o.code != 1 || !strings.Contains(o.stderr, "did not end within 8s") {
				t.Errorf("%+v", o)
			}
		})
	}
}

// TestSchema: the answer fits, natively or after our own check.
func TestSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		agent := s.driver.Name()
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			spare(t, agent)
			b := newBench(t, agent)
			script := `[{"json":{"n":7}}]`
			if agent == "gemini" || agent == "opencode" { // no schema of their own
				script = "[{\"say\":\"Here it is:\\n```json\\n{ \\\"n\\\": 7 }\\n```\"}]"
			}
			if o := b.run(script, "--output-schema", schema); o.code != 0 || o.stdout != "{\"n\":7}\n" {
				t.Errorf("%+v", o)
			}
			o := b.run(`[{"say":"no"}]`, "--output-schema", schema, "--output-schema-retries", "1", "--timeout", "5m")
			if o.code != 1 || o.stdout != "" {
				t.Errorf("never conforming: %+v", o)
			}
		})
	}
}
