//go:build unix

package run

import (
	"bufio"
	"strings"
	"testing"
	"time"
)

// TestWatchEndsWithAQuestion, also while the agent of a detached run waits for its answer.
func TestWatchEndsWithAQuestion(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := p.call("run", "--rehearse", "-p", "greet", "--detach")
	watched := p.ended(p.command("runs", "watch", a.Data.ID))
	if watched.Code != 4 || !strings.Contains(watched.Stdout, `"status":"needs_input"`) ||
		!strings.Contains(watched.Stdout, `"kind":"question"`) {
		t.Errorf("%s", watched)
	}
	if asked := p.call("runs", "show", a.Data.ID); asked.Data.Owner == nil {
		t.Errorf("nobody waits for the answer any more: %s", asked)
	}
	p.call("answer", a.Data.ID, "yes").is(t, 0, "succeeded", "done")
}

// TestWatchWithoutAReader does not say that the run succeeded.
func TestWatchWithoutAReader(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("talker", `cat >/dev/null; while :; do echo more; sleep 0.05; done`)
	a := p.call("run", "--agent", "talker", "--yolo", "-p", "x", "--detach")
	watch := p.command("runs", "watch", a.Data.ID)
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(err)
	}
	_ = out.Close()
	clock := time.AfterFunc(patience, func() { _ = watch.Process.Kill() })
	defer clock.Stop()
	if _ = watch.Wait(); watch.ProcessState.ExitCode() != 1 {
		t.Errorf("the watch ended with %s", watch.ProcessState)
	}
	p.call("runs", "cancel", a.Data.ID)
}
