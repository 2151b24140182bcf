//go:build unix

package agenttest

import (
	"errors"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// mostMemory is the most memory that a host may use, however much its agent prints.
const mostMemory = 64 << 20

// Deluge is a way in which an agent prints too much.
type Deluge struct {
	Name    string
	steps   string
	stopped bool // the client reads nothing meanwhile
	limited bool // it is more than a turn may say
}

// Deluges returns all of them.
func Deluges() []Deluge {
	return []Deluge{
		{Name: "text", steps: "flood 300", limited: true},
		{Name: "line", steps: "line 300 | say after"},
		{Name: "events", steps: "events 300000"},
		{Name: "unread", steps: "flood 300", limited: true, stopped: true},
	}
}

// Flood makes an agent print too much to a host in a process of its own. The memory of the host stays bounded, the turn
// ends with the reason, and the conversation continues.
func Flood(t *testing.T, s Subject, d Deluge) {
	k := s.open(t, wish{grace: time.Second})
	h := k.side.(client).process()
	k.endOf(k.say("say first"))
	k.mu.Lock()
	k.slim = true
	k.mu.Unlock()
	h.mu.Lock()
	h.slim = true
	h.mu.Unlock()
	if d.stopped {
		h.stop()
		defer h.goOn()
	}
	end := k.endOf(k.say(d.steps))
	if peak := h.memory(); peak == 0 || peak > mostMemory {
		t.Errorf("the program took %d MiB", peak>>20)
	} else {
		t.Logf("the program took %d MiB", peak>>20)
	}
	told := false
	for _, e := range k.events() {
		told = told || e.Kind == event.Failed && errors.Is(e.Fault, fault.OutputLimit)
	}
	if told != d.limited || end.End.OK == d.limited {
		t.Errorf("the limit was told: %v; the turn ended as %+v", told, end.End)
	}
	h.goOn()
	if s.Host.single == "" {
		if e := k.endOf(k.say("say on")); !e.End.OK {
			t.Errorf("the conversation does not go on: %+v", e.End)
		}
	}
}
