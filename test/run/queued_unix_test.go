//go:build unix

package run

import (
	"strings"
	"testing"
	"time"
)

// waitsInQueue waits until a run says that it waits in the queue, and returns what it says to a person.
func (p *place) waitsInQueue(id string) string {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		out, _ := p.command("runs", "status", id, "--output", "plain").Output()
		if strings.Contains(string(out), "in the queue") {
			return string(out)
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s does not wait in the queue: %s", id, out)
		}
	}
}

// TestCancelledInTheQueue checks that a queued run says why it waits and at which place, and that one that is cancelled
// there is told as never begun: it took no time, and there is nothing to look at.
func TestCancelledInTheQueue(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.agent("holds", "cat >/dev/null; touch holding; exec sleep 600").configured("[run]\nparallel = 1\n")
	first := p.call("run", "--agent", "holds", "--yolo", "--detach", "-p", "first").Data.ID
	defer p.call("runs", "cancel", first)
	p.exists("holding")
	second := p.call("run", "--agent", "holds", "--yolo", "--detach", "-p", "second").Data.ID
	p.waitsInQueue(second)
	third := p.call("run", "--agent", "holds", "--yolo", "--detach", "-p", "third").Data.ID
	want := third + ": queued, place 2 in the queue, until another run ends\n"
	if told := p.waitsInQueue(third); told != want {
		t.Errorf("runs status: %q, and not %q", told, want)
	}
	list, _ := p.command("runs", "list", "--output", "plain").Output()
	if !strings.Contains(string(list), "place 1 in the queue") {
		t.Errorf("runs list: %s", list)
	}
	if a := p.call("runs", "cancel", third); a.Code != 0 {
		t.Fatalf("%s", a)
	}
	if a := p.call("runs", "show", third); a.Data.Status != "cancelled" || a.Data.Reason != "never_began" ||
		len(a.Data.Summary.Next) != 1 || a.Data.Summary.Next[0] != "omniagent runs retry "+third {
		t.Errorf("runs show: %s", a)
	}
	for _, of := range [][]string{{"runs", "show", third}, {"runs", "status", third}} {
		out, _ := p.command(append(of, "--output", "plain")...).Output()
		if !strings.Contains(string(out), ": cancelled before it began") || strings.Contains(string(out), "after") {
			t.Errorf("%v: %s", of, out)
		}
	}
	list, _ = p.command("runs", "list", "--output", "plain").Output()
	if !strings.Contains(string(list), "never began") {
		t.Errorf("runs list: %s", list)
	}
}
