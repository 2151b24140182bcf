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
	for deadline := time.Now().Add(patience); ; {
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

// TestDiffOfARunThatNeverBegan checks that a run that never began has changed nothing, and that no hint
// leads to its diff.
func TestDiffOfARunThatNeverBegan(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("mute", `sleep 1000`).agent("quick", `echo done`).configured("[run]\nparallel = 1\n")
	first := p.run("mute", "--yolo", "--detach").Data.ID
	p.reaches(first, "running")
	queued := p.run("quick", "--yolo", "--detach").Data.ID
	p.reaches(queued, "queued")
	for _, id := range []string{first, queued} {
		if out, err := p.command("runs", "diff", id).CombinedOutput(); err == nil ||
			!strings.Contains(string(out), `"message":"what `+id+` has changed is not known","`) ||
			!strings.Contains(string(out), `"suggestion":"it is known when the run is over"`) {
			t.Errorf("%v: %s", err, out)
		}
	}
	p.call("runs", "cancel", queued)
	if a := p.reaches(queued, "cancelled"); strings.Join(a.Data.Summary.Next, "\n") !=
		"omniagent runs retry "+queued {
		t.Errorf("%s", a)
	}
	for _, how := range []string{"--json", "--json=false"} {
		cmd := p.command("runs", "diff", queued, how)
		var said strings.Builder
		cmd.Stderr = &said
		if out, err := cmd.Output(); err != nil || len(out) > 0 ||
			!strings.Contains(said.String(), queued+" never began, so it has changed nothing") {
			t.Errorf("%s: %v: %s%s", how, err, out, said.String())
		}
	}
	p.call("runs", "cancel", first)
	p.nothing()
}
