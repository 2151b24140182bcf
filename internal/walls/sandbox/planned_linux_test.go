package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// planned opens walls that may be built later.
func (g ground) planned(t *testing.T, change ...func(*Policy)) *Walls {
	t.Helper()
	if tiers(t)[0] != Namespaces {
		t.Skip("only walls of namespaces are built later")
	}
	p := g.policy()
	for _, f := range change {
		f(&p)
	}
	w, err := Open(p, Report{OS: "linux", Tier: Namespaces}, Options{State: g.state, Later: true})
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

// TestPlannedWalls: walls that have held here are built before the first command, and hold it.
func TestPlannedWalls(t *testing.T) {
	g := newGround(t)
	home := func(p *Policy) { p.Homes, p.Places = []string{g.outside}, nil }
	first := g.planned(t, home)
	if first.Enforced().Planned {
		t.Fatal("walls that were never tried are only planned")
	}
	w := g.planned(t, home)
	if now, before := w.Enforced(), first.Enforced(); !now.Planned || !slices.Equal(now.Holes, before.Holes) {
		t.Fatalf("%+v, tried before: %+v", now, before)
	}
	if w.system.homes != nil {
		t.Error("home directories are prepared before a command needs them")
	}
	r := g.sh(t, w, "echo x > "+g.outside+"/file; cat "+g.secret+"/key; echo runs")
	if !strings.Contains(r.out, "runs") || strings.Contains(r.out, "secret\n") || w.Enforced().Planned {
		t.Errorf("%q, planned: %v", r.out, w.Enforced().Planned)
	}
	if text, err := os.ReadFile(g.outside + "/file"); err != nil || string(text) != "outside" {
		t.Errorf("%q %v", text, err)
	}
	other := g.planned(t, home, func(p *Policy) { p.Hidden = append(p.Hidden, g.outside) })
	if other.Enforced().Planned {
		t.Error("walls of another kind are believed to have held")
	}
}

// TestPlannedWallsThatDoNotStand: a command is refused, and the record goes, until walls can be built again.
func TestPlannedWallsThatDoNotStand(t *testing.T) {
	g := newGround(t)
	g.planned(t)
	w := g.planned(t)
	must(t, os.Rename(g.root, g.root+"-away"))
	must(t, os.Symlink(g.root+"-away", g.root))
	path, err := exec.LookPath("true")
	must(t, err)
	plan := process.Plan{Argv: []string{"true"}, Path: path, Dir: "/", Env: []string{}}
	for range 2 {
		if _, err := w.Plan(plan); err == nil || !strings.Contains(err.Error(), "the command was not started") {
			t.Fatalf("%v", err)
		}
		if _, err := w.PlanOpen(plan); err == nil {
			t.Fatal("with the network open the command is started")
		}
	}
	if _, held := w.system.tried.found(); held || !w.Enforced().Planned {
		t.Errorf("recorded: %v, %+v", held, w.Enforced())
	}
	must(t, os.Remove(g.root))
	must(t, os.Rename(g.root+"-away", g.root))
	if r := g.sh(t, w, "echo runs"); r.out != "runs\n" {
		t.Errorf("%+v", r)
	}
}

// TestPlannedWallsWithOtherHoles: walls that stop less than the first line of the conversation said are refused.
func TestPlannedWallsWithOtherHoles(t *testing.T) {
	g := newGround(t)
	first := g.planned(t)
	first.system.tried.forget()
	first.system.tried.remember(nil)
	w := g.planned(t)
	_, err := w.Plan(process.Plan{Argv: []string{"true"}, Path: "/bin/true", Dir: "/", Env: []string{}})
	if err == nil || !strings.Contains(err.Error(), "stopped before") {
		t.Errorf("%v", err)
	}
}

// TestPlannedWallsAreClosed: closing walls that were never built needs nothing, and no command is started after it.
func TestPlannedWallsAreClosed(t *testing.T) {
	g := newGround(t)
	g.planned(t)
	w := g.planned(t)
	must(t, w.Close())
	_, err := w.Plan(process.Plan{Argv: []string{"true"}, Path: "/bin/true", Dir: "/", Env: []string{}})
	if err == nil {
		t.Error("a command is started")
	}
	if w.system.homes != nil {
		t.Error("walls were built after they were closed")
	}
}

// TestPlannedWallsAreGivenUp: neither the end of a call nor Close waits for walls that cannot be built now, and the
// record stays.
func TestPlannedWallsAreGivenUp(t *testing.T) {
	g := newGround(t)
	home := func(p *Policy) { p.Homes, p.Places = []string{g.outside}, nil }
	must(t, g.planned(t, home).Close())
	w := g.planned(t, home)
	own := filepath.Join(g.state, "walls", homePrefix+digest(g.root))
	must(t, os.MkdirAll(own, 0o700))
	held, err := os.Open(own)
	must(t, err)
	defer held.Close()
	must(t, unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	ctx, cancel := context.WithCancel(t.Context())
	for _, give := range []func(){cancel, func() { must(t, w.Close()) }} {
		ended := make(chan error, 1)
		go func() {
			_, err := w.Stand(ctx)
			ended <- err
		}()
		for w.building.TryRLock() {
			w.building.RUnlock()
			runtime.Gosched()
		}
		give()
		select {
		case err := <-ended:
			if !errors.Is(err, fault.Interrupted) {
				t.Error(err)
			}
		case <-time.After(hermetic.Patience):
			t.Fatal("it waits")
		}
		ctx = t.Context()
	}
	if _, recorded := w.system.tried.found(); !recorded || !w.Enforced().Planned {
		t.Errorf("recorded: %v, %+v", recorded, w.Enforced())
	}
}

// TestTrialIsGivenUp: a trial that waits for its home directories ends with its context, and not with its time limit.
func TestTrialIsGivenUp(t *testing.T) {
	g := newGround(t)
	w := g.planned(t, func(p *Policy) { p.Homes, p.Places = []string{g.outside}, nil })
	server := w.system.homes.held.child.PID()
	must(t, unix.Kill(server, unix.SIGSTOP))
	defer func() { must(t, unix.Kill(server, unix.SIGCONT)) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	_, err := w.try(ctx)
	if took := time.Since(began); err == nil || took >= trialTime {
		t.Errorf("%v, after %v", err, took)
	}
}
