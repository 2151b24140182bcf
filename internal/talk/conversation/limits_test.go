package conversation

import (
	"fmt"
	"testing"
	"testing/synctest"

	"omniagent/internal/core/event"
)

// TestAgentWaitsForTheJournal: an agent that is faster than the disk waits, instead of filling the memory.
func TestAgentWaitsForTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b inbox
		b.init()
		told := 0
		go func() {
			for range mostEvents + 1 {
				b.tell(item{})
				told++
			}
		}()
		synctest.Wait()
		if told != mostEvents {
			t.Errorf("%d events were taken before the journal took one", told)
		}
		b.take()
		synctest.Wait()
		if told != mostEvents+1 {
			t.Errorf("%d events were taken afterwards", told)
		}
	})
}

// TestAnswersAreForgotten: a conversation of any length remembers the last answers.
func TestAnswersAreForgotten(t *testing.T) {
	q := questions{past: map[string]event.Reply{}}
	for i := range mostPast + 2 {
		q.remember(event.Reply{Question: fmt.Sprint(i)})
	}
	_, first := q.past["1"]
	_, second := q.past["2"]
	if first || !second || len(q.past) != mostPast || len(q.order) != mostPast {
		t.Errorf("%d answers are remembered, the second of them %t, the third %t", len(q.past), first, second)
	}
}
