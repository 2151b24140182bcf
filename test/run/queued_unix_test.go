//go:build unix

package run

import (
	"strings"
	"testing"
)

// TestCancelledInTheQueue: a run that never began has changed nothing, and no hint leads to its diff.
func TestCancelledInTheQueue(t *testing.T) {
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
		"It never began. To begin it: omniagent runs retry "+queued {
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
