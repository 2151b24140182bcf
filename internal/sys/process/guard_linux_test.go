package process

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/testkit/hermetic"
)

// brood is a family of all the kinds that are hard to be rid of. Each has the cookie of its test in its environment. $1
// is written when all of them are under way; $2 says whether the leader stays.
const brood = `
trap '' TERM INT HUP
sleep 1000 &
setsid sleep 1000 &
(setsid sh -c 'sleep 1000 & sleep 1000' &)
sh -c 'kill -STOP $$' &
(setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 0.01; done' &)
sh -c 'setsid sh -c "(sleep 1000 &) ; sleep 0.03"' &
: >"$1"
case $2 in stays) while :; do sleep 0.02; done;; stops) kill -STOP $$;; esac
exit 5`

const cookieVariable = "OMNIAGENT_PROCESS_TEST_COOKIE"

func newCookie() string { return cookieVariable + "=" + newMark() }

// survivors are the processes with the cookie. Those that were killed may take a moment to be gone; within it they do
// not run.
func survivors(cookie string) []string {
	var all []string
	for _, p := range withMark(cookie) {
		if s, ok := statOf(p.Pid); ok && s.runs() {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
			all = append(all, fmt.Sprintf("%d %q", p.Pid, name))
		}
		_ = p.Release()
	}
	return all
}

// guard returns the process that ends the child with us.
func guard(c *Child) int {
	if c.space != nil {
		return c.space.keeper
	}
	return c.guard.pid
}

func killCookie(cookie string) {
	for range 20 {
		for _, p := range withMark(cookie) {
			_ = p.Kill()
			_ = p.Release()
		}
	}
}

func startStarter(t *testing.T, s started) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(s)
	check(t, err)
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.Command(exe, string(text))
	cmd.Env = roleEnvironment("starter")
	if s.Mark != "" {
		cmd.Env = append(cmd.Env, markVariable+"="+s.Mark)
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(t, cmd.Start())
	return cmd
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"goes", "ended", "killed", "stops"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			for range 5 {
				cookie, file := newCookie(), temporary(t, "ready")
				t.Cleanup(func() { killCookie(cookie) })
				stays := how
				if how == "ended" || how == "killed" {
					stays = "stays"
				}
				p := shell(brood, file, stays)
				p.Env, p.Grace = append(os.Environ(), cookie), 50*time.Millisecond
				c := begin(t, p)
				if how != "goes" {
					pollUntilDone(t.Context(), func() bool { _, err := os.Stat(file); return err == nil })
					time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond) // a random moment
				}
				switch how {
				case "ended":
					c.End(syscall.SIGTERM)
				case "killed", "stops":
					c.End(os.Kill)
				}
				e := ends(t, c)
				if how == "goes" && e.ExitCode != 5 {
					t.Errorf("%+v", e)
				}
				if left := survivors(cookie); len(left) > 0 { // at once, not soon
					t.Errorf("%s: left %v", how, left)
				}
				if _, err := os.Stat(fmt.Sprintf("/proc/%d", guard(c))); err == nil {
					t.Error("the guard is there")
				}
			}
		})
	}
}

func TestClearedEnvironmentDoesNotHide(t *testing.T) {
	name, file := newMark(), temporary(t, "pid")
	script := `(setsid env -i sh -c ': >"$1"; while :; do sleep 0.01; done' sh "$1" "$2" &)
		while [ ! -e "$1" ]; do sleep 0.01; done`
	ends(t, begin(t, shell(script, file, name)))
	for _, pid := range withArgument(name) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Error("it lives")
	}
}

// withArgument returns the living processes that have this argument.
func withArgument(argument string) (found []int) {
	for _, pid := range everyProcess() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		s, ok := statOf(pid)
		if ok && s.runs() && pid != os.Getpid() && slices.Contains(strings.Split(string(text), "\x00"), argument) {
			found = append(found, pid)
		}
	}
	return found
}

func TestDetachedOutlivesOnlyItsOwnEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []bool{false, true} {
		cookie, dir := newCookie(), t.TempDir()
		t.Cleanup(func() { killCookie(cookie) })
		p := shell(`sleep 1000 & setsid sh -c ': >"$1/there"; exec sleep 1001' sh "$1" & while [ ! -e "$1/there" ]; do sleep 0.01; done
			: >"$1/ready"; [ "$2" = true ] && sleep 1000; exit 0`, dir, strconv.FormatBool(end))
		p.Detach, p.Grace, p.Env = true, 50*time.Millisecond, append(os.Environ(), cookie)
		c := begin(t, p)
		pollUntilDone(t.Context(), func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
		if end {
			c.End(syscall.SIGTERM)
		}
		ends(t, c)
		left := survivors(cookie)
		if end && len(left) > 0 || !end && (len(left) != 1 || !strings.Contains(left[0], "1001")) {
			t.Errorf("ended %v: left %v", end, left)
		}
		if !end { // another child that ends does not take it for its own
			ends(t, begin(t, shell("(setsid sleep 1000 &); exit 0")))
			if left := survivors(cookie); len(left) != 1 {
				t.Errorf("left %v", left)
			}
		}
	}
}

// eventually waits for the survivors to be gone, which a guard takes a moment for.
func eventually(t *testing.T, cookie string) {
	t.Helper()
	var left []string
	over := time.NewTimer(10 * time.Second)
	defer over.Stop()
	pollUntil(func() bool { left = survivors(cookie); return len(left) == 0 }, over.C)
	if len(left) > 0 {
		t.Errorf("left %v", left)
		killCookie(cookie)
	}
}

func TestGuardKillsWhatADeadParentLeaves(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	bystander := newCookie()
	other := exec.Command("/bin/sleep", "1000")
	other.Env = append(os.Environ(), bystander, markVariable+"="+newMark())
	check(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	born := 0
	for n := range moments(40) {
		cookie, file := newCookie(), temporary(t, "ready")
		cmd := startStarter(t, started{
			Argv: []string{"/bin/sh", "-c", brood, "sh", file, "stays"},
			Env:  []string{cookie},
		})
		if n%2 == 0 { // from the first moment on
			time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond)
		} else {
			pollUntilDone(t.Context(), func() bool { _, err := os.Stat(file); return err == nil })
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		}
		if len(survivors(cookie)) > 0 {
			born++
		}
		check(t, cmd.Process.Kill())
		_ = cmd.Wait()
		time.Sleep(10 * time.Millisecond) // one that execs late is seen only then
		eventually(t, cookie)
	}
	if born < moments(40)/3 {
		t.Errorf("only %d of the moments had somebody to kill", born)
	}
	if len(survivors(bystander)) != 1 {
		t.Error("a stranger was killed")
	}
}

// TestLeaves: what a child left is removed when it has ended, also by the guard of a dead parent, and by the next
// process with a register in that directory where no guard was. What a person has made since then stays.
func TestLeaves(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]started{"ended": {}, "killed": {}, "killed, no guard": {Bound: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, ready, registers := t.TempDir(), temporary(t, "ready"), t.TempDir()
			empty, full := filepath.Join(dir, "an empty\none"), filepath.Join(dir, "full")
			how.Register = filepath.Join(registers, "one.jsonl")
			how.Leaves = []string{empty, full, filepath.Join(dir, "never")}
			how.Argv = []string{"/bin/sh", "-c", `mkdir "$1" "$2"; : >"$2/file" >"$3"; ` +
				map[bool]string{true: "exit", false: "exec sleep 1000"}[name == "ended"], "sh", empty, full, ready}
			cmd := startStarter(t, how)
			is := func(path string) bool { _, err := os.Stat(path); return err == nil }
			if name != "ended" {
				pollUntilDone(t.Context(), func() bool { return is(ready) && is(how.Register) })
				pollUntilDone(t.Context(), func() bool { list, _ := Registers(registers); return len(list) == 1 })
				check(t, cmd.Process.Kill())
			}
			_ = cmd.Wait()
			next := NewRegister(filepath.Join(registers, "two.jsonl"))
			if how.Bound {
				pollUntilDone(t.Context(), func() bool { next.Tidy(); return !is(empty) })
			}
			pollUntilDone(t.Context(), func() bool { return !is(empty) })
			check(t, os.Mkdir(empty, 0o755))
			if next.Tidy(); how.Bound && !is(empty) || !is(full) {
				t.Error("an empty directory of somebody else is gone, or one with a file in it")
			}
		})
	}
}

// TestBound: a program that is bound to us has no guard, and ends with us all the same.
func TestBound(t *testing.T) {
	t.Parallel()
	cookie, file := newCookie(), temporary(t, "ready")
	t.Cleanup(func() { killCookie(cookie) })
	cmd := startStarter(t, started{
		Argv: []string{"/bin/sh", "-c", `: >"$1"; exec sleep 1000`, "sh", file}, Env: []string{cookie}, Bound: true,
	})
	pollUntilDone(t.Context(), func() bool { _, err := os.Stat(file); return err == nil })
	for _, pid := range everyProcess() {
		if s, ok := statOf(pid); ok && s.parent == cmd.Process.Pid && isGuard(pid) {
			t.Error("there is a guard")
		}
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventually(t, cookie)

	c := begin(t, Plan{Argv: []string{"sh", "-c", "exit 7"}, Path: "/bin/sh", Bound: true})
	if e := ends(t, c); e.ExitCode != 7 {
		t.Errorf("%+v", e)
	}
}

func TestGuardIsReplaced(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	for range moments(10) {
		cookie, file := newCookie(), temporary(t, "ready")
		cmd := startStarter(t, started{
			Argv: []string{"/bin/sh", "-c", brood, "sh", file, "stays"},
			Env:  []string{cookie},
		})
		pollUntilDone(t.Context(), func() bool { _, err := os.Stat(file); return err == nil })
		for range 1 + rand.IntN(3) {
			before := guardOf(t, cmd.Process.Pid)
			check(t, syscall.Kill(before, syscall.SIGKILL))
			over := time.NewTimer(5 * time.Second)
			pollUntil(func() bool { return guardOf(t, cmd.Process.Pid) != before }, over.C)
			time.Sleep(time.Duration(rand.IntN(5_000)) * time.Microsecond)
		}
		check(t, cmd.Process.Kill())
		_ = cmd.Wait()
		eventually(t, cookie)
	}
}

func guardOf(t *testing.T, parent int) int {
	t.Helper()
	return childOf(t, parent, func(name string) bool { return strings.HasPrefix(name, guardName+"\x00") })
}

// childOf waits for a process to have a child with such a command line.
func childOf(t *testing.T, parent int, is func(name string) bool) (found int) {
	t.Helper()
	over := time.NewTimer(5 * time.Second)
	defer over.Stop()
	pollUntil(func() bool {
		for _, pid := range everyProcess() {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if s, ok := statOf(pid); ok && s.parent == parent && s.runs() && is(string(name)) {
				found = pid
			}
		}
		return found > 0
	}, over.C)
	if found == 0 {
		t.Fatal("there is no such child")
	}
	return found
}

func TestGuardHoldsNothingOfOurs(t *testing.T) {
	t.Parallel()
	c := begin(t, shell("sleep 1000"))
	defer func() { c.End(os.Kill); c.Wait() }()
	var text []byte
	over := time.NewTimer(5 * time.Second)
	defer over.Stop()
	pollUntil(func() bool {
		text, _ = os.ReadFile(fmt.Sprintf("/proc/%d/comm", c.guard.pid))
		return string(text) == guardName+"\n"
	}, over.C)
	for n, want := range []string{"/dev/null", "/dev/null", "/dev/null", "socket:"} {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", c.guard.pid, n)); err != nil ||
			!strings.HasPrefix(to, want) {
			t.Errorf("descriptor %d is %q: %v", n, to, err)
		}
	}
	if at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", c.guard.pid)); err != nil || at != "/" {
		t.Errorf("it works in %q: %v", at, err)
	}
	if own, err := unix.Getsid(c.guard.pid); err != nil || own != c.guard.pid {
		t.Errorf("its session is %d: %v", own, err)
	}
	ignored := ignoredSignals(t, c.guard.pid)
	for _, s := range []syscall.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGTSTP, syscall.SIGUSR1, syscall.SIGPIPE,
	} {
		if ignored&(1<<(s-1)) == 0 { // what is ignored is dropped while kill runs: nothing has to be waited for
			t.Errorf("it does not ignore %s", unix.SignalName(s))
		}
		check(t, syscall.Kill(c.guard.pid, s))
	}
	before := c.guard.pid
	if s, ok := statOf(before); !ok || !s.runs() || s.state == 'T' || c.guard.process() != before {
		t.Errorf("it did not stay: %+v", s)
	}
}

func ignoredSignals(t *testing.T, pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(t, err)
	_, rest, _ := strings.Cut(string(text), "\nSigIgn:\t")
	mask, _, _ := strings.Cut(rest, "\n")
	bits, err := strconv.ParseUint(mask, 16, 64)
	check(t, err)
	return bits
}

func TestSignalsToTheParentLeaveNothing(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
	for n := range moments(12) {
		cookie, dir := newCookie(), t.TempDir()
		cmd := startStarter(t, started{
			Argv: []string{"/bin/sh", "-c", brood, "sh", dir + "/ready", "stays"}, Env: []string{cookie},
			Grace: 20 * time.Millisecond, Report: dir + "/report",
		})
		pollUntilDone(t.Context(), func() bool { _, err := os.Stat(dir + "/ready"); return err == nil })
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		check(t, cmd.Process.Signal(signals[n%len(signals)]))
		_ = cmd.Wait()
		if left := survivors(cookie); len(left) > 0 { // at once
			t.Errorf("left %v", left)
			killCookie(cookie)
		}
		var e Ending
		text, err := os.ReadFile(dir + "/report")
		check(t, err)
		check(t, json.Unmarshal(text, &e))
		if !e.Ended || e.Signal != "SIGKILL" {
			t.Errorf("%+v", e)
		}
	}
}

func TestStopOfTheParentStopsTheChild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// The group must not be orphaned, or the signal would do nothing: this process is its parent, in another group.
	// a shell that forks may be stopped in the middle of that
	cmd := startStarter(t, started{Argv: []string{"/bin/sh", "-c", `: >"$1/ready"; exec sleep 1000`, "sh", dir}})
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	pollUntilDone(t.Context(), func() bool { _, err := os.Stat(dir + "/ready"); return err == nil })
	child := childOf(t, cmd.Process.Pid, func(name string) bool { return !strings.HasPrefix(name, guardName+"\x00") })
	for range 3 {
		check(t, cmd.Process.Signal(syscall.SIGTSTP))
		wantState(t, cmd.Process.Pid, true)
		wantState(t, child, true)
		check(t, cmd.Process.Signal(syscall.SIGCONT))
		wantState(t, cmd.Process.Pid, false)
		wantState(t, child, false)
	}
}

func wantState(t *testing.T, pid int, stopped bool) {
	t.Helper()
	over := time.NewTimer(5 * time.Second)
	defer over.Stop()
	is := !stopped
	pollUntil(func() bool { s, _ := statOf(pid); is = s.state == 'T'; return is == stopped }, over.C)
	if is != stopped {
		t.Fatalf("%d stopped: %v", pid, is)
	}
}

// BenchmarkStart is for people: plain is what os/exec takes for the same program. The processor time includes that of
// all processes, and is what counts on a machine that is busy.
func BenchmarkStart(b *testing.B) {
	used := func() (total time.Duration) {
		for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
			var u syscall.Rusage
			if err := syscall.Getrusage(who, &u); err != nil {
				b.Fatal(err)
			}
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		return total
	}
	start := func(p Plan) func() error {
		return func() error {
			c, err := Start(p)
			if err == nil {
				c.Wait()
			}
			return err
		}
	}
	for _, way := range []struct {
		name string
		run  func() error
	}{
		{"plain", func() error { return exec.Command("/bin/true").Run() }},
		{"guarded", start(Plan{Argv: []string{"true"}, Path: "/bin/true"})},
		{"apart", start(Plan{Argv: []string{"true"}, Path: "/bin/true", OwnPIDs: true})},
	} {
		b.Run(way.name, func(b *testing.B) {
			before := used()
			for b.Loop() {
				if err := way.run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
