package run

import (
	"testing"
	"testing/synctest"

	"omniagent/internal/core/event"
)

// TestAnAnswerWaits: the agent gets an answer when the run has seen that it was given, or is over.
func TestAnAnswerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r replies
		passed := map[string]bool{}
		for _, question := range []string{"a", "b"} {
			go func() {
				r.await(question)
				passed[question] = true
			}()
		}
		synctest.Wait()
		if len(passed) > 0 {
			t.Errorf("passed before they were seen: %v", passed)
		}
		r.told(event.Event{Kind: event.Text})
		r.told(event.Event{Kind: event.Replied, Reply: &event.Reply{Question: "a"}})
		synctest.Wait()
		if !passed["a"] || passed["b"] {
			t.Errorf("a was seen, passed: %v", passed)
		}
		r.close()
		r.await("c")
		synctest.Wait()
		if !passed["b"] {
			t.Error("b waits behind the end of the run")
		}
	})
}
