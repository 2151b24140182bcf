//go:build unix

package process

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// shell is a Plan for a script, without any stream.
func shell(script string, args ...string) Plan {
	return Plan{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Path: "/bin/sh"}
}

// ends waits for a child with a deadline: a test that hangs says nothing.
func ends(t *testing.T, c *Child) Ending {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(hermetic.Patience):
		c.End(os.Kill)
		t.Fatal("Wait does not return")
	}
	return c.Wait()
}

func begin(t *testing.T, p Plan) *Child {
	t.Helper()
	p.OwnPIDs = p.OwnPIDs || os.Getenv(apartVariable) != ""
	c, err := Start(p)
	check(t, err)
	return c
}

func TestStartedEnding(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]Ending{
		"exit 0": {}, "exit 42": {ExitCode: 42}, "kill -9 $$": {ExitCode: -1, Signal: "SIGKILL"},
		"kill -TERM $$": {ExitCode: -1, Signal: "SIGTERM"},
	} {
		e := ends(t, begin(t, shell(script)))
		if e.ExitCode != want.ExitCode || e.Signal != want.Signal || e.Ended || e.Duration <= 0 ||
			e.Lost != nil {
			t.Errorf("%s: got %+v", script, e)
		}
	}
}

func TestWhatCannotStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan Plan
		want fault.Code
	}{
		{Plan{}, fault.MissingArgument},
		{Plan{Argv: []string{"x"}, Path: "/no/such/program"}, fault.NotInstalled},
		{Plan{Argv: []string{"x"}, Path: "/bin/sh", Dir: "/no/such/directory"}, fault.FileMissing},
		{Plan{Argv: []string{"x"}, Path: "/etc/passwd"}, fault.PermissionDenied},
		{Plan{Argv: []string{"x\x00"}, Path: "/bin/sh"}, fault.ArgError},
	} {
		c.plan.OwnPIDs = os.Getenv(apartVariable) != ""
		_, err := Start(c.plan)
		wantCode(t, err, c.want)
	}
	script := filepath.Join(t.TempDir(), "agent")
	if err := hermetic.WriteProgram(script, []byte("#!/no/such/node --flag\nx\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	plan := Plan{Argv: []string{"agent"}, Path: script, OwnPIDs: os.Getenv(apartVariable) != ""}
	if _, err := Start(plan); err == nil || !strings.Contains(err.Error(), "needs /no/such/node") {
		t.Errorf("without its interpreter: %v", err)
	}
}

func TestStartedEnvironmentIsWhole(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := Plan{
		Argv: []string{"another name"}, Path: "/usr/bin/env",
		Env: []string{"B=1", "B=2", "odd", markVariable + "=outer"}, Stdout: &out,
	}
	ends(t, begin(t, p))
	text := out.String()
	if !strings.Contains(text, "B=1\n") || !strings.Contains(text, "B=2\nodd\n"+markVariable+"=outer,") ||
		strings.Count(text, markVariable) != 1 {
		t.Errorf("got %q", text)
	}
}

// endless is a source that blocks, or never ends.
type endless struct{ block bool }

func (e endless) Read(p []byte) (int, error) {
	if e.block {
		select {}
	}
	return len(p), nil
}

func TestRelayedInput(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte("0123456789abcde\n"), 10<<20/16)
	var out bytes.Buffer
	p := shell("cat")
	p.Stdin, p.Stdout = bytes.NewReader(big), &out
	if e := ends(t, begin(t, p)); e.ExitCode != 0 || !bytes.Equal(out.Bytes(), big) {
		t.Errorf("%d bytes came back, %+v", out.Len(), e)
	}
	for name, source := range map[string]func() io.Reader{
		"unread":  func() io.Reader { return bytes.NewReader(big) },
		"blocked": func() io.Reader { return endless{true} },
		"endless": func() io.Reader { return endless{} },
	} {
		for _, script := range []string{"exit 3", "exec <&-; sleep 0.05; exit 3", "head -c 10 >/dev/null; exit 3"} {
			if name == "blocked" && strings.HasPrefix(script, "head") {
				continue
			}
			p := shell(script)
			p.Stdin = source()
			if e := ends(t, begin(t, p)); e.ExitCode != 3 || e.Duration > 5*time.Second {
				t.Errorf("%s, %s: %+v", name, script, e)
			}
		}
	}
	p = shell("cat; echo end")
	out.Reset()
	p.Stdout = &out
	if ends(t, begin(t, p)); out.String() != "end\n" {
		t.Errorf("the null device gave %q", out.String())
	}
}

func TestRelayedOutputIsWhole(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	want, got := sha256.New(), sha256.New()
	block := []byte(strings.Repeat("0123456789abcdef", 4096))
	for range size / len(block) {
		want.Write(block)
	}
	exe, err := os.Executable()
	check(t, err)
	p := Plan{Argv: []string{exe, "104857600"}, Path: exe, Env: roleEnvironment("flood"), Stdout: got}
	if e := ends(t, begin(t, p)); e.ExitCode != 0 || e.Lost != nil || !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
		t.Errorf("not what was written: %+v", e)
	}
	var both bytes.Buffer // two streams into one writer keep their order
	p = shell("for i in 1 2 3 4; do echo out; echo err >&2; done")
	p.Stdout, p.Stderr = &both, &both
	if ends(t, begin(t, p)); both.String() != strings.Repeat("out\nerr\n", 4) {
		t.Errorf("got %q", both.String())
	}
}

// slow is a reader of output that takes its time, or has gone.
type slow struct {
	got  bytes.Buffer // not embedded: its ReadFrom would go past Write
	wait <-chan struct{}
	err  error
}

func (s *slow) Write(p []byte) (int, error) {
	<-s.wait
	if s.err != nil {
		return 0, s.err
	}
	return s.got.Write(p)
}

func TestSlowReaderLosesNothing(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	gate := make(chan struct{})
	s := &slow{wait: gate}
	p := shell("head -c 60000 /dev/zero; printf end")
	p.Stdout = s
	c := begin(t, p)
	time.AfterFunc(2*drainFor, func() { close(gate) })
	if e := ends(t, c); e.Lost != nil || s.got.Len() != 60003 || e.ExitCode != 0 {
		t.Errorf("%d bytes, %+v", s.got.Len(), e)
	}
	never := make(chan struct{})
	defer close(never)
	written := temporary(t, "written")
	p = shell(`trap "" TERM; head -c 60000 /dev/zero; : >"$1"`, written)
	p.Stdout = &slow{wait: never}
	c = begin(t, p)
	pollUntilDone(t.Context(), func() bool { _, err := os.Stat(written); return err == nil })
	c.End(syscall.SIGTERM)
	if e := ends(t, c); e.Lost == nil || e.ExitCode != 0 {
		t.Errorf("a reader that blocks: %+v", e)
	}
	now := make(chan struct{})
	close(now)
	p = shell("while echo x; do :; done")
	gone := errors.New("gone")
	p.Stdout = &slow{wait: now, err: gone}
	if e := ends(t, begin(t, p)); !errors.Is(e.Lost, gone) || e.Signal != "SIGPIPE" && e.ExitCode == 0 {
		t.Errorf("a reader that left: %+v", e)
	}
}

func TestFilesAreHandedOnAsTheyAre(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	check(t, err)
	defer f.Close()
	p := shell(`test -f /dev/stdout && echo file; test -f /dev/stderr && echo two`)
	p.Stdout, p.Stderr = f, f
	ends(t, begin(t, p))
	text, err := os.ReadFile(f.Name())
	check(t, err)
	if string(text) != "file\ntwo\n" {
		t.Errorf("got %q", text)
	}
}

func TestStartedChildHasNoTerminalToAskOn(t *testing.T) {
	t.Parallel()
	if e := ends(t, begin(t, shell("read x </dev/tty && exit 0; exit 3"))); e.ExitCode == 0 {
		t.Errorf("got %+v", e)
	}
}

func TestEndAsksThenKills(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		grace        time.Duration
		times        int
		signal       string
		least        time.Duration
	}{
		{"polite", `trap 'exit 7' TERM; : >$1; while :; do sleep 0.01; done`, time.Hour, 1, "", 0},
		{
			"stubborn", `trap '' TERM; : >$1; while :; do sleep 0.01; done`, 200 * time.Millisecond, 1, "SIGKILL",
			200 * time.Millisecond,
		},
		{"again", `trap '' TERM; : >$1; while :; do sleep 0.01; done`, time.Hour, 2, "SIGKILL", 0},
		{"stopped", `: >$1; kill -STOP $$`, time.Hour, 1, "SIGTERM", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := temporary(t, "ready")
			p := shell(c.script, file)
			p.Grace = c.grace
			child := begin(t, p)
			pollUntilDone(t.Context(), func() bool { _, err := os.Stat(file); return err == nil })
			asked := time.Now()
			for range c.times {
				child.End(syscall.SIGTERM)
			}
			e := ends(t, child)
			if took := time.Since(asked); !e.Ended || e.Signal != c.signal || c.signal == "" && e.ExitCode != 7 ||
				took < c.least || took > hermetic.Patience {
				t.Errorf("%+v after %v", e, took)
			}
			child.End(syscall.SIGTERM) // nothing to end, and its number is somebody else's
			child.Signal(syscall.SIGKILL)
		})
	}
}

func TestEndLeavesTheGraceToTheGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `(trap 'sleep 0.2; echo done >"$1/tidied"; exit' TERM; : >"$1/ready"; while :; do sleep 0.01; done) & wait`
	c := begin(t, shell(script, dir))
	pollUntilDone(t.Context(), func() bool { _, err := os.Stat(dir + "/ready"); return err == nil })
	c.End(syscall.SIGTERM)
	ends(t, c)
	if _, err := os.Stat(dir + "/tidied"); err != nil {
		t.Error(err)
	}
}

func TestOtherWaitsKeepTheirExitCodes(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	stop := make(chan struct{})
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				cmd := exec.Command("/bin/sh", "-c", "exit 7")
				if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 7 {
					done <- errors.Join(errors.New("an exit code was lost"), err)
					return
				}
			}
		}()
	}
	for range moments(30) { // orphans, so that the long way is taken
		c := begin(t, shell("(setsid sleep 100 & sleep 0.01 &); exit 0"))
		ends(t, c)
		c.reapAdopted()
	}
	close(stop)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

const momentsVariable = "OMNIAGENT_TEST_MOMENTS"

// moments is how many random moments a test of kills tries: 40 among all of them, or what the variable says for each.
func moments(everyday int) int {
	if n, err := strconv.Atoi(os.Getenv(momentsVariable)); err == nil {
		return n
	}
	return everyday
}
