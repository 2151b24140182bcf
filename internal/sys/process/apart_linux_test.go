package process

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/testkit/hermetic"
)

// needsApart skips a test where there are no PID namespaces.
func needsApart(t *testing.T) {
	t.Helper()
	if err := CheckPIDNamespace(); err != nil {
		t.Skipf("no PID namespace here: %v", err)
	}
}

// TestApart runs the tests of what this package promises of every child with children that are apart, and all tests
// of such children as an ordinary user.
func TestApart(t *testing.T) {
	hermetic.Long(t)
	if os.Getenv(apartVariable) != "" {
		t.Skip("this is such a run already")
	}
	needsApart(t)
	t.Parallel()
	const both = "TestNothingIsLeft|TestClearedEnv|TestEnd|TestRelayed|TestFiles|TestStarted|TestOther|TestSlow|" +
		"TestSignals|TestStop|TestGuardKills|TestWhatCannotStart"
	t.Run("same user", func(t *testing.T) {
		exe, err := os.Executable()
		check(t, err)
		again(t, exec.Command(exe, "-test.v", "-test.run", "^("+both+")"))
	})
	t.Run("ordinary user", func(t *testing.T) {
		again(t, hermetic.AsOrdinary(t, "-test.v", "-test.run", "^("+both+"|TestApart.)"))
	})
}

func again(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, apartVariable+"=1", fmt.Sprintf("%s=%d", momentsVariable, moments(8)))
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestNothingIsLeft")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// apart is a Plan for a script that is started in a namespace.
func apart(script string, args ...string) Plan {
	p := shell(script, args...)
	p.OwnPIDs = true
	return p
}

// TestApartNothingSurvivesUs kills all of our processes at the same moment. What it leaves would be found by its
// arguments: it has left the session, its parents and its environment.
func TestApartNothingSurvivesUs(t *testing.T) {
	hermetic.Long(t)
	needsApart(t)
	t.Parallel()
	const hermit = `setsid env -i sh -c '(while :; do sleep 0.01; done) & : >"$1"; while :; do sleep 0.01; done' sh "$1" "$2" &
		(setsid env -i sh -c 'trap "" TERM INT HUP; while :; do sleep 0.01; done' sh "$1" "$2" &)
		while :; do sleep 0.01; done`
	born := 0
	for n := range moments(50) {
		name, file := newMark(), temporary(t, "ready")
		cmd := startStarter(t, started{
			Argv: []string{"/bin/sh", "-c", hermit, "sh", file, name}, Apart: true,
			Mark: name, // so that all of ours can be found
		})
		if n%2 == 0 {
			pollUntilDone(t.Context(), func() bool { _, err := os.Stat(file); return err == nil })
		}
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		if len(withArgument(name)) > 1 {
			born++
		}
		ours := []string{"-c", `kill -9 "$@"`, "sh", strconv.Itoa(cmd.Process.Pid)}
		for _, pid := range everyProcess() {
			if isGuard(pid) && hasMark(pid, name) {
				ours = append(ours, strconv.Itoa(pid))
			}
		}
		_ = exec.Command("/bin/sh", ours...).Run() // one may have ended by itself
		_ = cmd.Wait()
		over := time.NewTimer(5 * time.Second)
		pollUntil(func() bool { return len(withArgument(name)) == 0 }, over.C)
		time.Sleep(10 * time.Millisecond) // one that execs late is seen only then
		for _, pid := range withArgument(name) {
			t.Errorf("moment %d: %d lives", n, pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if born < moments(50)/3 {
		t.Errorf("only %d of the moments had somebody to kill", born)
	}
}

// TestApartKeeperIsKilled kills process 1 of the namespace alone.
func TestApartKeeperIsKilled(t *testing.T) {
	needsApart(t)
	name, file := newMark(), temporary(t, "ready")
	c := begin(t, apart(`setsid sh -c 'while :; do sleep 0.01; done' sh "$2" & : >"$1"; while :; do sleep 0.01; done`,
		file, name))
	pollUntilDone(t.Context(), func() bool { _, err := os.Stat(file); return err == nil })
	check(t, syscall.Kill(c.space.keeper, syscall.SIGKILL))
	if e := ends(t, c); e.Signal != "SIGKILL" || e.Ended || e.Duration > 10*time.Second {
		t.Errorf("%+v", e)
	}
	if left := withArgument(name); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestApartEndings(t *testing.T) {
	hermetic.Long(t)
	needsApart(t)
	t.Parallel()
	for code := range 256 {
		if e := ends(t, begin(t, apart("exit "+strconv.Itoa(code)))); e.ExitCode != code || e.Signal != "" {
			t.Errorf("exit %d: %+v", code, e)
		}
	}
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGKILL, syscall.SIGUSR1,
		syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTERM,
	} {
		e := ends(t, begin(t, apart(fmt.Sprintf("ulimit -c 0; kill -%d $$", s))))
		if e.ExitCode != -1 || e.Signal != unix.SignalName(s) {
			t.Errorf("%s: %+v", s, e)
		}
	}
}

// TestApartOutputIsHeld has a grandchild that keeps the output open after the leader has exited.
func TestApartOutputIsHeld(t *testing.T) {
	needsApart(t)
	var out bytes.Buffer
	p := apart(`(setsid sh -c 'while :; do sleep 0.01; done' &); printf all; exit 4`)
	p.Stdout = &out
	if e := ends(t, begin(t, p)); e.ExitCode != 4 || out.String() != "all" || e.Lost != nil {
		t.Errorf("%q %+v", out.String(), e)
	}
}

// TestApartIsSeenFromOutside stops, continues and ends the group by the number that others see.
func TestApartIsSeenFromOutside(t *testing.T) {
	needsApart(t)
	name, file := newMark(), temporary(t, "ready")
	c := begin(t, apart(`sleep 1000 & : >"$1"; wait`, file, name))
	pollUntilDone(t.Context(), func() bool { _, err := os.Stat(file); return err == nil })
	sleeper := childOf(t, c.PID(), func(name string) bool { return strings.HasPrefix(name, "sleep\x00") })
	if found := withArgument(name); len(found) != 1 || found[0] != c.PID() {
		t.Errorf("it is %d, and %v was found", c.PID(), found)
	}
	for range 3 {
		c.Signal(syscall.SIGSTOP)
		wantState(t, c.PID(), true)
		wantState(t, sleeper, true)
		c.Signal(syscall.SIGCONT)
		wantState(t, c.PID(), false)
		wantState(t, sleeper, false)
	}
	check(t, syscall.Kill(-c.PID(), syscall.SIGTERM))
	if e := ends(t, c); e.Signal != "SIGTERM" || e.Ended {
		t.Errorf("%+v", e)
	}
	if _, alive := identity(sleeper); alive {
		t.Error("the group was not signalled")
	}
}

// TestApartInside looks at what a program finds: its own processes, its user and no more rights or descriptors than
// without a namespace.
func TestApartInside(t *testing.T) {
	needsApart(t)
	outer := begin(t, shell("sleep 1000"))
	defer func() { outer.End(os.Kill); outer.Wait() }()
	look := `id -u; id -g; ulimit -n; pwd; ls -l /proc/self/fd | wc -l; grep -E '^(Cap(Inh|Prm|Eff|Amb)|Sig(Blk|Ign|Cgt)|NoNew)' /proc/self/status`
	var plain, inside, numbers bytes.Buffer
	p := shell(look)
	p.Stdout = &plain
	c, err := Start(p)
	check(t, err)
	if e := ends(t, c); e.ExitCode != 0 {
		t.Fatalf("%+v", e)
	}
	p.OwnPIDs, p.Stdout = true, &inside
	ends(t, begin(t, p))
	if plain.String() != inside.String() {
		t.Errorf("without:\n%swithin:\n%s", plain.String(), inside.String())
	}
	p = apart(`echo $$ $PPID; ls /proc | grep -c '^[0-9]'`)
	p.Stdout = &numbers
	ends(t, begin(t, p))
	if words := strings.Fields(numbers.String()); len(words) != 3 || words[0] != "2" || words[1] != "0" ||
		len(words[2]) != 1 {
		t.Errorf("%q", numbers.String())
	}
}

// TestApartIsRefused starts a child where no further namespace is allowed.
func TestApartIsRefused(t *testing.T) {
	needsApart(t)
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.Command("/bin/sh", "-c", `echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"`, "sh", exe,
		`{"Argv":["/bin/sh","-c","test $PPID != 0 && exit 7"],"OwnPIDs":true}`)
	cmd.Env = roleEnvironment("starter")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v %s", err, out)
	}
}
