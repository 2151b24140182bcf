//go:build unix

package run

import (
	"testing"
)

// TestOnce: a call with an idempotency key begins one run, whatever becomes of it, and the same call has its end.
func TestOnce(t *testing.T) {
	t.Parallel()
	const asks, done = `[{"ask":"Which colour?"},{"say":"done"}]`, `[{"say":"done"}]`
	for name, c := range map[string]struct {
		script string
		flags  []string
		code   int
		status string
	}{
		"question": {asks, nil, 4, "needs_input"},
		"check":    {done, []string{"--check", "false"}, 1, "failed"},
		"timeout":  {`[{"stall":"headers"}]`, []string{"--timeout", "1s"}, 10, "timed_out"},
		"denied":   {`[{"write":{"path":"made","content":"x"}},{"say":"no"}]`, []string{"--read-only"}, 7, "blocked"},
		"success":  {done, nil, 0, "succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).model(c.script).configured("")
			args := append([]string{"-m", "m", "--provider", "openai", "--idempotency-key", "k"}, c.flags...)
			first, second := p.run("native", args...), p.run("native", args...)
			if first.Code != c.code || first.Data.Status != c.status || second.Code != c.code ||
				second.Data.Status != c.status || second.Data.ID != first.Data.ID || first.Data.ID == "" {
				t.Errorf("%s\n%s", first, second)
			}
			if name != "question" {
				return
			}
			answer := []string{"answer", first.Data.ID, "blue", "--provider", "openai", "--idempotency-key", "k2"}
			once, twice := p.call(answer...), p.call(answer...)
			if once.Data.ID != first.Data.ID || twice.Code != once.Code || twice.Data.Status != once.Data.Status {
				t.Errorf("%s\n%s", once, twice)
			}
		})
	}
}
