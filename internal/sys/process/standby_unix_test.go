//go:build unix

package process

import (
	"os"
	"syscall"
	"testing"
)

// TestStandby: the first child takes the guard that waits, the second gets another, and one that nobody took is
// dismissed.
func TestStandby(t *testing.T) {
	s := Prepare(false)
	<-s.ready
	if s.err != nil {
		t.Fatal(s.err)
	}
	waiting := s.guard.process()
	over := temporary(t, "over")
	p := shell(`while [ ! -e "$1" ]; do sleep 0.01; done; exit 4`, over)
	p.Standby = s
	first := begin(t, p)
	if first.guard.process() != waiting {
		t.Error("the first child has another guard")
	}
	second := begin(t, p)
	if got := second.guard.process(); got == waiting || got == 0 {
		t.Errorf("the guard of the second child is %d, of the first %d", got, waiting)
	}
	check(t, os.WriteFile(over, nil, 0o600))
	for _, c := range []*Child{first, second} {
		if e := ends(t, c); e.ExitCode != 4 {
			t.Errorf("%+v", e)
		}
	}
	s.Dismiss()
	alone := Prepare(false)
	alone.Dismiss()
	alone.Dismiss()
	if alone.guard == nil || syscall.Kill(alone.guard.pid, 0) == nil {
		t.Error("it was not dismissed")
	}
}
